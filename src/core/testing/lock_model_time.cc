// What falls due, and how far the model follows the table.
#include <algorithm>
#include <optional>
#include <tuple>

#include "core/testing/lock_model.h"

namespace lockd {
namespace {

using Answer = LockModel::Answer;
using Key = LockModel::Key;

}  // namespace

void LockModel::watch(const Effects& seen) {
  seen_ = &seen;
  events_.clear();
  settled_.clear();
  earliest_ = Time::never();
}

// What the table has ended by itself ends here too, as far as the table has come.
void LockModel::follow(Time now) {
  now_ = std::max(now_, now);
  if (seen_->events.empty() && seen_->wait_results.empty()) return;
  for (Key& key : keys_) {
    while (is_ahead(key) && run_next(key)) {
    }
  }
}

// Whether the table has ended something of this key that is still here.
bool LockModel::is_ahead(const Key& key) const {
  return std::ranges::any_of(key.holds, [&](const Held& hold) { return has_ended(hold); }) ||
         std::ranges::any_of(key.line, [&](const Place& place) { return has_settled(place); });
}

bool LockModel::has_ended(const Held& hold) const {
  return std::ranges::any_of(seen_->events, [&](const Event& event) {
    return event.type == Event::Type::ended && event.fence == hold.fence;
  });
}

bool LockModel::has_settled(const Place& place) const {
  return place.listener != nullptr &&
         std::ranges::any_of(seen_->wait_results, [&](const WaitResult& settled) {
           return settled.listener == place.listener && settled.id == place.id;
         });
}

// Ends what comes first of all that is due: by deadline, leases before waits, and among equals one
// that the table has ended. False when nothing is due.
bool LockModel::run_next(Key& key) {
  using Rank = std::tuple<Time, bool, bool>;
  Rank first{Time::never(), true, true};
  std::optional<Fence> lease;
  std::optional<std::size_t> wait;
  for (const Held& hold : key.holds) {
    const Rank rank{hold.deadline, false, !has_ended(hold)};
    if (hold.deadline > now_ || rank >= first) continue;
    first = rank;
    lease = hold.fence;
  }
  for (std::size_t i = 0; i < key.line.size(); ++i) {
    const Rank rank{key.line[i].deadline, true, !has_settled(key.line[i])};
    if (key.line[i].deadline > now_ || rank >= first) continue;
    first = rank;
    wait = i;
  }
  if (wait.has_value()) {
    settle(key, *wait, Outcome::timeout);
  } else if (lease.has_value()) {
    end_hold(key, *lease, EndCause::expired);
    pass_on(key);
  }
  return wait.has_value() || lease.has_value();
}

void LockModel::run_all(Key& key) {
  while (run_next(key)) {
  }
}

// The key that a call is about, with everything that is due there ended.
Key* LockModel::at(Time now, Kind kind, std::string_view name) {
  follow(now);
  Key* key = find_key(kind, name);
  if (key != nullptr) run_all(*key);
  return key;
}

void LockModel::advance(Time now) { follow(now); }

// What is refused for its form is about no key.
Answer LockModel::refuse(Time now, Outcome flaw) {
  follow(now);
  return {flaw};
}

Time LockModel::next_deadline() const {
  Time next = Time::never();
  for (const Key& key : keys_) {
    for (const Held& hold : key.holds) next = std::min(next, hold.deadline);
    for (const Place& place : key.line) next = std::min(next, place.deadline);
  }
  return next;
}

}  // namespace lockd
