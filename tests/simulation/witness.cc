#include "simulation/witness.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/hash.h"
#include "crash/violation.h"

namespace lockd::simulation {
namespace {

// Of "tcp:<session>"; a name has none.
SessionId session_of(std::string_view holder) {
  SessionId session = 0;
  if (!holder.starts_with("tcp:")) return 0;
  std::from_chars(holder.data() + 4, holder.data() + holder.size(), session);
  return session;
}

}  // namespace

void Witness::on_key_events(std::span<const KeyEvent> key_events, Position) noexcept {
  if (away_) return;
  for (const KeyEvent& occurrence : key_events) note(occurrence);
}

void Witness::note(const KeyEvent& occurrence) {
  ++counts_[static_cast<std::size_t>(occurrence.type)];
  hash_ = hash_bytes(occurrence.key,
                     HashKey::of_seed(hash_ ^ occurrence.fence ^ (occurrence.at.ns << 3) ^
                                      static_cast<std::uint64_t>(occurrence.type)));
  const auto at = keys_.try_emplace({occurrence.kind, std::string(occurrence.key)}).first;
  State& state = at->second;
  state.limit = occurrence.limit;
  switch (occurrence.type) {
    case KeyEvent::Type::queued: state.line.push_back(occurrence.place); break;
    case KeyEvent::Type::granted: granted(state, occurrence); break;
    case KeyEvent::Type::released:
    case KeyEvent::Type::expired:
    case KeyEvent::Type::disconnected:
    case KeyEvent::Type::revoked: ended(state, occurrence); break;
    case KeyEvent::Type::gave_up: left_line(state, occurrence); break;
    case KeyEvent::Type::refused:
    case KeyEvent::Type::slow_wait:
    case KeyEvent::Type::slow_hold:
    case KeyEvent::Type::resized: break;
  }
  state.holders = occurrence.holders;
  if (occurrence.type == KeyEvent::Type::granted && occurrence.holders > occurrence.limit) {
    broken("bounded", occurrence, std::to_string(occurrence.holders) + " hold it");
  }
  if (waiters_max_ != 0 && occurrence.waiters > waiters_max_) {
    broken("bounded", occurrence, std::to_string(occurrence.waiters) + " wait for it");
  }
  if (occurrence.waiters != state.line.size()) {
    broken("counted", occurrence,
           std::to_string(occurrence.waiters) + " wait, it says, and " +
               std::to_string(state.line.size()) + " places were taken and not left");
  }
  if (std::find(touched_.begin(), touched_.end(), &*at) == touched_.end()) touched_.push_back(&*at);
}

void Witness::granted(State& state, const KeyEvent& occurrence) {
  if (occurrence.fence <= state.last_fence) {
    broken("fences-rise", occurrence, "after " + std::to_string(state.last_fence));
  }
  state.last_fence = occurrence.fence;
  state.holds.push_back({occurrence.fence, session_of(occurrence.holder)});
  if (occurrence.place == 0) {
    if (!state.line.empty()) broken("first-come", occurrence, "granted past a line");
    return;
  }
  if (state.line.empty() || state.line.front() != occurrence.place) {
    broken("first-come", occurrence, "granted, and not the first in line");
    return;
  }
  state.line.pop_front();
}

// Those of holds that were recovered began before the witness came.
void Witness::ended(State& state, const KeyEvent& occurrence) {
  const auto found = std::find_if(state.holds.begin(), state.holds.end(),
                                  [&](const Held& held) { return held.fence == occurrence.fence; });
  if (found != state.holds.end()) {
    state.holds.erase(found);
  } else if (occurrence.fence <= state.last_fence && state.last_fence != 0 &&
             occurrence.kind == Kind::lock && !state.holds.empty()) {
    broken("settled-once", occurrence, "it had ended before");
  }
}

void Witness::left_line(State& state, const KeyEvent& occurrence) {
  const auto found = std::find(state.line.begin(), state.line.end(), occurrence.place);
  if (found == state.line.end()) {
    broken("settled-once", occurrence, "left a place that nobody had");
  } else {
    state.line.erase(found);
  }
}

void Witness::broken(std::string_view rule, const KeyEvent& occurrence, const std::string& how) {
  if (!broken_.empty()) return;
  broken_ = std::string(rule) + ": " + std::string(occurrence.key) + " fence " +
            std::to_string(occurrence.fence) + " of " + occurrence.holder + ": " + how;
}

void Witness::complain_of_session(const std::string& key, const Held& held) {
  crash::violated("released",
                  key + " fence " + std::to_string(held.fence) +
                      " is held by a session that is over: " + std::to_string(held.session));
}

void Witness::check() {
  for (const auto* key : touched_) {
    const State& state = key->second;
    if (state.holders < state.limit && !state.line.empty() && broken_.empty()) {
      broken_ = "conserved: " + key->first.key + " has room, and " +
                std::to_string(state.line.size()) + " wait";
    }
  }
  touched_.clear();
  if (!broken_.empty()) throw crash::Violation(std::exchange(broken_, {}));
}

}  // namespace lockd::simulation
