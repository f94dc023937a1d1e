#include "ha/belief_checker.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "crash/violation.h"

namespace lockd::ha_test {

using crash::HoldKey;
using crash::violated;

namespace {

constexpr Duration kLongLease = std::chrono::seconds(2);

}  // namespace

void BeliefChecker::told_grant(const HoldKey& key, Belief belief, std::uint64_t asked,
                               std::uint32_t limit, Time now) {
  belief.until = believable(key, belief.owner, belief.until, asked);
  const auto [told, is_news] = owners_.try_emplace(key, belief.owner);
  if (told->second != belief.owner) {
    violated("fences-rise", show(key) + " is told to " + told->second + " and to " + belief.owner);
  }
  Fence& largest = largest_[{key.kind, key.key}];
  const bool in_force = belief.until > now && !given_up_.contains(key);
  // Of several that are held at once, one may hear of its own later than others of theirs.
  if (in_force && is_news && limit == 1 && key.fence < largest) {
    violated("fences-rise", show(key) + " after fence " + std::to_string(largest));
  }
  largest = std::max(largest, key.fence);
  if (!in_force) return;
  beliefs_[key] = belief;
  std::uint32_t holders = 0;
  const HoldKey first{key.kind, key.key, 0};
  for (auto other = beliefs_.lower_bound(first); other != beliefs_.end(); ++other) {
    if (other->first.kind != key.kind || other->first.key != key.key) break;
    holders += other->second.until > now;
  }
  if (holders > limit) {
    violated("holders-bounded", show(key) + " is told to " + belief.owner + " while " +
                                    std::to_string(holders - 1) + " others believe to hold it");
  }
}

void BeliefChecker::told_renewal(const HoldKey& key, Time until, std::uint64_t asked) {
  const auto known = beliefs_.find(key);
  if (known == beliefs_.end()) return;
  known->second.until = believable(key, known->second.owner, until, asked);
}

Time BeliefChecker::believable(const HoldKey& key, const std::string& owner, Time until,
                               std::uint64_t asked) {
  const auto latest = latest_.find({key.kind, key.key, owner});
  if (latest->second.number > asked) return std::min(until, latest->second.until);
  latest->second.until = Time::never();
  return until;
}

std::uint64_t BeliefChecker::asks(Kind kind, const std::string& key, const std::string& owner,
                                  Time until) {
  for (auto belief = beliefs_.lower_bound({kind, key, 0}); belief != beliefs_.end(); ++belief) {
    if (belief->first.kind != kind || belief->first.key != key) break;
    Time& believed = belief->second.until;
    if (belief->second.owner == owner) believed = std::min(believed, until);
  }
  Asking& latest = latest_[{kind, key, owner}];
  latest = {++asked_, std::min(latest.until, until)};
  return asked_;
}

void BeliefChecker::told_fence(Kind kind, const std::string& key, Fence told,
                               Fence at_least) const {
  if (told >= at_least) return;
  violated("nothing-forgotten", show(HoldKey{kind, key, told}) + " is read after fence " +
                                    std::to_string(at_least) + " was told");
}

void BeliefChecker::check_expired(const Event& event, Time now) const {
  const auto known = beliefs_.find({event.kind, std::string(event.key), event.fence});
  if (known == beliefs_.end() || known->second.until <= now) return;
  violated("lease-honoured", show(known->first) + " runs out " +
                                 std::to_string((known->second.until - now).count()) +
                                 " ns too early");
}

void BeliefChecker::session_ends(SessionId session) {
  std::erase_if(beliefs_, [&](const auto& belief) { return belief.second.session == session; });
}

// Who has a long lease mostly leaves it alone: it should see a change of leaders.
bool BeliefChecker::lets_run(const Belief& belief, Chance& chance, Time now) {
  return belief.until > now + kLongLease && chance.percent(95);
}

bool BeliefChecker::lets_run(Kind kind, const std::string& key, const std::string& owner,
                             Chance& chance, Time now) const {
  for (auto belief = beliefs_.lower_bound({kind, key, 0}); belief != beliefs_.end(); ++belief) {
    if (belief->first.kind != kind || belief->first.key != key) break;
    if (belief->second.owner == owner && lets_run(belief->second, chance, now)) return true;
  }
  return false;
}

Fence BeliefChecker::largest(Kind kind, const std::string& key) const {
  const auto found = largest_.find({kind, key});
  return found == largest_.end() ? 0 : found->second;
}

const std::pair<const HoldKey, BeliefChecker::Belief>* BeliefChecker::pick(Chance& chance,
                                                                           Time now) {
  if (chance.percent(5)) {
    std::erase_if(beliefs_, [&](const auto& belief) { return belief.second.until <= now; });
  }
  if (beliefs_.empty()) return nullptr;
  const auto picked = std::next(beliefs_.begin(), static_cast<int>(chance.below(beliefs_.size())));
  return lets_run(picked->second, chance, now) ? nullptr : &*picked;
}

}  // namespace lockd::ha_test
