// A queue of timers, exact to the nanosecond. A timer costs about two list operations.
//
// A timer is in the list of the highest bit in which its deadline differs from the tick, the time
// up to which the queue has run. All timers of list b are due before those of list b+1. When the
// tick reaches the start of the lowest list that is not empty, the queue spreads that list over the
// lower ones. A timer therefore moves at most once per bit, and rarely if it is disarmed early.
//
// Moving a deadline further away, as a renewal does, only stores it: the timer stays in its list
// until the tick arrives, and moves then. A lease that is renewed ten times costs one move.
//
// Among timers with one deadline, leases come before waits: a grant that races a timeout wins.
//
// Not thread-safe. Does not own the timers.
#pragma once

#include <array>
#include <cstdint>

#include "base/list.h"
#include "lockd/types.h"

namespace lockd {

struct Timer {
  enum class Kind : std::uint8_t { lease, wait };

  explicit Timer(Kind kind) : kind(kind) {}

  bool armed() const { return hook.linked(); }

  ListHook<Timer> hook;
  Time deadline;
  std::uint8_t list = 0;  // the list it is in while armed: that of its deadline, or an earlier one
  const Kind kind;
};

class TimerQueue {
 public:
  // Sets or moves the deadline. A timer with a deadline at or before the tick is due at once.
  void arm(Timer& timer, Time deadline) {
    const bool stays = timer.armed() && deadline >= timer.deadline;
    if (!stays) disarm(timer);
    timer.deadline = deadline;
    if (!stays) place(timer);
  }

  // Does nothing if the timer is not armed.
  void disarm(Timer& timer) {
    if (timer.armed()) unlink(timer);
  }

  // Disarms and returns the next timer with a deadline at or before `now`. Null when there is none,
  // or when `*budget` has reached 0. Each timer returned or moved costs 1. `now` must not go back.
  Timer* pop_due(Time now, int* budget);

  // A lower bound on the earliest deadline, usually exact while few timers share its list, and
  // never before the tick. Time::never() when empty.
  Time next_deadline() const;

 private:
  using Timers = List<Timer, &Timer::hook>;

  // Lists 0 to 63 belong to the bits of a deadline; one more holds the timers that are due.
  static constexpr std::uint8_t kDue = 64;

  void link(Timer& timer, std::uint8_t list);
  void unlink(Timer& timer);
  void place(Timer& timer);
  unsigned lowest() const;
  Time start_of(unsigned list) const;
  std::uint64_t spreading() const;

  std::array<Timers, 65> lists_;
  std::uint64_t occupied_ = 0;  // bit b: list b is not empty
  Time tick_;
};

}  // namespace lockd
