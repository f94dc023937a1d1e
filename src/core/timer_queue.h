// Deadlines, in order, exact to the nanosecond, in about the time of two list operations.
//
// A timer sits in the list of the highest bit in which its deadline differs from the tick, the time
// up to which the queue has run. All timers of list b lie before all those of list b+1. When the
// tick reaches the start of the lowest list that is not empty, that list is spread over the lower
// ones; so a timer moves at most once per bit, and one that is cancelled early hardly ever.
//
// To move a deadline further away, as a renewal does, is to write it down: the timer stays where it
// is, earlier than need be, and finds its place when the tick comes by. So a lease that is renewed
// ten times costs one move.
//
// Timers with one deadline come out leases first: a grant that races a timeout wins.
//
// Not thread-safe. Owns no timer.
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
  std::uint8_t list = 0;  // where it is, while armed: its own or an earlier one
  const Kind kind;
};

class TimerQueue {
 public:
  // Sets or moves its deadline. One at or before the tick is due at once.
  void arm(Timer& timer, Time deadline) {
    const bool stays = timer.armed() && deadline >= timer.deadline;
    if (!stays) disarm(timer);
    timer.deadline = deadline;
    if (!stays) place(timer);
  }

  // Does nothing if it is not armed.
  void disarm(Timer& timer) {
    if (timer.armed()) unlink(timer);
  }

  // The next timer with a deadline at or before `now`, disarmed; or null when there is none, or
  // when `*budget` is used up: then it is 0. Each timer returned, and each that had to be moved,
  // costs 1. `now` never goes back.
  Timer* pop_due(Time now, int* budget);

  // A lower bound on the earliest deadline, mostly exact while few timers share its list, and never
  // in the past of the tick. Time::never() when empty.
  Time next_deadline() const;

 private:
  using Timers = List<Timer, &Timer::hook>;

  // Lists 0 to 63 are those of the bits; one more holds the timers that are due.
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
