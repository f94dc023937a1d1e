#include "engine/hold_renewer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "lockd/batch.h"

namespace lockd::detail {
namespace {

using namespace std::chrono_literals;

constexpr Duration kRenewerPauseMax = 1s;
// How often it is looked whether the journal has a renewal, and how soon one that could not be made
// is asked for again.
constexpr Duration kUntilDurable = 5ms;
constexpr Duration kBeforeAskingAgain = 100ms;

std::vector<std::string> keys_of(const std::vector<SetItem>& items) {
  std::vector<std::string> keys;
  for (const SetItem& item : items) keys.emplace_back(item.key);
  return keys;
}

std::vector<SetItem> named_by(const std::vector<std::string>& keys, std::vector<SetItem> items) {
  for (std::size_t i = 0; i < keys.size(); ++i) items[i].key = keys[i];
  return items;
}

Time due(Time expires_at, Duration ttl) {
  const auto left = static_cast<std::uint64_t>((ttl - ttl / 3).count());
  return {expires_at.ns - std::min(expires_at.ns, left)};
}

bool says_gone(Outcome outcome) {
  return outcome == Outcome::expired || outcome == Outcome::stale || outcome == Outcome::not_holder;
}

}  // namespace

KeptHold::KeptHold(std::shared_ptr<HoldRenewer> by, const std::vector<SetItem>& items,
                   std::string_view holder, const Grant& granted, OnLost told)
    : renewer(std::move(by)),
      keys(keys_of(items)),
      items(named_by(keys, items)),
      holder(holder),
      grant(granted),
      on_lost(std::move(told)),
      certainty(granted.expires_at),
      renew_at(due(granted.expires_at, granted.ttl)) {}

HoldRenewer::HoldRenewer(Engine& engine) : engine_(engine), clock_(engine) {
  thread_.emplace(clock_, kRenewerPauseMax, [this] { return turn(); });
}

Time HoldRenewer::now() const { return engine_.now(); }

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
    withdraw(hold);
    if (hold.loss) return *hold.loss;
    if (hold.release) return *hold.release;
  }
  // One that is over may be in force all the same, by a renewal that is not durable yet.
  const bool was_held = hold.certainty.end(engine_.now());
  const ReleaseSetResult result = engine_.release_all(hold.id());
  Outcome outcome = was_held ? result.outcome : Outcome::expired;
  if (result && std::ranges::find(result.released, false) != result.released.end()) {
    outcome = Outcome::expired;
  }
  MutexLock lock(mutex_);
  hold.release = outcome;
  return outcome;
}

std::optional<Outcome> HoldRenewer::loss_of(const KeptHold& hold) {
  MutexLock lock(mutex_);
  if (hold.loss || hold.release) return hold.release ? std::nullopt : hold.loss;
  // The thread may be about to find out.
  return Outcome::expired;
}

void HoldRenewer::stop() {
  thread_.reset();
  {
    MutexLock lock(mutex_);
    while (!holds_.empty()) lose(*holds_.begin()->second, Outcome::closed);
  }
  while (tell_one()) {
  }
}

Time HoldRenewer::turn() {
  if (const Holds due = take_due(engine_.now()); !due.empty()) renew(due);
  while (tell_one()) {
  }
  return next();
}

// Those to be renewed now. What the journal has made durable by now is believed in.
HoldRenewer::Holds HoldRenewer::take_due(Time now) {
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
  std::vector<SetResult> answers;
  answers.reserve(due.size());
  for (const auto& hold : due) answers.push_back(batch.renew_all(hold->id(), hold->grant.ttl));
  const Position position = batch.commit();
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < due.size(); ++i) {
    // Its owner may have released it meanwhile.
    if (holds_.contains(due[i].get())) take_answer(*due[i], answers[i], position);
  }
}

void HoldRenewer::take_answer(KeptHold& hold, const SetResult& answer, Position position) {
  if (answer) {
    hold.renewal = {position, answer->expires_at};
    hold.renew_at = due(answer->expires_at, answer->ttl);
    settle(hold);
  } else if (says_gone(answer.outcome)) {
    lose(hold, answer.outcome);
  } else {
    hold.renew_at = engine_.now() + kBeforeAskingAgain;
  }
}

void HoldRenewer::settle(KeptHold& hold) {
  if (!hold.renewal || !engine_.is_durable(hold.renewal->position)) return;
  hold.certainty.extend(engine_.now(), hold.renewal->expires_at);
  hold.renewal.reset();
}

void HoldRenewer::lose(KeptHold& hold, Outcome how) {
  hold.certainty.end(engine_.now());
  hold.loss = how;
  auto kept = holds_.extract(&hold);
  unnotified_.push_back(std::move(kept.mapped()));
}

// Notifies the owner that has waited for longest. False when nobody has to be notified.
bool HoldRenewer::tell_one() {
  std::shared_ptr<KeptHold> hold;
  {
    MutexLock lock(mutex_);
    if (unnotified_.empty()) return false;
    hold = std::move(unnotified_.front());
    unnotified_.pop_front();
    telling_ = hold.get();
    telling_on_ = std::this_thread::get_id();
  }
  // What is left of it is for nobody any more.
  Batch(engine_).release_all(hold->id());
  hold->lost.request_stop();
  if (hold->on_lost) hold->on_lost(*loss_of(*hold));
  MutexLock lock(mutex_);
  telling_ = nullptr;
  told_.notify_all();
  return true;
}

// From here on nobody renews it, and its owner is told nothing, unless it is being told by us.
void HoldRenewer::withdraw(const KeptHold& hold) {
  std::erase_if(unnotified_, [&](const auto& lost) { return lost.get() == &hold; });
  while (telling_ == &hold && telling_on_ != std::this_thread::get_id()) told_.wait(mutex_);
  holds_.erase(&hold);
}

Time HoldRenewer::next() {
  MutexLock lock(mutex_);
  const Time now = engine_.now();
  Time next = now + kRenewerPauseMax;
  for (const auto& [_, hold] : holds_) {
    const Time look = hold->renewal ? now + kUntilDurable : hold->renew_at;
    next = std::min({next, look, hold->certainty.until()});
  }
  return next;
}

}  // namespace lockd::detail
