// Everything that was asked of one key, put together: possessions, places in the queue, and what
// may have been.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "histories/finding.h"
#include "histories/hold.h"
#include "histories/operation.h"
#include "histories/timeline.h"

namespace lockd::histories {

class KeyHistory {
 public:
  // `operations` are those of one key and kind, in the order of calls; they stay where they are.
  // What contradicts itself already is put into `findings`.
  KeyHistory(const Timeline& timeline, std::string name,
             std::span<const Operation* const> operations, std::vector<Finding>& findings);

  // A time during which a request may have held the key, known or not.
  struct Possible {
    Instant from;
    Instant to;
    std::int64_t takes;
  };
  // A request in the queue, or on its way there and back, and what it came to.
  struct Wait {
    Instant call;
    Instant ret;
    std::size_t hold;  // kNone: it was not granted
    std::int64_t takes;
    bool is_try;  // it is in nobody's way
    // Of one that waits for other keys too: until then whoever is behind it may wait for those.
    Instant blocks_until;
  };
  static constexpr std::size_t kNone = SIZE_MAX;

  const std::string& name() const { return name_; }
  std::int64_t capacity() const { return capacity_; }
  const Timeline& timeline() const { return timeline_; }
  std::span<const Operation* const> operations() const { return operations_; }
  // In the order of their fences.
  const std::vector<Hold>& holds() const { return holds_; }
  // What nobody was told of, and may have been granted all the same.
  const std::vector<Possible>& unacknowledged() const { return unacknowledged_; }
  // In the order of calls.
  const std::vector<Wait>& waits() const { return waits_; }

 private:
  struct Ticket {
    const Operation* enqueue;
    Instant asked;
    bool granted;
  };
  // What was asked for by one name or secret, and again.
  struct Asked {
    Instant first;                         // or, once it was told of a hold, when it asked for that
    std::size_t hold = kNone;              // that was told of last
    std::vector<const Operation*> lost{};  // before it was
  };

  void take(const Operation& operation);
  void take_acquire(const Operation& operation);
  void take_enqueue(const Operation& operation);
  void take_wait(const Operation& operation);
  void follow_up(Fence fence, const Operation& operation);
  void grant(const Operation& operation, Instant asked, Instant queued_by, Instant line_since);
  Asked* asked_by(const Operation& operation);
  void expect_not_held(const Operation& operation, const Asked* asked);
  void may_hold(const Operation& operation, Instant ended);
  void abandon(const Ticket& ticket);
  void set_barriers();
  void complain(std::string_view invariant, std::string_view what, const Operation& operation,
                const Operation* other = nullptr);

  const Timeline& timeline_;
  const std::string name_;
  const std::span<const Operation* const> operations_;
  std::vector<Finding>& findings_;
  std::int64_t capacity_ = 1;
  std::vector<Hold> holds_;
  std::vector<Possible> unacknowledged_;
  std::vector<Wait> waits_;
  std::vector<const Operation*> stats_;

  std::unordered_map<Fence, std::size_t> by_fence_;
  std::unordered_map<std::uint64_t, Asked> asked_;     // by request id
  std::unordered_map<std::uint32_t, Ticket> tickets_;  // by process
};

}  // namespace lockd::histories
