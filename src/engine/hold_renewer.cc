#include "engine/hold_renewer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <utility>

namespace lockd::detail {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRenewerPauseMax = 1s;
// Between checks whether a renewal is durable, and before a rejected renewal is retried.
constexpr Duration kDurabilityCheckInterval = 5ms;
constexpr Duration kRetryDelay = 100ms;

std::vector<std::string> keys_of(const KeyItems& items) {
  std::vector<std::string> keys;
  for (const KeyItem& item : items) keys.emplace_back(item.key);
  return keys;
}

// The items with views of `keys`, which outlive the request.
std::vector<KeyItem> items_of(const std::vector<std::string>& keys, const KeyItems& items) {
  std::vector<KeyItem> own(items.begin(), items.end());
  for (std::size_t i = 0; i < keys.size(); ++i) own[i].key = keys[i];
  return own;
}

// When a third of the lease has passed.
Time renewal_time(Time expires_at, Duration ttl) {
  const auto left = static_cast<std::uint64_t>((ttl - ttl / 3).count());
  return {expires_at.ns - std::min(expires_at.ns, left)};
}

}  // namespace

KeptHold::KeptHold(std::shared_ptr<HoldRenewer> by, const KeyItems& items, std::string_view holder,
                   const Grant& granted, OnLost on_loss)
    : renewer(std::move(by)),
      keys(keys_of(items)),
      items(items_of(keys, items)),
      holder(holder),
      grant(granted),
      on_lost(std::move(on_loss)),
      certainty(granted.expires_at),
      renew_at(renewal_time(granted.expires_at, granted.ttl)) {}

HoldRenewer::HoldRenewer(Engine& engine, const Clock& clock) : engine_(engine), clock_(clock) {
  thread_.emplace(clock_, kRenewerPauseMax, [this] { return turn(); });
}

void HoldRenewer::keep(const std::shared_ptr<KeptHold>& hold) {
  Time renew_at;
  {
    MutexLock lock(mutex_);
    holds_.emplace(hold.get(), hold);
    renew_at = hold->renew_at;
  }
  thread_->notice(renew_at);
}

Outcome HoldRenewer::release(KeptHold& hold) {
  {
    MutexLock lock(mutex_);
    holds_.erase(&hold);  // from here on the hold is neither renewed nor lost
  }
  losses_.withdraw(hold);
  {
    MutexLock lock(mutex_);
    if (hold.loss) return *hold.loss;
    if (hold.release) return *hold.release;
  }
  // Released even if it is over, because a renewal that is not durable yet may be in force.
  const bool was_held = hold.certainty.end(clock_.now());
  const ReleaseResult result = engine_.release(hold.id());
  const bool is_whole = std::popcount(result.released) == std::ssize(hold.keys);
  const bool is_lost = !was_held || is_not_held(result.outcome) || (result && !is_whole);
  const Outcome outcome = is_lost ? Outcome::expired : result.outcome;
  MutexLock lock(mutex_);
  hold.release = outcome;
  return outcome;
}

std::optional<Outcome> HoldRenewer::loss_of(const KeptHold& hold) {
  MutexLock lock(mutex_);
  if (hold.loss || hold.release) return hold.release ? std::nullopt : hold.loss;
  // The renewing thread has not detected the end of the lease yet.
  return Outcome::expired;
}

void HoldRenewer::stop() {
  thread_.reset();
  {
    MutexLock lock(mutex_);
    while (!holds_.empty()) lose(*holds_.begin()->second, Outcome::closed);
  }
  while (notify_one()) {
  }
}

Time HoldRenewer::turn() {
  if (const Holds due = settle_and_collect_due(clock_.now()); !due.empty()) renew(due);
  while (notify_one()) {
  }
  return next();
}

// Applies durable renewals, ends expired holds and returns the holds to renew now.
HoldRenewer::Holds HoldRenewer::settle_and_collect_due(Time now) {
  Holds due;
  MutexLock lock(mutex_);
  for (auto each = holds_.begin(); each != holds_.end();) {
    const std::shared_ptr<KeptHold> hold = (each++)->second;
    settle(*hold);
    if (!hold->certainty.lasts(now)) {
      lose(*hold, Outcome::expired);
    } else if (!hold->renewal && now >= hold->renew_at) {
      due.push_back(hold);
    }
  }
  return due;
}

void HoldRenewer::renew(const Holds& due) {
  Batch batch(engine_);
  std::vector<Answer> answers;
  answers.reserve(due.size());
  for (const auto& hold : due) answers.push_back(batch.renew(hold->id(), hold->grant.ttl));
  const Position position = batch.commit();
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < due.size(); ++i) {
    // The owner may have released the hold meanwhile.
    if (holds_.contains(due[i].get())) apply_answer(*due[i], answers[i], position);
  }
}

void HoldRenewer::apply_answer(KeptHold& hold, const Answer& answer, Position position) {
  if (answer.outcome == Outcome::ok) {
    hold.renewal = {position, answer.grant.expires_at};
    hold.renew_at = renewal_time(answer.grant.expires_at, answer.grant.ttl);
    settle(hold);
  } else if (is_not_held(answer.outcome)) {
    lose(hold, answer.outcome);
  } else {
    hold.renew_at = clock_.now() + kRetryDelay;
  }
}

void HoldRenewer::settle(KeptHold& hold) {
  if (!hold.renewal || !engine_.is_durable(hold.renewal->position)) return;
  hold.certainty.extend(clock_.now(), hold.renewal->expires_at);
  hold.renewal.reset();
}

void HoldRenewer::lose(KeptHold& hold, Outcome how) {
  hold.certainty.end(clock_.now());
  hold.loss = how;
  auto kept = holds_.extract(&hold);
  losses_.add(std::move(kept.mapped()));
}

bool HoldRenewer::notify_one() {
  return losses_.notify_one([this](KeptHold& hold) {
    Batch(engine_).release(hold.id());  // the keys of the hold that are still held
    hold.lost.request_stop();
    if (hold.on_lost) hold.on_lost(*loss_of(hold));
  });
}

Time HoldRenewer::next() {
  MutexLock lock(mutex_);
  const Time now = clock_.now();
  Time next = now + kRenewerPauseMax;
  for (const auto& [_, hold] : holds_) {
    const Time check = hold->renewal ? now + kDurabilityCheckInterval : hold->renew_at;
    next = std::min({next, check, hold->certainty.until()});
  }
  return next;
}

}  // namespace lockd::detail
