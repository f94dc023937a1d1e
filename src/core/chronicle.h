// What people hear of a table: figures always, occurrences while somebody looks.
//
// The events of the journal are as few as rebuild the table, and are LockTable's; nothing here is
// ever read by the rules. What is counted on the way of every request is inline.
//
// Not thread-safe.
#pragma once

#include <vector>

#include "core/semaphore.h"
#include "lockd/figures.h"
#include "lockd/journal.h"
#include "lockd/observer.h"

namespace lockd {

class Chronicle {
 public:
  // Occurrences are added to `occurrences`, which outlives this.
  explicit Chronicle(std::vector<Occurrence>& occurrences) : occurrences_(occurrences) {}

  void look(bool on) { looking_ = on; }

  // What there is now, to be counted up and down.
  std::uint64_t& holders(Kind kind) {
    return kind == Kind::lock ? figures_.locks_held : figures_.semaphore_holders;
  }
  std::uint64_t& waiters(Kind kind) {
    return kind == Kind::lock ? figures_.lock_waiters : figures_.semaphore_waiters;
  }
  std::uint64_t& idle_keys() { return figures_.idle_keys; }

  // What happens. The key has been changed already, but for `ended` and `gave_up`: those come while
  // the hold, or the place, is still there.
  void granted_at_once(const Hold& hold, Time now) {
    ++figures_.grants;
    if (looking_) record_grant(hold, Duration::zero(), now);
  }
  void granted_in_line(const Hold& hold, Duration waited, Time now) {
    ++figures_.grants;
    ++figures_.contended;
    figures_.wait_time.add(waited);
    if (looking_) record_grant(hold, waited, now);
  }
  void renewed() { ++figures_.renewals; }
  void ended(const Hold& hold, EndCause cause, Time now) {
    const Duration held = hold.held_at(now);
    figures_.hold_time.add(held);
    switch (cause) {
      case EndCause::released: ++figures_.releases; break;
      case EndCause::disconnected: ++figures_.disconnects; break;
      case EndCause::expired:
        ++figures_.expiries;
        figures_.expiry_lag.add(now - hold.deadline);
        break;
    }
    if (looking_) record_end(hold, cause, held, now);
  }
  void queued(const Waiter& waiter) {
    ++figures_.queued;
    if (looking_) record_queued(waiter);
  }
  void gave_up(const Waiter& waiter, Outcome why, Time now);
  Outcome refused(Outcome why);

  const Figures& figures() const { return figures_; }

 private:
  void record_grant(const Hold& hold, Duration waited, Time now);
  void record_end(const Hold& hold, EndCause cause, Duration held, Time now);
  void record_queued(const Waiter& waiter);

  std::vector<Occurrence>& occurrences_;
  bool looking_ = false;
  Figures figures_;
};

}  // namespace lockd
