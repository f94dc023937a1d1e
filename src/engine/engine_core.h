// EngineCore: the state that Engine and Batch share. The shards, expiry between requests, and the
// connection to the journal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/rate_limit.h"
#include "core/hold_budget.h"
#include "core/key_budget.h"
#include "core/set_rules.h"
#include "engine/age_scanner.h"
#include "engine/durable_notifier.h"
#include "engine/in_flight.h"
#include "engine/journal_source.h"
#include "engine/shard_locks.h"
#include "engine/shards.h"
#include "engine/sweeper.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd::detail {

class EngineCore {
 public:
  explicit EngineCore(const EngineOptions& options);
  ~EngineCore();

  // Ordered by how much a request adds to the journal. `turn` is await_turn().
  enum class OperationKind : std::uint8_t { nothing, release, renewal, turn, grant };

  // Limits the rejections in the history, so that they do not displace other events.
  static constexpr std::uint32_t kRefusalsPerSecond = 10;

  // Settles the sets that `turn` has made grantable, then returns the key's shard.
  ShardRef shard_of(std::string_view key, Turn& turn) {
    if (!turn.sets.empty()) settle_sets(turn);
    return shards_.of(key);
  }
  const Shards& shards() const { return shards_; }
  // The time for the tables. It stands still while following, because only the leader ends leases.
  Time time() const { return source_.is_following() ? Time{} : clock_.now(); }
  LockTable::At now_at(const ShardRef& ref) const { return {time(), ref.key_hash}; }
  // Why no operation of this kind is possible, or ok. Only under the shard's lock is the answer
  // final.
  Outcome refusal(OperationKind kind) const {
    if (kind >= OperationKind::turn && closed_.load(std::memory_order_acquire))
      return Outcome::closed;
    return journal_ == nullptr ? Outcome::ok : refusal_of_journal(kind);
  }
  // Whether a full journal rejects the operation. Callers check this before they take the shard's
  // lock: the rejection then depends on no position, which may not be durable for a long time.
  bool has_no_room(OperationKind kind) const {
    return journal_ != nullptr && Journal::is_full(journal_->state()) &&
           refusal(kind) == Outcome::storage;
  }
  KeyUnit find_unit();
  // Makes one attempt. For callers that hold units, which must not wait for each other's.
  KeyUnit find_unit_at_once();
  // Grants the sets that have become grantable, and removes ended ones from their queues.
  void settle_sets(Turn& turn) noexcept;
  void count_max_keys_refusal() { max_keys_refusals_.fetch_add(1, std::memory_order_relaxed); }
  Duration set_wait_max() const { return options_.set_wait_max; }
  static HoldStatus status_of(const LockTable& table, const Hold& hold, Time now);
  static KeyStatus status_of(const LockTable& table, const Key& key, Time now,
                             std::size_t entries_max);
  // Requests durability of the turn's effects and notifies listeners. Called without locks, because
  // a listener may take one.
  Position commit(Turn& turn) noexcept;
  // Wakes the sweeper if the turn set an earlier deadline than the one it sleeps for. Not called on
  // the sweeper's thread, which may run before sweeper_ is set.
  void wake_sweeper(Turn& turn);

  Position list_some(ListCursor& cursor, std::size_t keys_max,
                     const std::function<void(const KeyStatus&)>& visit, std::size_t entries_max);
  Owned owned(SessionId session);
  Stats stats();
  Position history(const HistoryQuery& query, const std::function<void(const KeyEvent&)>& visit);
  std::string check();
  Time sweep();
  // Sweeps a bounded part of each shard. Returns a past time if there is more to do.
  Time sweep_some();
  void close();

  const Clock& clock() const { return clock_; }
  Time now() const { return clock_.now(); }
  Journal::State journal_state() const;
  bool journal_is_behind() const { return journal_ != nullptr && journal_->is_behind(); }
  Duration storage_wait() const {
    return journal_ == nullptr ? Duration{} : journal_->storage_wait();
  }
  DurableNotifier& notifier() { return notifier_; }
  InFlight& blocked_calls() { return blocked_calls_; }
  JournalSource& journal_source() { return source_; }
  AgeScanner& age_scanner() { return age_scanner_; }

 private:
  Outcome refusal_of_journal(OperationKind kind) const;
  static KeyUnit reclaim_idle(Shard& shard);
  std::uint64_t idlings() const;
  Time end_some_due(Time now, Sweep& sweep);
  bool forget_some_idle(Time now, Sweep& sweep);
  void report(Sweep& sweep, Time began) const;
  void end_waits(Outcome why);

  const EngineOptions options_;
  const std::unique_ptr<Clock> own_clock_;
  const Clock& clock_;
  Journal* const journal_;
  const HashKey hash_key_;

  KeyBudget budget_;
  RateLimit refusals_{kRefusalsPerSecond};
  HoldBudget holds_;
  Shards shards_;
  DurableNotifier notifier_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> max_keys_refusals_{0};  // not in the tables: a retry may succeed
  InFlight blocked_calls_;                           // in a queue
  std::atomic<std::uint64_t> next_gc_ns_{0};
  JournalSource source_;
  AgeScanner age_scanner_;

  std::optional<Sweeper> sweeper_;  // last: its thread uses all of the above
};

}  // namespace lockd::detail
