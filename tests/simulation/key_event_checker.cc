#include "simulation/key_event_checker.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/hash.h"
#include "crash/violation.h"
#include "simulation/promises.h"

namespace lockd::simulation {
namespace {

auto find_place(const auto& queue, const std::string& holder) {
  return std::ranges::find(
      queue, holder, [](const auto& place) -> const std::string& { return place.second.holder; });
}

bool is_set(std::string_view holder) { return holder.starts_with(kSetHolder); }

std::string show(const KeyEvent& event) {
  return ": " + std::string(event.key) + " fence " + std::to_string(event.fence) + " of " +
         event.holder;
}

}  // namespace

// Of "tcp:<session>"; a name has none.
SessionId KeyEventChecker::session_of(std::string_view holder) {
  SessionId session = 0;
  if (!holder.starts_with("tcp:")) return 0;
  std::from_chars(holder.data() + 4, holder.data() + holder.size(), session);
  return session;
}

void KeyEventChecker::on_key_events(std::span<const KeyEvent> key_events, Position) noexcept {
  if (away_) return;
  for (const KeyEvent& event : key_events) note(event);
}

void KeyEventChecker::note(const KeyEvent& event) {
  ++counts_[static_cast<std::size_t>(event.type)];
  hash_ = hash_bytes(event.key, HashKey::of_seed(hash_ ^ event.fence ^ (event.at.ns << 3) ^
                                                 static_cast<std::uint64_t>(event.type)));
  std::string wrong = model_.see(event);
  if (wrong.empty() && waiters_max_ != 0 && event.waiters > waiters_max_) {
    wrong = "bounded: " + std::to_string(event.waiters) + " wait for it";
  }
  if (!wrong.empty() && broken_.empty()) broken_ = wrong + show(event);
  if (event.type == KeyEvent::Type::refused) return;
  const auto& entry = model_.find(event);
  if (event.type == KeyEvent::Type::granted) {
    granted_shared_ += event.mode == Mode::shared && entry.second.holds.size() > 1;
    granted_several_ += event.permits > 1;
  }
  const bool is_of_request = event.type == KeyEvent::Type::granted ||
                             event.type == KeyEvent::Type::gave_up ||
                             event.type == KeyEvent::Type::disconnected;
  if (is_of_request && is_set(event.holder)) {
    set_events_.push_back({event.holder, event.type, event.fence, event.place != 0});
  }
  if (std::ranges::find(touched_, &entry) == touched_.end()) touched_.push_back(&entry);
}

void KeyEventChecker::recovered(const crash::Holds& holds) {
  for (const auto& [key, held] : holds.all()) {
    model_.recover(key.kind, key.key, key.fence, held.mode, held.permits, held.limit);
  }
}

void KeyEventChecker::complain_of_session(const std::string& key, Fence fence, SessionId session) {
  crash::violated("released", key + " fence " + std::to_string(fence) +
                                  " is held by a session that is over: " + std::to_string(session));
}

// Whether it is not the first of another queue, or finds no room there.
bool KeyEventChecker::waits_elsewhere(const std::string& set) const {
  return std::ranges::any_of(model_.keys(), [&](const auto& entry) {
    const auto& queue = entry.second.queue;
    const auto found = find_place(queue, set);
    if (found == queue.end()) return false;
    return found != queue.begin() ||
           !EventModel::has_room(entry.first.first, entry.second, found->second.mode,
                                 found->second.permits);
  });
}

bool KeyEventChecker::has_place(const std::string& set) const {
  return std::ranges::any_of(model_.keys(), [&](const auto& entry) {
    return find_place(entry.second.queue, set) != entry.second.queue.end();
  });
}

bool KeyEventChecker::has_hold(const std::string& set, Fence fence) const {
  return std::ranges::any_of(model_.keys(), [&](const auto& entry) {
    const auto hold = entry.second.holds.find(fence);
    return hold != entry.second.holds.end() && hold->second.holder == set;
  });
}

// Whatever became of one of a set's keys in this step, became of all.
void KeyEventChecker::check_sets() {
  std::map<std::string, const SetEvent*> settled;
  for (const SetEvent& event : set_events_) {
    std::string part;
    if (event.type == KeyEvent::Type::disconnected) {
      if (has_hold(event.set, event.fence)) part = "a part was withdrawn";
    } else {
      const auto [first, is_first] = settled.try_emplace(event.set, &event);
      const SetEvent& other = *first->second;
      if (other.type != event.type) part = "a part was granted";
      if (other.fence != event.fence) part = "granted under two fences";
      if (has_place(event.set)) part = "it still waits for a part";
      if (is_first && event.type == KeyEvent::Type::granted) {
        ++granted_sets_;
        if (event.waited) ++granted_sets_late_;
      }
    }
    if (!part.empty() && broken_.empty()) {
      broken_ = "all-or-none: " + event.set + " fence " + std::to_string(event.fence) + ": " + part;
    }
  }
  set_events_.clear();
}

void KeyEventChecker::check(bool is_in_turn) {
  if (!is_in_turn) check_sets();
  const auto is_for_later = [&](const auto* key) {
    const auto& queue = key->second.queue;
    return is_in_turn && !queue.empty() && is_set(queue.front().second.holder);
  };
  for (const auto* key : touched_) {
    const auto& queue = key->second.queue;
    if (queue.empty() || !broken_.empty() || is_for_later(key)) continue;
    const EventModel::Entry& first = queue.front().second;
    if (is_set(first.holder) && waits_elsewhere(first.holder)) continue;
    if (EventModel::has_room(key->first.first, key->second, first.mode, first.permits)) {
      broken_ = "conserved: " + key->first.second + " has room, and " +
                std::to_string(queue.size()) + " wait";
    }
  }
  std::erase_if(touched_, [&](const auto* key) { return !is_for_later(key); });
  if (!broken_.empty()) throw crash::Violation(std::exchange(broken_, {}));
}

}  // namespace lockd::simulation
