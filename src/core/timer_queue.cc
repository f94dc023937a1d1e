#include "core/timer_queue.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace lockd {

Timer* TimerQueue::pop_due(Time now, int* budget) {
  while (*budget > 0) {
    if (Timer* timer = lists_[kDue].front()) {
      --*budget;
      unlink(*timer);
      if (timer->deadline <= tick_) return timer;
      place(*timer);  // moved while it was due
      continue;
    }
    if (spreading() != 0) {
      Timer* timer = lists_[static_cast<unsigned>(std::countr_zero(spreading()))].front();
      --*budget;
      unlink(*timer);
      place(*timer);
    } else if (occupied_ != 0 && start_of(lowest()) <= now) {
      tick_ = start_of(lowest());
    } else {
      // Nothing lies between the tick and now, so moving the tick moves no timer to another list.
      tick_ = std::max(tick_, now);
      return nullptr;
    }
  }
  return nullptr;
}

Time TimerQueue::next_deadline() const {
  if (!lists_[kDue].empty() || spreading() != 0) return tick_;
  if (occupied_ == 0) return Time::never();
  const Timers& list = lists_[lowest()];
  // Later lists start where this one ends. The deadline of a timer here may have moved beyond.
  Time earliest{start_of(lowest()).ns | ((std::uint64_t{1} << lowest()) - 1)};
  int looked_at = 0;
  for (const Timer* timer = list.front(); timer != nullptr; timer = list.next(timer)) {
    if (++looked_at > 8) return start_of(lowest());
    earliest = std::min(earliest, timer->deadline);
  }
  return earliest;
}

void TimerQueue::place(Timer& timer) {
  if (timer.deadline <= tick_) {
    link(timer, kDue);
  } else {
    const std::uint64_t differing = timer.deadline.ns ^ tick_.ns;
    link(timer, static_cast<std::uint8_t>(63 - std::countl_zero(differing)));
  }
}

void TimerQueue::link(Timer& timer, std::uint8_t list) {
  timer.list = list;
  // Leases precede waits in every list, and therefore in kDue.
  if (timer.kind == Timer::Kind::lease) {
    lists_[list].push_front(&timer);
  } else {
    lists_[list].push_back(&timer);
  }
  if (list < 64) occupied_ |= std::uint64_t{1} << list;
}

void TimerQueue::unlink(Timer& timer) {
  lists_[timer.list].remove(&timer);
  if (timer.list < 64 && lists_[timer.list].empty()) {
    occupied_ &= ~(std::uint64_t{1} << timer.list);
  }
}

unsigned TimerQueue::lowest() const { return static_cast<unsigned>(std::countr_zero(occupied_)); }

// The earliest deadline that can be in `list`: the higher bits are the tick's, the list's own bit
// is set, and the lower bits are zero.
Time TimerQueue::start_of(unsigned list) const { return {((tick_.ns >> list) | 1) << list}; }

// The list that the tick has reached, as a bit, until its last timer has moved to a lower list. A
// timer of any other list b has bit b set where the tick has not. No timer is added to this list.
std::uint64_t TimerQueue::spreading() const { return occupied_ & tick_.ns; }

}  // namespace lockd
