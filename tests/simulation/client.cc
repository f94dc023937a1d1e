// What a client asks for. What it makes of the answers is in client_hears.cc, what it asks for
// again in client_again.cc, and all of sets in client_sets.cc.
#include "simulation/client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "simulation/json.h"

namespace lockd::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t s_of(Duration length) { return static_cast<std::uint64_t>(length / seconds(1)); }

}  // namespace

Client::Client(std::uint32_t number, bool is_http, Chance chance, const Swarm& swarm,
               Promises& promises, Acquisitions& acquisitions, Outside& outside)
    : number_(number),
      is_http_(is_http),
      chance_(chance),
      swarm_(swarm),
      promises_(promises),
      acquisitions_(acquisitions),
      outside_(outside) {}

void Client::act() {
  if (wire_ == nullptr) {
    if (retired_) return;
    wire_ = outside_.connect(number_, is_http_);
    if (wire_ != nullptr) holder_ = "c" + std::to_string(number_) + "." + std::to_string(wire_->id);
    return;
  }
  if (!can_act()) return;
  const std::uint32_t observe = 1;
  const std::uint32_t sets = is_http_ ? swarm_.sets : 0;
  Lot lot(chance_, swarm_.acquire + swarm_.enqueue + swarm_.renew + swarm_.release + swarm_.signal +
                       swarm_.lie + swarm_.leave + sets + observe);
  if (lot.falls_on(swarm_.acquire)) {
    acquire();
  } else if (lot.falls_on(swarm_.enqueue)) {
    if (!await_turn()) enqueue();
  } else if (lot.falls_on(swarm_.renew)) {
    renew();
  } else if (lot.falls_on(swarm_.release)) {
    release();
  } else if (lot.falls_on(swarm_.signal)) {
    signal();
  } else if (lot.falls_on(swarm_.lie)) {
    lie();
  } else if (lot.falls_on(swarm_.leave)) {
    if (chance_.percent(20)) leave();
  } else if (lot.falls_on(sets)) {
    ask_for_set();
  } else {
    ask_fence();
  }
}

bool Client::is_busy(Key key) const {
  return std::any_of(asked_.begin(), asked_.end(),
                     [&](const Request& request) { return is_asked_of(request, key); });
}

bool Client::is_asked_of(const Request& request, Key key) {
  if (request.parts.empty()) return request.key == key;
  return std::ranges::any_of(request.parts, [&](const Request& part) { return part.key == key; });
}

std::optional<Key> Client::free_key() {
  const Key key{chance_.percent(swarm_.semaphore_percent) ? Kind::semaphore : Kind::lock,
                static_cast<std::uint32_t>(chance_.below(swarm_.keys))};
  if (is_busy(key)) return {};
  return key;
}

Terms Client::some_terms(Key key) {
  if (key.kind == Kind::lock) {
    return {.mode = chance_.percent(swarm_.shared_percent) ? Mode::shared : Mode::exclusive};
  }
  if (!chance_.percent(swarm_.several_percent)) return {};
  return {.permits = static_cast<std::uint32_t>(chance_.between(1, swarm_.limit))};
}

std::string Client::line_of(const Terms& terms) {
  if (terms.mode == Mode::shared) return " shared";
  return terms.permits == 1 ? "" : " " + std::to_string(terms.permits);
}

std::string Client::json_of(const Terms& terms) {
  if (terms.mode == Mode::shared) return "," + member("mode", "shared");
  return terms.permits == 1 ? "" : "," + member("permits", terms.permits);
}

Known* Client::pick_hold() {
  std::vector<Known*> mine = promises_.of_client(number_);
  std::erase_if(mine, [this](const Known* known) {
    const Acquisition* acquisition = acquisitions_.find(known->key, known->holder);
    return is_busy(known->key) || (acquisition != nullptr && acquisition->on_their_way > 0);
  });
  return mine.empty() ? nullptr : mine[chance_.below(mine.size())];
}

void Client::ask(Request request, std::string_view text) {
  request.call = outside_.now();
  request.largest_told = promises_.largest_told(request.key);
  for (Request& part : request.parts) {
    part.call = request.call;
    part.largest_told = promises_.largest_told(part.key);
  }
  if (Acquisition* acquisition = acquisitions_.find(request.key, request.secret)) {
    ++acquisition->on_their_way;
    acquisition->asked_at = request.call;
    request.largest_told = acquisition->largest_told;  // the grant may be as old as that
  }
  ++requests_;
  asked_.push_back(std::move(request));
  outside_.send(*wire_, text);
}

void Client::ask_http(Request request, std::string_view path, const std::string& body) {
  const std::string kind = request.key.kind == Kind::lock ? "/v1/" : "/v1/semaphores/";
  ask(std::move(request), "POST " + kind + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" +
                              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

// A renewal may shorten the lease to `request.ttl` from now on, whenever it is executed; acquiring
// again never does.
void Client::put_in_question(Request& request, const Known& known) {
  Known& own = *promises_.find(known.key, known.fence);
  request.fence = own.fence;
  request.certain_until = own.certain_until;
  request.over_at = own.over_at;
  const Acquisition* acquisition = acquisitions_.find(own.key, own.holder);
  if (acquisition != nullptr && acquisition->may_be_moved()) request.over_at = Time::never();
  if (request.what != Asked::acquire && request.what != Asked::enqueue) {
    own.certain_until = std::min(own.certain_until, outside_.now() + request.ttl);
  }
  own.in_question = true;
}

// As long as the server makes a lease that is to be as long as asked.
Duration Client::granted(Duration asked) const {
  const Duration most = swarm_.options.max_lease_ttl;
  return most == Duration::zero() ? asked : std::min(asked, most);
}

void Client::acquire() {
  const auto key = free_key();
  if (!key) return;
  Request request{.what = Asked::acquire, .key = *key};
  Duration asked = seconds(chance_.between(1, swarm_.lease_s_max));
  request.ttl = granted(asked);
  request.terms = some_terms(*key);
  if (!chance_.percent(30)) request.wait = seconds(chance_.between(1, swarm_.wait_s_max));
  const bool is_lock = key->kind == Kind::lock;
  if (is_http_) {
    asked -= milliseconds(chance_.below(900));
    request.ttl = granted(asked);
    request.holder = holder_;
    for (const Known* known : promises_.of_client(number_)) {
      if (known->key != *key || known->holder != holder_) continue;
      put_in_question(request, *known);
      if (chance_.percent(70)) request.terms = known->terms;
    }
    std::string body = "{" + member("key", key->name()) + "," + member("holder", holder_) + "," +
                       member("ttl_ms", ms_of(asked)) + "," +
                       member("wait_ms", ms_of(request.wait));
    if (!is_lock) body += "," + member("limit", swarm_.limit);
    body += json_of(request.terms) + "}";
    ask_http(std::move(request), "acquire", body);
    return;
  }
  const std::string as = choose_secret(request);
  std::string text = is_lock ? "l\n" : "sl\n";
  text += key->name() + "\n" + std::to_string(s_of(request.wait)) + " ";
  if (!is_lock) text += std::to_string(swarm_.limit) + " ";
  text += std::to_string(s_of(asked)) + line_of(request.terms) + as + "\n";
  ask(std::move(request), text);
}

void Client::enqueue() {
  const auto key = free_key();
  if (is_http_ || !key) return;
  const auto place = enqueued_.find({key->kind, key->number});
  if (place != enqueued_.end() && !may_ask_again(*key, place->second.secret)) return;
  Request request{.what = Asked::enqueue, .key = *key};
  const Duration asked = seconds(chance_.between(1, swarm_.lease_s_max));
  request.ttl = granted(asked);
  std::string text = key->kind == Kind::lock ? "e\n" : "se\n";
  text += key->name() + "\n";
  if (key->kind == Kind::semaphore) text += std::to_string(swarm_.limit) + " ";
  request.terms = some_terms(*key);
  const std::string as = choose_secret(request);
  text += std::to_string(s_of(asked)) + line_of(request.terms) + as + "\n";
  ask(std::move(request), text);
}

bool Client::await_turn() {
  if (enqueued_.empty() || chance_.percent(30)) return false;
  const auto picked =
      std::next(enqueued_.begin(), static_cast<int>(chance_.below(enqueued_.size())));
  Request request{.what = Asked::await_turn, .key = {picked->first.first, picked->first.second}};
  if (is_busy(request.key)) return false;
  request.ttl = picked->second.ttl;
  request.terms = picked->second.terms;
  request.secret = picked->second.secret;
  if (!chance_.percent(30)) request.wait = seconds(chance_.between(1, swarm_.wait_s_max));
  if (picked->second.granted) {
    for (const Known* known : promises_.of_client(number_)) {
      if (known->key == request.key && known->connection == wire_->id && known->two_phase) {
        put_in_question(request, *known);
      }
    }
  }
  const std::string command = request.key.kind == Kind::lock ? "w\n" : "sw\n";
  const std::string text =
      command + request.key.name() + "\n" + std::to_string(s_of(request.wait)) + "\n";
  const Fence largest_told = picked->second.largest_told;
  ask(std::move(request), text);
  asked_.back().largest_told = largest_told;  // the grant may be as old as the place
  return true;
}

void Client::renew() {
  const Known* known = pick_hold();
  if (known == nullptr) return;
  Request request{.what = Asked::renew, .key = known->key, .holder = known->holder};
  const Acquisition* acquisition = acquisitions_.find(known->key, known->holder);
  const bool must_name_ttl = acquisition != nullptr && acquisition->may_be_moved();
  const bool names_ttl = must_name_ttl || chance_.percent(60);
  const Duration asked = names_ttl ? seconds(chance_.between(1, swarm_.lease_s_max)) : known->ttl;
  request.ttl = granted(asked);
  put_in_question(request, *known);
  if (is_http_) {
    std::string body = "{" + member("key", known->key.name()) + "," +
                       member("holder", known->holder) + "," + member("token", known->fence);
    if (names_ttl) body += "," + member("ttl_ms", ms_of(asked));
    ask_http(std::move(request), "renew", body + "}");
    return;
  }
  std::string text = known->key.kind == Kind::lock ? "n\n" : "sn\n";
  text += known->key.name() + "\n" + known->holder;
  if (names_ttl) text += " " + std::to_string(s_of(asked));
  ask(std::move(request), text + "\n");
}

void Client::release() {
  const Known* known = pick_hold();
  if (known == nullptr) return;
  Request request{.what = Asked::release, .key = known->key, .holder = known->holder};
  put_in_question(request, *known);
  if (is_http_) {
    const std::string body = "{" + member("key", known->key.name()) + "," +
                             member("holder", known->holder) + "," + member("token", known->fence) +
                             "}";
    ask_http(std::move(request), "release", body);
    return;
  }
  const std::string command = known->key.kind == Kind::lock ? "r\n" : "sr\n";
  const std::string text = command + known->key.name() + "\n" + known->holder + "\n";
  ask(std::move(request), text);
}

void Client::ask_fence() {
  const Key key{Kind::lock, static_cast<std::uint32_t>(chance_.below(swarm_.keys))};
  if (is_busy(key)) return;
  if (is_http_) {
    ask({.what = Asked::fence, .key = key},
        "GET /v1/fence?key=" + key.name() + " HTTP/1.1\r\nHost: x\r\n\r\n");
  } else {
    ask({.what = Asked::other}, chance_.percent(50) ? "ping\n\n\n" : "stats\n\n\n");
  }
}

void Client::signal() {
  if (is_http_) return;
  if (!listens_) {
    listens_ = true;
    ask({.what = Asked::other}, "listen\nsig.>\n\n");
  } else {
    ask({.what = Asked::other},
        "signal\nsig." + std::to_string(wire_->id) + "\n" + std::to_string(++signals_sent_) + "\n");
  }
}

// What nobody may be believed: a hold that is another's, or was never there; or no request at all.
void Client::lie() {
  const Key key{Kind::lock, static_cast<std::uint32_t>(chance_.below(swarm_.keys))};
  if (is_busy(key)) return;
  const Fence fence = promises_.largest_told(key) + chance_.below(2);
  const bool renews = chance_.percent(50);
  if (is_http_) {
    ask_http({.what = Asked::lie, .key = key}, renews ? "renew" : "release",
             "{" + member("key", key.name()) + "," + member("holder", "liar") + "," +
                 member("token", std::max<Fence>(fence, 1)) + "}");
    return;
  }
  if (chance_.percent(20)) {
    promises_.connection_lost(wire_->id, swarm_.options.auto_release_on_disconnect, outside_.now());
    doomed_ = true;
    ask({.what = Asked::lie}, chance_.percent(50) ? "L\nkey\n1\n" : "l\nkey-0\none\n");
    return;
  }
  char token[33];
  std::snprintf(token, sizeof token, "%016llx%016llx", static_cast<unsigned long long>(fence),
                static_cast<unsigned long long>(chance_.next()));
  ask({.what = Asked::lie, .key = key},
      (renews ? "n\n" : "r\n") + key.name() + "\n" + token + "\n");
}

void Client::leave() {
  promises_.connection_lost(wire_->id, swarm_.options.auto_release_on_disconnect && !is_http_,
                            outside_.now());
  doomed_ = true;
  switch (chance_.below(3)) {
    case 0: outside_.send_end(*wire_); return;  // and hears what comes until the server closes
    case 1:
      outside_.send(*wire_, is_http_ ? "POST /v1/acq" : "l\nkey-");
      outside_.send_end(*wire_);
      return;
    default: outside_.reset(*wire_); lose_connection();
  }
}

}  // namespace lockd::simulation
