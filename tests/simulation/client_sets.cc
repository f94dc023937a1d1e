// What a client asks for of several keys in one step, and what it makes of the answers.
#include <algorithm>
#include <chrono>
#include <utility>

#include "simulation/client.h"
#include "simulation/json.h"

namespace lockd::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string_view kind_of(Key key) { return key.kind == Kind::lock ? "lock" : "semaphore"; }

// As replies name one of the keys.
std::string named(Key key, bool by_items) {
  if (!by_items) return "\"" + key.name() + "\"";
  return "{" + member("key", key.name()) + "," + member("kind", kind_of(key)) + "}";
}

bool is_listed(std::string_view body, std::string_view list, const std::string& name) {
  const std::string opening = "\"" + std::string(list) + "\":[";
  const std::size_t begin = body.find(opening);
  if (begin == std::string_view::npos) return false;
  return body.substr(begin, body.find(']', begin) - begin).find(name) != std::string_view::npos;
}

bool holds_key(const std::vector<Key>& keys, Key key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

void Client::ask_for_set() {
  Lot lot(chance_, 10);
  if (lot.falls_on(5)) {
    acquire_set();
  } else {
    act_on_set(lot.falls_on(2) ? Asked::renew : Asked::release);
  }
}

// New ones, or what it has of a set again; perhaps less, or more.
void Client::acquire_set() {
  const Known* const again = chance_.percent(40) ? pick_hold_of_set(set_names()) : nullptr;
  std::vector<Key> keys;
  if (again != nullptr) keys = some_of_set(*again);
  const std::uint64_t more = again == nullptr ? chance_.between(2, 4) : chance_.below(4) / 3;
  for (std::uint64_t i = 0; i < more; ++i) {
    const auto key = free_key();
    if (key && !holds_key(keys, *key)) keys.push_back(*key);
  }
  if (keys.size() < 2) return;

  const Duration asked =
      seconds(chance_.between(1, swarm_.lease_s_max)) - milliseconds(chance_.below(900));
  const Duration wait =
      chance_.percent(30) ? Duration::zero() : seconds(chance_.between(1, swarm_.wait_s_max));
  Request set{.what = Asked::acquire, .ttl = granted(asked)};
  set.holder = again != nullptr ? again->holder : set_names() + std::to_string(++sets_named_);
  set.wait = std::min(wait, swarm_.options.max_set_wait);
  for (const Key key : keys) add_part(set, key);
  for (Request& part : set.parts) {
    part.terms = some_terms(part.key);
    const Known* own = promises_.find(part.key, part.fence);
    if (own != nullptr && chance_.percent(90)) part.terms = own->terms;
  }
  const bool are_plain = std::ranges::all_of(set.parts, [](const Request& part) {
    return part.key.kind == Kind::lock && part.terms == Terms{};
  });
  set.by_items = !are_plain || chance_.percent(50);
  ask_about_set(std::move(set), "acquire",
                member("ttl_ms", ms_of(asked)) + "," + member("wait_ms", ms_of(wait)));
}

// Renews or releases what it has of a set, or some of it; perhaps with a key that it has not.
void Client::act_on_set(Asked what) {
  const Known* const known = pick_hold_of_set(kSetHolder);
  if (known == nullptr) return;
  Request set{.what = what, .fence = known->fence, .holder = known->holder};
  const bool names_ttl = what == Asked::renew && chance_.percent(60);
  const Duration asked = seconds(chance_.between(1, swarm_.lease_s_max));
  for (const Key key : some_of_set(*known)) {
    set.ttl = granted(names_ttl ? asked : promises_.find(key, set.fence)->ttl);
    if (what == Asked::release) set.ttl = Duration::zero();
    add_part(set, key);
  }
  // Of what was asked for on another connection, it may have more than it knows.
  const auto stranger = free_key();
  if (stranger && known->holder.starts_with(set_names()) && chance_.percent(15) &&
      !is_asked_of(set, *stranger)) {
    add_part(set, *stranger);
    std::swap(set.parts.back(), set.parts[chance_.below(set.parts.size())]);
  }
  set.by_items = chance_.percent(50) || std::ranges::any_of(set.parts, [](const Request& part) {
                   return part.key.kind == Kind::semaphore;
                 });
  std::string members = member("token", set.fence);
  if (names_ttl) members += "," + member("ttl_ms", ms_of(asked));
  ask_about_set(std::move(set), what == Asked::renew ? "renew" : "release", members);
}

void Client::ask_about_set(Request set, std::string_view path, const std::string& members) {
  std::string names;
  for (const Request& part : set.parts) {
    if (!names.empty()) names += ",";
    names += named(part.key, set.by_items);
    if (set.what != Asked::acquire || !set.by_items) continue;
    names.pop_back();
    if (part.key.kind == Kind::semaphore) names += "," + member("limit", swarm_.limit);
    names += json_of(part.terms) + "}";
  }
  const std::string body = std::string(set.by_items ? "{\"items\":[" : "{\"keys\":[") + names +
                           "]," + member("holder", set.holder) + "," + members + "}";
  ask_http(std::move(set), path, body);
}

// What the request asks of one of its keys; the hold that its holder has of that is in question.
void Client::add_part(Request& set, Key key) {
  Request& part = set.parts.emplace_back(Request{
      .what = set.what, .key = key, .holder = set.holder, .ttl = set.ttl, .wait = set.wait});
  for (const Known* known : promises_.of_client(number_)) {
    const bool is_meant = set.fence == 0 || known->fence == set.fence;
    if (known->key == key && known->holder == set.holder && is_meant) put_in_question(part, *known);
  }
}

// A hold that came with others, under a name that begins so. Of a name one thing is asked at a
// time.
const Known* Client::pick_hold_of_set(std::string_view names) {
  std::vector<Known*> mine = promises_.of_client(number_);
  std::erase_if(mine, [&](const Known* known) {
    const auto names_it = [&](const Request& request) { return request.holder == known->holder; };
    return !known->holder.starts_with(names) || std::ranges::any_of(asked_, names_it);
  });
  return mine.empty() ? nullptr : mine[chance_.below(mine.size())];
}

// The keys that it still has of the same set; perhaps without one.
std::vector<Key> Client::some_of_set(const Known& known) {
  std::vector<Key> keys;
  for (const Known* each : promises_.of_client(number_)) {
    if (each->holder == known.holder && each->fence == known.fence) keys.push_back(each->key);
  }
  if (keys.size() > 1 && chance_.percent(25)) keys.erase(keys.begin());
  return keys;
}

// Hearing.

void Client::hear_about_set(const Request& set, const Reply& reply) {
  if (set.what == Asked::acquire && !reply.ok) return hear_set_refused(set, reply);
  const bool ended_one_by_one = set.what == Asked::release && reply.ok;
  const bool names_one = set.what == Asked::renew && !reply.ok &&
                         reply.body.find("\"key\":") != std::string_view::npos;
  for (const Request& part : set.parts) {
    const std::string name = named(part.key, set.by_items);
    Reply own = reply;
    if (ended_one_by_one) own.ok = is_listed(reply.body, "released", name);
    if (ended_one_by_one && own.ok == is_listed(reply.body, "not_held", name)) {
      complain("all-are-answered", part, reply.body);
    }
    if (set.what == Asked::acquire) {
      hear_grant(part, own);
    } else if (part.fence == 0) {
      if (own.ok) complain("authority", part, reply.body);
    } else if (names_one && !is_named_missing(part, set, reply)) {
      leave_as_it_was(part);
    } else {
      hear_about_hold(part, own);
    }
  }
}

bool Client::is_named_missing(const Request& part, const Request& set, const Reply& reply) {
  std::string name = member("key", part.key.name());
  if (set.by_items) name += "," + member("kind", kind_of(part.key));
  return reply.body.find(name) != std::string_view::npos;
}

// Nothing has changed for any of its keys.
void Client::hear_set_refused(const Request& set, const Reply& reply) {
  bool has_all = true;  // for certain, and as it asked for it
  bool has_some = false;
  bool asks_otherwise = false;
  bool is_too_many = false;
  for (const Request& part : set.parts) {
    const Known* own = part.fence == 0 ? nullptr : promises_.find(part.key, part.fence);
    const bool differs = own != nullptr && own->terms != part.terms;
    has_some |= own != nullptr;
    asks_otherwise |= differs;
    is_too_many |= part.terms.permits > promises_.least_limit(part.key);
    has_all = has_all && own != nullptr && !differs && part.fence == set.parts.front().fence &&
              part.certain_until > outside_.now() && !is_revoked(part);
    leave_as_it_was(part);
  }
  const bool is_other = reply.word == "mode_mismatch" || reply.word == "permits_mismatch";
  if (is_other && !asks_otherwise) complain("own-terms", set.parts.front(), reply.word);
  if (reply.word == "limit_mismatch" && !is_too_many) {
    complain("first-limit", set.parts.front(), reply.word);
  }
  check_full_queue(set, reply);
  if (reply.word == "held" && set.wait > Duration::zero() && !has_some) {
    complain("waits-its-time", set.parts.front(), reply.word);
  }
  if (reply.word == "wait_timeout" && outside_.now() < set.call + set.wait) {
    complain("never-early", set.parts.front(), reply.word);
  }
  const bool is_passing = reply.word == "draining" || reply.word == "storage";
  if (has_all && !is_passing && !doomed_ && !outside_.server_failed_since(set.call)) {
    complain("acknowledged-in-force", set.parts.front(), reply.word);
  }
}

void Client::leave_as_it_was(const Request& part) {
  if (Known* own = promises_.find(part.key, part.fence)) own->in_question = false;
}

}  // namespace lockd::simulation
