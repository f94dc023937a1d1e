#include "simulation/witness.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/hash.h"
#include "crash/violation.h"
#include "simulation/promises.h"

namespace lockd::simulation {
namespace {

// Of "tcp:<session>"; a name has none.
SessionId session_of(std::string_view holder) {
  SessionId session = 0;
  if (!holder.starts_with("tcp:")) return 0;
  std::from_chars(holder.data() + 4, holder.data() + holder.size(), session);
  return session;
}

std::string set_of(std::string_view holder) {
  return std::string(holder.starts_with(kSetHolder) ? holder : "");
}

}  // namespace

void Witness::on_key_events(std::span<const KeyEvent> key_events, Position) noexcept {
  if (away_) return;
  for (const KeyEvent& event : key_events) note(event);
}

void Witness::note(const KeyEvent& event) {
  ++counts_[static_cast<std::size_t>(event.type)];
  hash_ = hash_bytes(event.key, HashKey::of_seed(hash_ ^ event.fence ^ (event.at.ns << 3) ^
                                                 static_cast<std::uint64_t>(event.type)));
  const auto at = keys_.try_emplace({event.kind, std::string(event.key)}).first;
  State& state = at->second;
  state.limit = event.limit;
  switch (event.type) {
    case KeyEvent::Type::queued:
      state.queue.push_back({event.place, event.mode, event.permits, set_of(event.holder)});
      break;
    case KeyEvent::Type::granted: granted(state, event); break;
    case KeyEvent::Type::released:
    case KeyEvent::Type::expired:
    case KeyEvent::Type::disconnected:
    case KeyEvent::Type::revoked: ended(state, event); break;
    case KeyEvent::Type::gave_up: left_queue(state, event); break;
    case KeyEvent::Type::refused:
    case KeyEvent::Type::slow_wait:
    case KeyEvent::Type::slow_hold:
    case KeyEvent::Type::resized: break;
  }
  const bool is_of_request = event.type == KeyEvent::Type::granted ||
                             event.type == KeyEvent::Type::gave_up ||
                             event.type == KeyEvent::Type::disconnected;
  if (is_of_request && event.holder.starts_with(kSetHolder)) {
    set_events_.push_back({event.holder, event.type, event.fence, event.place != 0});
  }
  if (event.holders != state.holds.size()) {
    broken("counted", event,
           std::to_string(event.holders) + " hold it, it says, and " +
               std::to_string(state.holds.size()) + " do");
  }
  if (waiters_max_ != 0 && event.waiters > waiters_max_) {
    broken("bounded", event, std::to_string(event.waiters) + " wait for it");
  }
  if (event.waiters != state.queue.size()) {
    broken("counted", event,
           std::to_string(event.waiters) + " wait, it says, and " +
               std::to_string(state.queue.size()) + " places were taken and not left");
  }
  if (std::find(touched_.begin(), touched_.end(), &*at) == touched_.end()) touched_.push_back(&*at);
}

// Whether one like that may hold it too.
bool Witness::has_room(Kind kind, const State& state, Mode mode, std::uint32_t permits) {
  std::uint64_t in_use = permits;
  bool share = mode == Mode::shared;
  for (const Held& held : state.holds) {
    in_use += held.permits;
    share = share && held.mode == Mode::shared;
  }
  return kind == Kind::lock ? state.holds.empty() || share : in_use <= state.limit;
}

void Witness::recovered(const crash::Holds& holds) {
  for (const auto& [key, held] : holds.all()) {
    State& state = keys_[{key.kind, key.key}];
    state.holds.push_back({key.fence, 0, held.mode, held.permits});
    state.limit = held.limit;
  }
}

void Witness::granted(State& state, const KeyEvent& event) {
  if (event.fence <= state.last_fence) {
    broken("fences-rise", event, "after " + std::to_string(state.last_fence));
  }
  state.last_fence = event.fence;
  if (!has_room(event.kind, state, event.mode, event.permits)) {
    broken(event.kind == Kind::lock ? "shares-or-alone" : "bounded", event,
           "beside " + std::to_string(state.holds.size()) + " who hold it");
  }
  if (event.mode == Mode::shared && !state.holds.empty()) ++granted_shared_;
  if (event.permits > 1) ++granted_several_;
  state.holds.push_back(
      {event.fence, session_of(event.holder), event.mode, event.permits, set_of(event.holder)});
  if (event.place == 0) {
    if (!state.queue.empty()) broken("first-come", event, "granted past a queue");
    return;
  }
  if (state.queue.empty() || state.queue.front().place != event.place) {
    broken("first-come", event, "granted, and not the first in the queue");
    return;
  }
  state.queue.pop_front();
}

void Witness::ended(State& state, const KeyEvent& event) {
  const auto found = std::find_if(state.holds.begin(), state.holds.end(),
                                  [&](const Held& held) { return held.fence == event.fence; });
  if (found != state.holds.end()) {
    state.holds.erase(found);
  } else {
    broken("settled-once", event, "it had ended before");
  }
}

void Witness::left_queue(State& state, const KeyEvent& event) {
  const auto found =
      std::find_if(state.queue.begin(), state.queue.end(),
                   [&](const Waiting& waiting) { return waiting.place == event.place; });
  if (found == state.queue.end()) {
    broken("settled-once", event, "left a place that nobody had");
  } else {
    state.queue.erase(found);
  }
}

void Witness::broken(std::string_view rule, const KeyEvent& event, const std::string& how) {
  if (!broken_.empty()) return;
  broken_ = std::string(rule) + ": " + std::string(event.key) + " fence " +
            std::to_string(event.fence) + " of " + event.holder + ": " + how;
}

void Witness::complain_of_session(const std::string& key, const Held& held) {
  crash::violated("released",
                  key + " fence " + std::to_string(held.fence) +
                      " is held by a session that is over: " + std::to_string(held.session));
}

// Whether it is not the first of another queue, or finds no room there.
bool Witness::waits_elsewhere(const std::string& set) const {
  return std::ranges::any_of(keys_, [&](const auto& entry) {
    const State& state = entry.second;
    const auto found = std::ranges::find(state.queue, set, &Waiting::set);
    if (found == state.queue.end()) return false;
    return found != state.queue.begin() ||
           !has_room(entry.first.kind, state, found->mode, found->permits);
  });
}

bool Witness::has_place(const std::string& set) const {
  return std::ranges::any_of(keys_, [&](const auto& entry) {
    return std::ranges::find(entry.second.queue, set, &Waiting::set) != entry.second.queue.end();
  });
}

bool Witness::has_hold(const std::string& set, Fence fence) const {
  return std::ranges::any_of(keys_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.holds, [&](const Held& held) {
      return held.set == set && held.fence == fence;
    });
  });
}

// Whatever became of one of a set's keys in this step, became of all.
void Witness::check_sets() {
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

void Witness::check(bool is_in_turn) {
  if (!is_in_turn) check_sets();
  const auto is_for_later = [&](const auto* key) {
    const State& state = key->second;
    return is_in_turn && !state.queue.empty() && !state.queue.front().set.empty();
  };
  for (const auto* key : touched_) {
    const State& state = key->second;
    if (state.queue.empty() || !broken_.empty() || is_for_later(key)) continue;
    const Waiting& first = state.queue.front();
    if (!first.set.empty() && waits_elsewhere(first.set)) continue;
    if (has_room(key->first.kind, state, first.mode, first.permits)) {
      broken_ = "conserved: " + key->first.key + " has room, and " +
                std::to_string(state.queue.size()) + " wait";
    }
  }
  std::erase_if(touched_, [&](const auto* key) { return !is_for_later(key); });
  if (!broken_.empty()) throw crash::Violation(std::exchange(broken_, {}));
}

}  // namespace lockd::simulation
