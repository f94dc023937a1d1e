// What Engine and Batch share: the shards and the ways into them, what falls due between requests,
// and what the journal asks of the engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/mutex.h"
#include "base/rate_limit.h"
#include "core/hold_budget.h"
#include "core/key_budget.h"
#include "core/set_rules.h"
#include "engine/durable_notifier.h"
#include "engine/in_flight.h"
#include "engine/shard.h"
#include "engine/shard_locks.h"
#include "engine/sweeper.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd::detail {

class EngineCore final : private Journal::Source {
 public:
  explicit EngineCore(const EngineOptions& options);
  ~EngineCore();

  struct ShardRef {
    Shard& shard;
    std::uint32_t number;
    std::uint64_t key_hash;
  };
  // What a request asks for, by how much it adds to the journal: the end of a hold, a new lease for
  // one, a turn in a queue that it stands in, or a grant.
  enum class OperationKind : std::uint8_t { nothing, release, renewal, turn, grant };

  // How much is done under one hold of a shard's lock: a fraction of a millisecond's work.
  static constexpr int kStepsPerHold = 256;
  static constexpr std::size_t kKeysPerHold = 256;
  // How many are recorded: nobody may push out others' by being refused.
  static constexpr std::uint32_t kRefusalsPerSecond = 10;

  // For Batch. Where a request goes; before it, sets have their turn whose turn `turn` has brought.
  ShardRef shard_of(std::string_view key, Turn& turn) {
    if (!turn.sets.empty()) settle_sets(turn);
    return shard_of(key);
  }
  ShardRef shard_of(std::string_view key);
  Shard* shard_at(std::uint32_t number) {  // null: there is none
    return number < shards_.size() ? shards_[number].get() : nullptr;
  }
  // For the tables. While it follows, time stands still: nothing falls due, for that is the
  // leader's to say.
  Time time() const { return is_following() ? Time{} : clock_.now(); }
  LockTable::At now_at(const ShardRef& place) const { return {time(), place.key_hash}; }
  // Why it cannot be done, whatever the key, or ok. To be asked under the shard's lock.
  Outcome refusal(OperationKind what) const;
  // Said of a journal that is full, this rests on nothing: it can be told though what was appended
  // before waits for room, which may be for long.
  bool has_no_room(OperationKind what) const {
    return Journal::is_full(journal_state()) && refusal(what) == Outcome::storage;
  }
  // In the order of their numbers, each once.
  std::vector<Shard*> shards_at(std::vector<std::uint32_t> numbers) const;
  KeyUnit find_unit();
  // The same for whoever has units in hand already: it waits for nobody else who has.
  KeyUnit find_unit_at_once();
  // Grants sets whose turn has come, and has those leave their queues that are over.
  void settle_sets(Turn& turn) noexcept;
  void count_max_keys_refusal() { max_keys_refusals_.fetch_add(1, std::memory_order_relaxed); }
  Duration set_wait_max() const { return options_.set_wait_max; }
  // Appends, to a journal that is shared, what changes nothing; returns the position behind it.
  Position append_mark();
  static HoldStatus status_of(const LockTable& table, const Hold& hold, Time now);
  static KeyStatus status_of(const LockTable& table, const Key& s, Time now,
                             std::size_t entries_max);
  // Has what was done made durable, and listeners hear of it.
  Position commit(Turn& turn) noexcept;
  // If it set a deadline that is earlier than the one the sweeper sleeps for. Not for the sweeper,
  // which looks at every deadline itself, from before this engine is whole.
  void wake_sweeper(Turn& turn);

  Position list_some(ListCursor& place, std::size_t keys_max,
                     const std::function<void(const KeyStatus&)>& visit, std::size_t entries_max);
  Owned owned(SessionId session);
  Stats stats();
  Position history(const HistoryQuery& query, const std::function<void(const KeyEvent&)>& visit);
  Ages ages() EXCLUDES(ages_mutex_);
  std::string check();
  Time sweep();
  // A bounded part of it in each shard. What it returns has passed if something is left to do.
  Time sweep_some();
  void close();

  Time now() const { return clock_.now(); }
  Journal::State journal_state() const;
  bool journal_is_behind() const { return journal_ != nullptr && journal_->is_behind(); }
  Duration storage_wait() const {
    return journal_ == nullptr ? Duration{} : journal_->storage_wait();
  }
  DurableNotifier& notifier() { return notifier_; }
  InFlight& blocked_calls() { return blocked_calls_; }

 private:
  // While it lives, the journal calls.
  class Attachment {
   public:
    Attachment(Journal& journal, Journal::Source& source) : journal_(journal) {
      journal_.attach(&source);
    }
    ~Attachment() { journal_.attach(nullptr); }
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;

   private:
    Journal& journal_;
  };

  bool is_following() const { return following_.load(std::memory_order_acquire); }

  static KeyUnit reclaim_idle(Shard& shard);
  std::uint64_t idlings() const;
  Time end_some_due(Time now, Sweep& sweep);
  bool forget_some_idle(Time now, Sweep& sweep);
  void tell(Sweep& sweep, Time began) const;
  Time scan_some_ages(Time now) EXCLUDES(ages_mutex_);
  void end_waits(Outcome why);

  // For the journal, and by it.
  void recover();
  bool replay(const Event& event, std::optional<Time> at = {});
  void raise_fences();
  void progressed() noexcept override;
  bool describe_some(bool from_start) override;
  bool fits(std::size_t size) override;
  bool apply(const Event& event) override;
  void lead(Position from, Duration lease_min) override;

  const EngineOptions options_;
  const std::unique_ptr<Clock> own_clock_;
  const Clock& clock_;
  Journal* const journal_;
  const HashKey hash_key_;

  KeyBudget budget_;
  RateLimit refusals_{kRefusalsPerSecond};
  HoldBudget holds_;
  std::vector<std::unique_ptr<Shard>> shards_;
  DurableNotifier notifier_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> following_{false};
  std::atomic<Position> leads_from_{0};              // where a shared journal let this engine lead
  std::atomic<std::uint64_t> max_keys_refusals_{0};  // a table cannot know that it is the last word
  Fence largest_fence_ = 0;  // of any event that was recovered or followed. The journal's alone
  // Where describe_some() is. Likewise.
  std::size_t described_ = 0;  // shards
  Cursor described_in_shard_;
  InFlight blocked_calls_;  // in the queue
  std::atomic<std::uint64_t> next_gc_ns_{0};

  // Where the look at ages is.
  struct AgePass {
    std::size_t shard = 0;
    AgeCursor cursor{};
    OldestEntries found{};
    std::size_t steps = 0;
  };
  Mutex ages_mutex_;
  AgePass age_pass_ GUARDED_BY(ages_mutex_);
  std::size_t age_steps_left_ GUARDED_BY(ages_mutex_) = 0;  // of what is done in an interval
  std::size_t age_steps_ GUARDED_BY(ages_mutex_) = 0;       // of the last pass
  Time next_ages_ GUARDED_BY(ages_mutex_);
  OldestEntries lasting_ GUARDED_BY(ages_mutex_);  // as the last pass has found it

  std::optional<Sweeper> sweeper_;        // uses all of the above
  std::optional<Attachment> attachment_;  // last: the journal's calls use all of the above
};

}  // namespace lockd::detail
