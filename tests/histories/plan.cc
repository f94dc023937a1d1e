#include "histories/plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockd::histories {
namespace {

constexpr Instant kMillisecond = 1'000'000;
constexpr std::size_t kHeldMax = 3;

}  // namespace

Plan::Plan(Recording& recording, const KeyRing& keys, Traits traits, std::uint64_t seed)
    : recording_(recording), keys_(keys), traits_(traits), random_(seed) {}

std::optional<Request> Plan::next() {
  if (again_.has_value()) return *std::exchange(again_, std::nullopt);
  if (ticket_.has_value()) {
    Request request = ticket_->request;
    request.function = Function::wait;
    request.timeout = one_in(4) ? kSecond : 30 * kSecond;
    return request;
  }
  if (echo_.has_value()) {
    const Held echo = *std::exchange(echo_, std::nullopt);
    return follow_up(one_in(2) ? Function::renew : Function::release, echo);
  }
  if (finishing_ && held_.empty()) return std::nullopt;
  if (held_.empty() || (!finishing_ && held_.size() < kHeldMax && one_in(12))) return ask();
  const Held& held = held_[random_() % held_.size()];
  const bool renews = now() < keeps_until_ || (!finishing_ && one_in(2));
  return follow_up(renews ? Function::renew : Function::release, held);
}

Request Plan::ask() {
  const bool is_own = random_() % 100 < 45;
  const PlannedKey& key = is_own ? traits_.own : choose_key();
  Request request{.key = key.key,
                  .key_name = recording_.key(key.key),
                  .kind = key.kind,
                  .limit = key.limit,
                  .ttl = choose_ttl(),
                  .timeout = choose_timeout(is_own),
                  .token = {}};
  choose_terms(request);
  if (traits_.named && !keys_.groups.empty() && one_in(5)) choose_set(request);
  // A second lock is not waited for: two who wait for each other would do so for long.
  if (!held_.empty()) request.timeout = 0;
  if (traits_.named || one_in(2)) request.rid = recording_.new_rid();
  if (!traits_.named && held_.empty() && one_in(6)) request.function = Function::enqueue;
  return request;
}

// Who shares a lock, and who takes how many permits, is the same to the rest of the plan.
template <typename Asked>
void Plan::choose_terms(Asked& asked) {
  if (asked.kind == Kind::lock) {
    if (one_in(3)) asked.mode = Mode::shared;
  } else if (one_in(2)) {
    asked.permits = 1 + static_cast<std::uint32_t>(random_() % asked.limit);
  }
}

// Some of a group, in any order. While a set waits its keys may stand free, so none waits for long.
void Plan::choose_set(Request& request) {
  std::vector<PlannedKey> keys = keys_.groups[random_() % keys_.groups.size()];
  std::shuffle(keys.begin(), keys.end(), random_);
  keys.resize(2 + random_() % (keys.size() - 1));
  for (const PlannedKey& key : keys) {
    RequestPart& part = request.parts.emplace_back(RequestPart{
        .key = key.key, .key_name = recording_.key(key.key), .kind = key.kind, .limit = key.limit});
    choose_terms(part);
  }
  request.timeout = one_in(2) ? 0 : one_in(2) ? 2 * kSecond : 50 * kMillisecond;
}

// All, or some of them.
void Plan::choose_some(std::vector<RequestPart>& parts) {
  if (parts.empty() || !one_in(4)) return;
  std::shuffle(parts.begin(), parts.end(), random_);
  parts.resize(1 + random_() % parts.size());
}

const PlannedKey& Plan::choose_key() {
  if (!keys_.groups.empty() && one_in(8)) {
    const auto& group = keys_.groups[random_() % keys_.groups.size()];
    return group[random_() % group.size()];
  }
  const auto& ring = one_in(12) ? keys_.wanted : keys_.shared;
  return ring[random_() % ring.size()];
}

Instant Plan::choose_ttl() {
  constexpr std::array<Instant, 4> kLeases{20, 100, 400, 2000};
  const Instant ttl = traits_.named ? kLeases[random_() % kLeases.size()] * kMillisecond
                                    : static_cast<Instant>(1 + random_() % 3) * kSecond;
  return ttl * traits_.lease_scale;
}

Instant Plan::choose_timeout(bool is_own) {
  if (is_own ? !one_in(8) : !one_in(3)) return 0;
  if (one_in(2)) return 30 * kSecond;
  return traits_.named ? 50 * kMillisecond : kSecond;
}

Request Plan::follow_up(Function function, const Held& held) {
  // A renewal may also shorten.
  const bool other_lease = function == Function::renew && one_in(4);
  std::vector<RequestPart> parts = held.parts;
  choose_some(parts);
  return {.function = function,
          .key = held.key.key,
          .key_name = recording_.key(held.key.key),
          .kind = held.key.kind,
          .limit = held.key.limit,
          .ttl = other_lease ? choose_ttl() : held.ttl,
          .timeout = 0,
          .fence = held.fence,
          .token = held.token,
          .rid = held.rid,
          .parts = std::move(parts)};
}

void Plan::heard(const Request& request, const Reply& reply) {
  switch (request.function) {
    case Function::acquire:
      if (reply.result == Result::ok) granted(request, reply);
      if (reply.result == Result::info && request.rid != 0 && !one_in(4)) again_ = request;
      if (reply.result == Result::ok && !traits_.named && request.rid != 0 && one_in(20))
        again_ = request;
      break;
    case Function::enqueue:
      if (reply.result == Result::ok) granted(request, reply);
      if (reply.result == Result::info && request.rid != 0 && !one_in(4)) again_ = request;
      if (reply.result == Result::queued || (reply.result == Result::ok && one_in(2))) {
        ticket_ = {request, reply.result == Result::ok};
        ticket_->request.fence = reply.fence;
      }
      break;
    case Function::wait: {
      const bool was_granted = ticket_.has_value() && ticket_->granted;
      ticket_.reset();
      if (reply.result == Result::ok && !was_granted) granted(request, reply);
      if (reply.result == Result::not_held && was_granted) over(request.fence);
      break;
    }
    case Function::renew:
    case Function::release: {
      if (!request.parts.empty()) return heard_of_set(request, reply);
      const bool let_go = request.function == Function::release && reply.result == Result::ok;
      if (let_go && one_in(20)) {
        const auto held = std::find_if(held_.begin(), held_.end(),
                                       [&](const Held& one) { return one.fence == request.fence; });
        if (held != held_.end()) echo_ = *held;
      }
      const bool unsure = reply.result != Result::ok && reply.result != Result::not_held &&
                          reply.result != Result::not_leader;
      if (let_go || reply.result == Result::not_held || (unsure && one_in(3))) over(request.fence);
      break;
    }
    default: break;
  }
}

// What is over of a set is forgotten, one by one.
void Plan::heard_of_set(const Request& request, const Reply& reply) {
  const auto held = std::find_if(held_.begin(), held_.end(),
                                 [&](const Held& one) { return one.rid == request.rid; });
  if (held == held_.end()) return;
  for (std::size_t i = 0; i < request.parts.size(); ++i) {
    const Result result = reply.of_part(i);
    const bool let_go = request.function == Function::release && result == Result::ok;
    const bool unsure = request.function == Function::release && result != Result::not_leader;
    if (!let_go && result != Result::not_held && !(unsure && one_in(3))) continue;
    std::erase_if(held->parts, [&](const RequestPart& part) {
      return part.key == request.parts[i].key && part.kind == request.parts[i].kind;
    });
  }
  if (held->parts.empty()) held_.erase(held);
}

// Now and then it never comes back: the lease ends.
void Plan::granted(const Request& request, const Reply& reply) {
  over(reply.fence);  // it asked again for what it has
  if (one_in(traits_.named ? 40 : 500)) return;
  held_.push_back({{request.key, request.kind, request.limit},
                   reply.fence,
                   reply.token,
                   request.rid,
                   request.ttl,
                   request.mode,
                   request.permits,
                   request.parts});
}

void Plan::over(Fence fence) {
  std::erase_if(held_, [fence](const Held& held) { return held.fence == fence; });
}

// Its place in the queue it may get back by its secret, and what it held likewise.
void Plan::disconnected() {
  const bool resumes = ticket_.has_value() && ticket_->request.rid != 0 && !one_in(4);
  if (resumes) {
    again_ = ticket_->request;
    again_->function = Function::enqueue;
    again_->fence = 0;
  }
  ticket_.reset();
  if (!traits_.named && !again_.has_value() && one_in(2)) take_back();
}

void Plan::take_back() {
  const auto held =
      std::find_if(held_.begin(), held_.end(), [](const Held& one) { return one.rid != 0; });
  if (held == held_.end()) return;
  again_ = {.key = held->key.key,
            .key_name = recording_.key(held->key.key),
            .kind = held->key.kind,
            .limit = held->key.limit,
            .mode = held->mode,
            .permits = held->permits,
            .ttl = held->ttl,
            .timeout = held_.size() > 1 ? 0 : choose_timeout(false),
            .token = {},
            .rid = held->rid};
  held_.erase(held);
}

void Plan::forget() {
  ticket_.reset();
  again_.reset();
  echo_.reset();
  held_.clear();
}

}  // namespace lockd::histories
