// A history of calls on one LockTable. For tests.
//
// A history is a setup and a list of operations. An operation refers to its objects by small
// numbers (the third hold of this key, the second session), so that it stays valid when earlier
// operations are removed: a failing history shrinks to a few lines.
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

inline constexpr unsigned kPlenty = 1000;  // more fences than any history uses

struct Setup {
  Fence last_fence() const { return fences_left == kPlenty ? 0 : kFenceMax - fences_left; }
  bool operator==(const Setup&) const = default;

  unsigned keys = 4;  // keys in requests; keys_max is the budget
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
  std::int64_t step = 0;  // the time that passes before the call; negative: a caller's late clock
  unsigned key = 0;       // kBadTexts and above: an invalid key
  unsigned owner = 0;     // a name, a session, or an invalid name
  std::int64_t ttl = 1;
  std::int64_t wait = 0;
  std::uint32_t limit = 1;
  std::uint32_t permits = 1;
  bool shared = false;
  unsigned pick = 0;  // decides all other choices

  bool operator==(const Op&) const = default;
};

struct LockHistory {
  Setup setup;
  std::vector<Op> ops;
};

// The values of Op::owner: first the names, then the sessions.
inline constexpr unsigned kNames = 3;
inline constexpr unsigned kSessions = 3;
inline constexpr unsigned kNoSession = kNames + kSessions;  // a secret without a session
inline constexpr unsigned kBadTexts = 1000;

std::string bad_text(unsigned which);

// Even numbers are locks, odd ones semaphores of the same name.
inline Kind kind_of(unsigned key) { return key % 2 == 0 ? Kind::lock : Kind::semaphore; }

std::string name_of(unsigned key);
// The limit in most requests for the key.
std::uint32_t usual_limit(unsigned key);

// Whether the operation is invalid whatever the table's state.
bool is_flawed(const Op& op);

// RapidCheck calls this function by its name.
void showValue(const LockHistory& history, std::ostream& out);

}  // namespace lockd
