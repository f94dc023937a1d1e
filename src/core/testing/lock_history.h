// A history of calls on one LockTable, as it is drawn, shown and played. For tests.
//
// A history is a setup and a list of operations. An operation names what it is about by small
// numbers (the third hold of this key, the second session), so that it still means something when
// operations before it are taken away: a failing history shrinks to a few lines.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "lockd/types.h"

namespace lockd {

enum class Verb : std::uint8_t {
  acquire,
  enqueue,
  await_turn,
  renew,
  release,
  withdraw,
  cancel,
  fence,
  explain,
  end_session,
  advance,
  forget_idle,
  reclaim_idle,
  end_waits,
  revoke,
  resize,
  acquire_set,
  renew_set,
  release_set,
  withdraw_set
};
inline constexpr std::array kVerbNames = {
    "acquire", "enqueue", "await_turn",  "renew",     "release",     "withdraw",     "cancel",
    "fence",   "explain", "end_session", "advance",   "forget_idle", "reclaim_idle", "end_waits",
    "revoke",  "resize",  "acquire_set", "renew_set", "release_set", "withdraw_set"};

inline constexpr unsigned kPlenty = 1000;  // of fences: more than any history uses

struct Setup {
  Fence last_fence() const { return fences_left == kPlenty ? 0 : kFenceMax - fences_left; }
  bool operator==(const Setup&) const = default;

  unsigned keys = 4;  // that are asked for; keys_max is how many there may be
  std::uint64_t keys_max = 6;
  std::uint32_t waiters_max = 0;
  bool refuses_tries_at_full_queue = false;
  bool keeps_idle_limits = false;
  std::uint64_t holds_max = 0;
  std::uint32_t holds_per_client_max = 0;
  std::int64_t ttl_max = 0;
  unsigned fences_left = kPlenty;
  std::uint64_t start = 100;
  std::uint64_t hash_seed = 0;
};

struct Op {
  Verb verb = Verb::acquire;
  std::int64_t step = 0;  // of time, before the call; less than 0: the caller's clock is late
  unsigned key = 0;       // from kBadTexts: one that is refused
  unsigned who = 0;       // a name, a session, or a bad name
  std::int64_t ttl = 1;
  std::int64_t wait = 0;
  std::uint32_t limit = 1;
  std::uint32_t permits = 1;
  bool shared = false;
  unsigned pick = 0;  // whatever else there is to choose

  bool operator==(const Op&) const = default;
};

struct LockHistory {
  Setup setup;
  std::vector<Op> ops;
};

// Whom Op::who names: first the names, then the sessions.
inline constexpr unsigned kNames = 3;
inline constexpr unsigned kSessions = 3;
inline constexpr unsigned kNoSession = kNames + kSessions;  // a secret of nobody's
inline constexpr unsigned kBadTexts = 1000;

std::string bad_text(unsigned which);

// Even numbers are locks, odd ones semaphores of the same name.
inline Kind kind_of(unsigned key) { return key % 2 == 0 ? Kind::lock : Kind::semaphore; }

std::string name_of(unsigned key);
// What most requests for it name.
std::uint32_t usual_limit(unsigned key);

// Whether the operation is refused for its form.
bool is_flawed(const Op& op);

// As RapidCheck wants it to be called.
void showValue(const LockHistory& history, std::ostream& out);

}  // namespace lockd
