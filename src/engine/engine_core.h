// What Engine and Batch share: the shards, and the ways into and out of them. Requests are in
// engine_core.cc; what its journal asks of it in engine_journal.cc; what only looks in
// engine_status.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/key_budget.h"
#include "engine/blocked_calls.h"
#include "engine/durable_notifier.h"
#include "engine/shard.h"
#include "engine/sweeper.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd::detail {

class EngineCore final : private Journal::Source {
 public:
  explicit EngineCore(const EngineOptions& options);
  ~EngineCore();

  Answer acquire(Turn& turn, const AcquireRequest& request, Listener* listener, std::uint64_t id,
                 Conflict* conflict);
  Answer enqueue(Turn& turn, const EnqueueRequest& request);
  Answer await_turn(Turn& turn, Session& session, Kind kind, std::string_view key, Duration wait,
                    Listener* listener, std::uint64_t id);
  Answer renew(Turn& turn, const HoldId& hold, std::optional<Duration> ttl);
  Outcome release(Turn& turn, const HoldId& hold);
  bool withdraw(Turn& turn, const HoldId& hold);
  bool cancel(Turn& turn, const WaitId& wait);
  void end_session(Turn& turn, Session& session, bool keep_holds);
  bool owns_anything(Turn& turn, const Session& session);
  FenceStatus fence(Turn& turn, std::string_view key);
  bool explain(Turn& turn, Kind kind, std::string_view key, Conflict* conflict);

  std::optional<KeyStatus> status(Turn& turn, Kind kind, std::string_view key,
                                  std::size_t entries_max);

  Position list_some(ListPlace& place, std::size_t keys_max,
                     const std::function<void(const KeyStatus&)>& visit, std::size_t entries_max);
  Stats stats();
  std::string check();
  Time sweep();
  void close();

  Position commit(Turn& turn);
  Time now() const { return clock_.now(); }
  Journal::State journal_state() const;
  DurableNotifier& notifier() { return notifier_; }
  BlockedCalls& blocked_calls() { return blocked_calls_; }

 private:
  struct Place {
    Shard& shard;
    std::uint32_t number;
  };

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

  // How much is done under one hold of a shard's lock: a fraction of a millisecond's work.
  static constexpr int kStepsPerHold = 256;
  static constexpr std::size_t kKeysPerHold = 256;

  enum class Needs { nothing, grant };  // of the journal: room for a grant

  bool is_following() const { return following_.load(std::memory_order_acquire); }
  // For the tables. While it follows, time stands still: nothing falls due, for that is the
  // leader's to say.
  Time time() const { return is_following() ? Time{} : clock_.now(); }

  Place place_of(std::string_view key);
  template <typename Operation>
  LockTable::Reply execute(Turn& turn, Shard& shard, Needs needs, Operation operation);
  template <typename Operation>
  Answer execute_creating(Turn& turn, std::string_view key, const Holder& holder,
                          Operation operation);
  Outcome refusal(Needs needs) const;
  KeyUnit find_unit();
  static KeyUnit reclaim_idle(Shard& shard);
  std::uint64_t idlings() const;
  Time end_what_is_due(Time now);
  void forget_idle(Time now);

  // For the journal, and by it.
  void recover();
  bool replay(const Event& event);
  void raise_fences();
  void progressed() noexcept override;
  bool describe_some(bool from_start) override;
  bool apply(const Event& event) override;
  void lead(Position from) override;

  const EngineOptions options_;
  const std::unique_ptr<Clock> own_clock_;
  const Clock& clock_;
  Journal* const journal_;
  const std::uint64_t hash_seed_;

  KeyBudget budget_;
  std::vector<std::unique_ptr<Shard>> shards_;
  DurableNotifier notifier_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> following_{false};
  std::atomic<std::uint64_t> max_keys_refusals_{0};  // a table cannot know that it is the last word
  Fence largest_fence_ = 0;  // of any event that was recovered or followed. The journal's alone
  // Where describe_some() is. Likewise.
  std::size_t described_ = 0;  // shards
  Cursor described_in_shard_;
  BlockedCalls blocked_calls_;
  std::atomic<std::uint64_t> next_gc_ns_{0};
  std::optional<Sweeper> sweeper_;        // uses all of the above
  std::optional<Attachment> attachment_;  // last: the journal's calls use all of the above
};

}  // namespace lockd::detail
