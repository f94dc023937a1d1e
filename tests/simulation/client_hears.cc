// What a client makes of what it is told.
#include <algorithm>
#include <charconv>
#include <utility>

#include "crash/violation.h"
#include "simulation/client.h"

namespace lockd::simulation {
namespace {

// The number behind `"name":` in a JSON text; 0 if there is none.
std::uint64_t number_in(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":";
  const std::size_t at = json.find(key);
  std::uint64_t number = 0;
  if (at == std::string_view::npos) return 0;
  std::from_chars(json.data() + at + key.size(), json.data() + json.size(), number);
  return number;
}

std::string_view text_in(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":\"";
  const std::size_t at = json.find(key);
  if (at == std::string_view::npos) return {};
  json.remove_prefix(at + key.size());
  return json.substr(0, json.find('"'));
}

// Cuts off what is before the next space.
std::string_view next_word(std::string_view& line) {
  const std::size_t space = line.find(' ');
  const std::string_view word = line.substr(0, space);
  line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
  return word;
}

Fence fence_of(std::string_view token) {
  Fence fence = 0;
  std::from_chars(token.data(), token.data() + std::min<std::size_t>(token.size(), 16), fence, 16);
  return fence;
}

}  // namespace

void Client::receive(std::string_view bytes) {
  if (wire_ == nullptr) return;
  unread_ += bytes;
  std::size_t taken = 0;
  while (true) {
    const std::string_view rest = std::string_view(unread_).substr(taken);
    if (is_http_) {
      const std::size_t size = hear_http(rest);
      if (size == 0) break;
      taken += size;
      continue;
    }
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    hear_line(rest.substr(0, end));
    taken += end + 1;
  }
  unread_.erase(0, taken);
}

void Client::receive_end() {
  if (wire_ != nullptr) lose_connection();
}

// Of what was on its way nobody knows: it is not asked for again, but by a secret.
void Client::lose_connection() {
  const auto forget = [this](const Request& request) {
    if (request.fence == 0) return;
    if (const Known* known = promises_.find(request.key, request.fence)) promises_.forget(*known);
  };
  for (const Request& request : asked_) {
    settle(request, /*is_lost=*/true);
    std::ranges::for_each(request.parts, forget);
    if (request.parts.empty()) forget(request);
  }
  asked_.clear();
  enqueued_.clear();
  unread_.clear();
  wire_ = nullptr;
  listens_ = doomed_ = false;
  signals_sent_ = 0;
  signals_heard_.clear();
}

void Client::hear_line(std::string_view line) {
  if (line.starts_with("sig ")) return hear_push(line.substr(4));
  if (asked_.empty()) complain("settled-once", {.what = Asked::other}, line);
  const Request request = std::move(asked_.front());
  asked_.pop_front();
  std::string_view rest = line;
  Reply reply{.word = next_word(rest)};
  reply.ok = reply.word == "ok" || reply.word == "acquired";
  if (reply.ok) reply.token = next_word(rest);
  reply.fence = fence_of(reply.token);
  hear(request, reply);
}

// Of one publisher's signals each comes once, in order; some may not come.
void Client::hear_push(std::string_view line) {
  const std::string channel(next_word(line));
  std::uint64_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  std::uint64_t& last = signals_heard_[channel];
  if (number <= last) {
    complain("signals-in-order", {.what = Asked::other},
             channel + " " + std::to_string(number) + " after " + std::to_string(last));
  }
  last = number;
}

std::size_t Client::hear_http(std::string_view text) {
  const std::size_t head = text.find("\r\n\r\n");
  if (head == std::string_view::npos) return 0;
  const std::string_view name = "Content-Length: ";
  const std::size_t at = text.find(name);
  std::size_t size = 0;
  if (at < head) std::from_chars(text.data() + at + name.size(), text.data() + head, size);
  if (text.size() < head + 4 + size) return 0;
  const std::string_view body = text.substr(head + 4, size);
  if (asked_.empty()) {
    if (!doomed_) complain("settled-once", {.what = Asked::other}, body);
    return head + 4 + size;  // to half a request
  }
  const Request request = std::move(asked_.front());
  asked_.pop_front();
  const bool ok = text.substr(9, 3) == "200";
  hear(request, {.ok = ok,
                 .word = ok ? "ok" : text_in(body, "error"),
                 .token = request.holder,
                 .fence = number_in(body, "token"),
                 .body = body});
  return head + 4 + size;
}

void Client::hear(const Request& request, const Reply& reply) {
  if (reply.word == "draining") doomed_ = true;
  settle(request, /*is_lost=*/false);
  if (!request.parts.empty()) return hear_about_set(request, reply);
  switch (request.what) {
    case Asked::acquire:
    case Asked::await_turn:
      return reply.ok ? hear_grant(request, reply) : hear_refusal(request, reply);
    case Asked::enqueue: return hear_enqueued(request, reply);
    case Asked::renew:
    case Asked::release: return hear_about_hold(request, reply);
    case Asked::fence:
      // With an interval between syncs, a hold from before may be in force again.
      if (reply.ok && reply.fence < request.largest_told &&
          swarm_.sync_interval == Duration::zero()) {
        complain("fences-rise", request, reply.word);
      }
      return;
    case Asked::lie:
      if (reply.ok) complain("authority", request, reply.word);
      return;
    case Asked::other: return;
  }
}

void Client::hear_grant(const Request& request, const Reply& reply) {
  const std::string holder(is_http_ ? std::string_view(request.holder) : reply.token);
  Known* const own = promises_.find(request.key, reply.fence);
  if (own != nullptr && own->holder == holder && own->terms != request.terms) {
    complain("own-terms", request, reply.word);
  }
  if (!request.secret.empty() && !holder.ends_with(request.secret)) {
    complain("own-secret", request, reply.word);
  }
  if (request.what != Asked::enqueue) leave_place(request);
  if (request.fence != 0 && request.fence != reply.fence) {  // another grant: the old one was over
    expect_over(request, reply);
  }
  if (is_told_of_anothers(request, own)) return;
  const bool may_go = holds_may_go() || may_be_passed_on(request);
  promises_.granted(outside_.now(),
                    {.key = request.key,
                     .client = number_,
                     .holder = holder,
                     .terms = request.terms,
                     .fence = reply.fence,
                     .ttl = request.ttl,
                     .certain_until = may_go ? outside_.now() : request.call + request.ttl,
                     .connection = is_http_ || doomed_ || may_go ? 0 : wire_->id,
                     .may_go = may_go},
                    request.largest_told);
}

// Of a hold that is a later connection's, and stays so: this request may have moved its lease.
bool Client::is_told_of_anothers(const Request& request, Known* own) {
  if (own == nullptr || !may_be_passed_on(request)) return false;
  if (own->connection != acquisition_of(request)->newest()) return false;
  if (request.fence == own->fence) own->in_question = false;
  own->heard = outside_.now();
  own->over_at = std::max(own->over_at, outside_.now() + request.ttl);
  return true;
}

// It has no place in the queue any more that it could await.
void Client::leave_place(const Request& request) {
  const auto place = enqueued_.find({request.key.kind, request.key.number});
  if (place == enqueued_.end()) return;
  const bool is_its = !request.secret.empty() && place->second.secret == request.secret;
  if (request.what == Asked::await_turn || is_its) enqueued_.erase(place);
}

// Whether the hold that it is about must have been there all the time.
bool Client::was_certain(const Request& request) {
  const Known* known = promises_.find(request.key, request.fence);
  return request.certain_until > outside_.now() && !is_revoked(request) &&
         (known == nullptr || !known->may_go) && !outside_.server_failed_since(request.call);
}

// It is there no more. A server that goes refuses more than it grants.
void Client::expect_over(const Request& request, const Reply& reply) {
  const bool may_be_gone = reply.ok ? holds_may_go() : doomed_;
  if (was_certain(request) && !may_be_gone) {
    complain("acknowledged-in-force", request, reply.word);
  }
  if (const Known* known = promises_.find(request.key, request.fence)) promises_.forget(*known);
}

// Then nothing has changed. A journal that has failed says the same, and nothing is known then.
bool Client::says_full(const Request& request, const Reply& reply) const {
  return (reply.word == "error_storage" || reply.word == "storage") &&
         !outside_.server_failed_since(request.call);
}

// It has the key already, in another way than it asks for now. On a line one asks twice by a secret
// only.
bool Client::asked_otherwise(const Request& request, const Reply& reply) {
  const bool is_said =
      reply.word.ends_with("mode_mismatch") || reply.word.ends_with("permits_mismatch");
  const Acquisition* acquisition = acquisition_of(request);
  const bool was_asked_otherwise =
      acquisition != nullptr && acquisition->was_asked_otherwise(request.terms);
  if (is_said && !is_http_ && !was_asked_otherwise) complain("own-terms", request, reply.word);
  const Known* own = request.fence == 0 ? nullptr : promises_.find(request.key, request.fence);
  return is_said && (own == nullptr ? was_asked_otherwise : own->terms != request.terms);
}

// Only the letter of dflockd refuses a try because of a full queue.
void Client::check_full_queue(const Request& request, const Reply& reply) {
  const bool is_try = request.what == Asked::acquire && request.wait == Duration::zero();
  const bool may_be_refused =
      swarm_.options.max_waiters != 0 && (!is_try || swarm_.options.dflockd_letter);
  if (reply.word.ends_with("max_waiters") && !may_be_refused) {
    complain("waits-its-time", request, reply.word);
  }
}

void Client::hear_refusal(const Request& request, const Reply& reply) {
  const bool unchanged = reply.word == "error_draining" || reply.word == "draining" ||
                         says_full(request, reply) || asked_otherwise(request, reply);
  if (!unchanged && !reply.word.ends_with("mismatch")) leave_place(request);
  // All name one limit, and whatever an admin sets, that one goes on to be good; but for more
  // permits than there were at any time.
  const bool is_too_many = request.terms.permits > promises_.least_limit(request.key);
  if (reply.word.ends_with("limit_mismatch") && !is_too_many) {
    complain("first-limit", request, reply.word);
  }
  check_full_queue(request, reply);
  const bool timed_out = reply.word == "timeout" || reply.word == "wait_timeout";
  if (timed_out && outside_.now() < request.call + request.wait) {
    complain("never-early", request, reply.word);
  }
  if (request.what == Asked::acquire && reply.word == "error" && !may_be_passed_on(request) &&
      !doomed_ && !outside_.server_failed_since(request.call) &&
      !outside_.server_stopped_since(request.call)) {
    complain("displaced-by-later", request, reply.word);
  }
  if (request.fence == 0) return;
  if (reply.word == "storage" || unchanged) {
    promises_.find(request.key, request.fence)->in_question = false;
    return;
  }
  expect_over(request, reply);  // a named one asked again, or a two-phase one that was granted
}

void Client::hear_enqueued(const Request& request, const Reply& reply) {
  const std::pair key{request.key.kind, request.key.number};
  if (reply.word == "queued") {
    if (request.fence != 0) expect_over(request, reply);
    enqueued_[key] = {false, request.terms, request.ttl, request.largest_told, request.secret};
  } else if (reply.ok) {
    enqueued_[key] = {true, request.terms, request.ttl, request.largest_told, request.secret};
    hear_grant(request, reply);
    Known& told = *promises_.find(request.key, reply.fence);
    told.two_phase = told.connection == wire_->id;
  } else {
    const bool is_error = reply.word == "error" || reply.word == "error_already_enqueued";
    if (is_error && !doomed_ && !may_be_passed_on(request) &&
        !outside_.server_failed_since(request.call)) {
      complain("two-phase", request, reply.word);
    }
    hear_refusal(request, reply);
  }
}

// A renewal or a release.
void Client::hear_about_hold(const Request& request, const Reply& reply) {
  Known* known = promises_.find(request.key, request.fence);
  if (says_full(request, reply)) {
    if (known != nullptr) known->in_question = false;
    return;
  }
  if (!reply.ok && was_certain(request) && !doomed_) {
    complain("acknowledged-in-force", request, reply.word);
  }
  // Over a power failure, a clock that jumps makes leases longer or shorter, and with an interval
  // between syncs a lease from before may be in force again. Who asked by the same secret elsewhere
  // may have moved it.
  const Acquisition* const acquisition = acquisition_of(request);
  const bool is_moved_by_it_alone = acquisition == nullptr || acquisition->connections.size() <= 1;
  if (reply.ok && request.over_at <= request.call && is_moved_by_it_alone &&
      swarm_.wall_jump == 0 && swarm_.sync_interval == Duration::zero()) {
    complain("never-revived", request, reply.word);
  }
  if (reply.ok && promises_.was_revoked_before(request.key, request.fence, request.call) &&
      swarm_.sync_interval == Duration::zero()) {
    complain("never-revived", request, reply.word);
  }
  if (known == nullptr) return;
  if (request.what == Asked::release && known->two_phase && known->connection == wire_->id) {
    enqueued_.erase({request.key.kind, request.key.number});
  }
  if (request.what == Asked::release && reply.ok) end_acquisition(request);
  if (!reply.ok || request.what == Asked::release) return promises_.forget(*known);
  known->in_question = false;
  known->heard = outside_.now();
  known->over_at = outside_.now() + request.ttl;
  known->certain_until = holds_may_go() || known->may_go || is_revoked(request)
                             ? outside_.now()
                             : request.call + request.ttl;
}

void Client::complain(std::string_view rule, const Request& request, std::string_view reply) const {
  static constexpr std::string_view kAsked[] = {"acquire", "enqueue", "await", "renew",
                                                "release", "fence",   "other", "lie"};
  crash::violated(std::string(rule),
                  describe() + " asked at " + std::to_string(request.call.ns) + " to " +
                      std::string(kAsked[static_cast<std::size_t>(request.what)]) + " " +
                      request.key.name() + " fence " + std::to_string(request.fence) + " ttl " +
                      std::to_string(request.ttl.count()) + ", certain until " +
                      std::to_string(request.certain_until.ns) + ", and at " +
                      std::to_string(outside_.now().ns) + " was told '" + std::string(reply) + "'");
}

std::string Client::describe() const {
  return "client " + std::to_string(number_) + (is_http_ ? " (http)" : " (line)") +
         (wire_ == nullptr ? "" : " on wire " + std::to_string(wire_->id));
}

}  // namespace lockd::simulation
