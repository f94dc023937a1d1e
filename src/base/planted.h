// Faults that were planted, each behind a switch, to see that the tests find them.
//
// They are not in what is shipped: there planted() is false before the compiler looks, and nothing
// of them is left. The preset `planted` compiles them in; then the variable LOCKD_PLANTED names the
// one that is switched on. tests/planted/run goes through them all.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockd {

enum class Bug : std::uint8_t {
  lost_wake_up,        // a lease runs out, and the first of several in line is not granted
  jumped_queue,        // the fourth in line comes first
  double_grant,        // a semaphore with a line hands out one permit more
  early_expiry,        // leases end 2 ms early
  early_timeout,       // waits end 2 ms early
  endless_wait,        // what is awaited in two phases is never given up
  revived_lease,       // a lease that is over is renewed, if nobody came in between
  unrefreshed_turn,    // awaiting a grant does not refresh its lease
  wrong_secret,        // any secret will do
  stale_fence,         // a name releases its hold under an older fence
  kept_on_disconnect,  // what a session holds stays when it ends
  orphan_place,        // a place in line stays when its session ends
  overfull_line,       // one more may wait than may
  forgotten_renewal,   // a renewal is not in the journal
  forgotten_end,       // nor is the end of a lease
  missing_floor,       // a snapshot does not tell what the fences have come to
  early_reply,         // answers leave before what they rest on is durable
  told_twice,          // the end of a wait is told twice, if it had to wait for the journal
  untold,              // of several waits that the journal held up, one is never told
  skipped_sync,        // a sync that does nothing
  unsynced_name,       // a new segment's name is not made durable
  early_removal,       // older segments go when half of the snapshot is there
  unchecked_frame,     // the checksum of a frame is not looked at
  wall_clock,          // leases go by the wall clock
  lost_input,          // what was sent behind a request that waits is forgotten
  repeated_signal,     // a signal comes twice
};

inline constexpr auto kBugNames = std::to_array<std::string_view>({
    "lost_wake_up",  "jumped_queue",       "double_grant",
    "early_expiry",  "early_timeout",      "endless_wait",
    "revived_lease", "unrefreshed_turn",   "wrong_secret",
    "stale_fence",   "kept_on_disconnect", "orphan_place",
    "overfull_line", "forgotten_renewal",  "forgotten_end",
    "missing_floor", "early_reply",        "told_twice",
    "untold",        "skipped_sync",       "unsynced_name",
    "early_removal", "unchecked_frame",    "wall_clock",
    "lost_input",    "repeated_signal",
});

#ifdef LOCKD_PLANTED
bool planted(Bug bug) noexcept;
#else
constexpr bool planted(Bug) noexcept { return false; }
#endif

}  // namespace lockd
