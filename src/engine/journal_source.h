// JournalSource: the engine's side of its journal. It recovers from the journal, appends snapshots,
// applies a leader's events while following, and makes the engine the leader.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>

#include "core/lock_table.h"
#include "engine/durable_notifier.h"
#include "engine/shards.h"
#include "lockd/clock.h"
#include "lockd/journal.h"

namespace lockd::detail {

class JournalSource final : private Journal::Source {
 public:
  // Called on the journal's thread.
  struct Hooks {
    std::function<void()> on_failed;   // may be called repeatedly
    std::function<void()> on_lead;     // leases and waits expire from now on
    std::function<void()> on_durable;  // see EngineOptions; may be null
  };

  // Without a journal (null) the functions below do nothing.
  JournalSource(Journal* journal, const Shards& shards, const Clock& clock,
                DurableNotifier& notifier, Hooks hooks);

  // Throws std::runtime_error if the journal contradicts itself. Called once, before attach().
  void recover();
  // The journal calls from attach() until detach() has returned.
  void attach();
  void detach();

  bool is_following() const { return following_.load(std::memory_order_acquire); }
  // Appends an event that changes nothing to a shared journal, if this engine leads; returns the
  // position after it.
  Position append_mark();

  // The first fence without a journal: larger than any that an earlier process can have granted,
  // unless the clock went back. Four fences per microsecond since 2020 stay below 2^53 until 2091.
  static Fence fence_from_clock(Time now);

 private:
  bool replay(const Event& event, std::optional<Time> at = {});
  void raise_fences();
  void progressed() noexcept override;
  bool describe_some(bool from_start) override;
  bool fits(std::size_t size) override;
  bool apply(const Event& event) override;
  void lead(Position from, Duration lease_min) override;

  Journal* const journal_;
  const Shards& shards_;
  const Clock& clock_;
  DurableNotifier& notifier_;
  const Hooks hooks_;

  std::atomic<bool> following_{false};
  std::atomic<Position> leads_from_{0};  // from lead(); 0 before, or if the journal is not shared

  // Used by recover(), and then by the journal's thread only.
  Fence largest_fence_ = 0;    // of any event
  std::size_t described_ = 0;  // shards that the snapshot has
  Cursor described_in_shard_;
};

}  // namespace lockd::detail
