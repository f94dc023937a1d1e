// What people hear of a table: stats always, its history if one is kept, key_events as far as
// somebody looks.
//
// The events of the journal are as few as rebuild the table, and are LockTable's; nothing here is
// ever read by the rules. What is counted on the way of every request is inline.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/rate_limit.h"
#include "core/client_names.h"
#include "core/history.h"
#include "core/key.h"
#include "lockd/journal.h"
#include "lockd/observer.h"
#include "lockd/stats.h"

namespace lockd {

// Which key events are recorded.
enum class Observed : std::uint8_t { nothing, rare_events, everything };

// Why an admin did something, and who it was.
struct AdminNote {
  std::string_view reason{};
  std::string_view by{};
};

class alignas(64) TableStats {
 public:
  struct Recording {
    std::size_t history_size = 0;   // in bytes; 0: none is kept
    RateLimit* refusals = nullptr;  // of those that are recorded; null: none. Outlives this
  };
  // Key events are added to `key_events`; `clients` knows whose holds they are about. Both outlive
  // this.
  TableStats(std::vector<KeyEvent>& key_events, const ClientNames& clients,
             const Recording& recording)
      : events_(key_events),
        clients_(clients),
        recorded_(recording.history_size > 0),
        refusals_(recording.refusals),
        history_(recording.history_size) {}

  void observe(Observed what) {
    observed_ = what;
    recorded_ = what == Observed::everything || history_.is_kept();
  }

  // How many wait now, to be counted up and down.
  std::uint64_t& waiters(Kind kind) {
    return kind == Kind::lock ? stats_.lock_waiters : stats_.semaphore_waiters;
  }

  // What happens. What it begins is there already, and what it ends still is.
  void granted_at_once(const Hold& hold, Time now) {
    ++stats_.grants;
    if (recorded_) record_grant(hold, nullptr, now);
  }
  void granted_from_queue(const Hold& hold, const QueuePlace& place, Time now) {
    ++stats_.grants;
    ++stats_.contended;
    stats_.wait_time.add(now - place.since);
    if (recorded_) record_grant(hold, &place, now);
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
    if (recorded_ || observed_ != Observed::nothing) record_end(hold, cause, now, note);
  }
  void resized(const Key& key, const AdminNote& note, Time now);
  void queued(const QueuePlace& place) {
    ++stats_.queued;
    if (recorded_) record_queued(place);
  }
  void gave_up(const QueuePlace& place, Outcome why, Time now);
  Outcome refused(Outcome why);  // hands the reason back
  // Of a cap, for who asked for what: recorded, if not too many are. The key may not be there.
  struct Refused {
    Kind kind;
    std::string_view key;
    Holder holder;
    ClientView client;
    std::uint32_t limit;
    std::uint32_t takes;
    Duration ttl;
  };
  void record_refusal(const Refused& refused, const Key* key, Outcome why, Time now);
  // It has passed the age that is slow.
  void slow(const Hold& hold, Time now);
  void slow(const QueuePlace& place, Time now);

  // A hold that a journal tells of, or its end. Nothing that happened here: it is not counted. It
  // goes into the history if this server hears of it as it happens, `at` this time.
  void replayed_grant(const Hold& hold, std::optional<Time> at);
  void replayed_end(const Hold& hold, EndCause cause, std::optional<Time> at);

  // How many hold anything now.
  std::uint64_t holders() const {
    return replayed_ + stats_.grants -
           (stats_.releases + stats_.expiries + stats_.disconnects + stats_.revocations);
  }
  const Stats& stats() const { return stats_; }
  const History& history() const { return history_; }

 private:
  bool is_told(KeyEvent::Type type) const {
    if (observed_ != Observed::rare_events) return observed_ == Observed::everything;
    const History::Sort sort = History::category(type);
    return sort == History::Sort::rare || sort == History::Sort::admin;
  }
  template <typename Fill>
  void record(KeyEvent::Type type, const Hold& hold, Fill fill, const AdminNote& note = {});
  template <typename Fill>
  void record(KeyEvent::Type type, const QueuePlace& place, Fill fill);
  void record(const KeyEventRecord& facts, const Texts& texts);
  void record_grant(const Hold& hold, const QueuePlace* place, Time now);
  void record_end(const Hold& hold, EndCause cause, Time now, const AdminNote& note);
  void record_queued(const QueuePlace& place);
  void record_replayed(const KeyEventRecord& facts, const Hold& hold);

  std::vector<KeyEvent>& events_;
  const ClientNames& clients_;
  bool recorded_;  // everything is observed, or a history is kept
  Observed observed_ = Observed::nothing;
  Stats stats_;                 // what every request counts comes first, on one line with the flag
  std::uint64_t replayed_ = 0;  // grants less ends; modulo 2^64, as what is taken from it
  RateLimit* const refusals_;
  History history_;
};

}  // namespace lockd
