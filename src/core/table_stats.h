// What a table reports to operators: always the counters, the history if it is on, and key events
// for observers.
//
// No rule of the table reads any of this. The journal's events, which rebuild the table, belong to
// LockTable. The counters of the hot path are inline.
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

// An admin's name and reason for an action.
struct AdminNote {
  std::string_view reason{};
  std::string_view by{};
};

class alignas(64) TableStats {
 public:
  struct Recording {
    std::size_t history_size = 0;   // in bytes; 0: no history
    RateLimit* refusals = nullptr;  // for recorded refusals; null: no limit. Outlives this object
  };
  // Appends to `key_events`, and takes the clients of holds from `clients`. Both outlive this
  // object.
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

  // The current number of waiters, which the table increments and decrements.
  std::uint64_t& waiters(Kind kind) {
    return kind == Kind::lock ? stats_.lock_waiters : stats_.semaphore_waiters;
  }

  // The table calls these after it has created the hold or place, or before it removes it.
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
  Outcome refused(Outcome why);  // returns `why`
  // A request that a cap refused.
  struct Refused {
    Kind kind;
    std::string_view key;
    Holder holder;
    ClientView client;
    std::uint32_t limit;
    std::uint32_t takes;
    Duration ttl;
  };
  // Records the refusal, within the rate limit. `key` is null if the key does not exist.
  void record_refusal(const Refused& refused, const Key* key, Outcome why, Time now);
  // The hold or the place has reached the age at which it counts as slow.
  void slow(const Hold& hold, Time now);
  void slow(const QueuePlace& place, Time now);

  // The table applied a grant or an end from a journal, which does not count as a grant or an end
  // of this server. A follower passes the time in `at`, and the history records the event;
  // recovery passes none.
  void replayed_grant(const Hold& hold, std::optional<Time> at);
  void replayed_end(const Hold& hold, EndCause cause, std::optional<Time> at);

  // The current number of holds.
  std::uint64_t holders() const {
    return replayed_ + stats_.grants -
           (stats_.releases + stats_.expiries + stats_.disconnects + stats_.revocations);
  }
  const Stats& stats() const { return stats_; }
  const History& history() const { return history_; }

 private:
  bool is_observed(KeyEvent::Type type) const {
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
  bool recorded_;  // everything is observed, or there is a history
  Observed observed_ = Observed::nothing;
  Stats stats_;  // the counters of the hot path come first, in one cache line with recorded_
  // Replayed grants minus replayed ends, modulo 2^64: holders() adds it to the counters.
  std::uint64_t replayed_ = 0;
  RateLimit* const refusals_;
  History history_;
};

}  // namespace lockd
