// What people hear of a table: stats always, key_events as far as somebody looks.
//
// The events of the journal are as few as rebuild the table, and are LockTable's; nothing here is
// ever read by the rules. What is counted on the way of every request is inline.
//
// Not thread-safe.
#pragma once

#include <string_view>
#include <vector>

#include "core/client_names.h"
#include "core/semaphore.h"
#include "lockd/journal.h"
#include "lockd/observer.h"
#include "lockd/stats.h"

namespace lockd {

// Which key events are recorded.
enum class Observed : std::uint8_t { nothing, what_is_rare, everything };

// Why an admin did something, and who it was.
struct AdminNote {
  std::string_view reason{};
  std::string_view by{};
};

class alignas(64) TableStats {
 public:
  // Occurrences are added to `key_events`; `clients` knows whose holds they are about. Both outlive
  // this.
  TableStats(std::vector<KeyEvent>& key_events, const ClientNames& clients)
      : events_(key_events), clients_(clients) {}

  void observe(Observed what) { observed_ = what; }

  // How many wait now, to be counted up and down.
  std::uint64_t& waiters(Kind kind) {
    return kind == Kind::lock ? stats_.lock_waiters : stats_.semaphore_waiters;
  }

  // What happens. What it begins is there already, and what it ends still is.
  void granted_at_once(const Hold& hold, Time now) {
    ++stats_.grants;
    if (sees_everything()) record_grant(hold, nullptr, now);
  }
  void granted_from_queue(const Hold& hold, const Waiter& waiter, Time now) {
    ++stats_.grants;
    ++stats_.contended;
    stats_.wait_time.add(now - waiter.since);
    if (sees_everything()) record_grant(hold, &waiter, now);
  }
  void renewed() { ++stats_.renewals; }
  void ended(const Hold& hold, EndCause cause, Time now, const AdminNote& note) {
    stats_.hold_time.add(hold.held_at(now));
    switch (cause) {
      case EndCause::released: ++stats_.releases; break;
      case EndCause::disconnected: ++stats_.disconnects; break;
      case EndCause::revoked: ++stats_.revocations; break;
      case EndCause::expired:
        ++stats_.expiries;
        stats_.expiry_lag.add(now - hold.deadline);
        break;
    }
    if (sees(cause)) record_end(hold, cause, now, note);
  }
  void resized(const Semaphore& semaphore, const AdminNote& note, Time now);
  void queued(const Waiter& waiter) {
    ++stats_.queued;
    if (sees_everything()) record_queued(waiter);
  }
  void gave_up(const Waiter& waiter, Outcome why, Time now);
  Outcome refused(Outcome why);  // hands the reason back

  // A hold that a journal tells of, or its end. Nothing that happened here.
  void replayed_grant() { ++replayed_; }
  void replayed_end() { --replayed_; }

  // How many hold anything now.
  std::uint64_t holders() const {
    return replayed_ + stats_.grants -
           (stats_.releases + stats_.expiries + stats_.disconnects + stats_.revocations);
  }
  const Stats& stats() const { return stats_; }

 private:
  bool sees_everything() const { return observed_ == Observed::everything; }
  bool sees(EndCause cause) const {
    const bool is_rare = cause == EndCause::expired || cause == EndCause::revoked;
    return sees_everything() || (is_rare && observed_ == Observed::what_is_rare);
  }
  KeyEvent about_hold(KeyEvent::Type type, const Hold& hold, Time at) const;
  void record_grant(const Hold& hold, const Waiter* waiter, Time now);
  void record_end(const Hold& hold, EndCause cause, Time now, const AdminNote& note);
  void record_queued(const Waiter& waiter);

  std::vector<KeyEvent>& events_;
  const ClientNames& clients_;
  Observed observed_ = Observed::nothing;
  Stats stats_;                 // what every request counts comes first, on one line with the flag
  std::uint64_t replayed_ = 0;  // grants less ends; modulo 2^64, as what is taken from it
};

}  // namespace lockd
