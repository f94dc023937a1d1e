// Tests of queues: FIFO order, timeouts, cancels, and races between them.
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

TEST_F(LockTableTest, QueueIsServedInOrder) {
  Fence fence = grant("k", "a");
  for (std::uint64_t id = 1; id <= 50; ++id) queue("k", secret(id, id), id);
  for (std::uint64_t id = 1; id <= 50; ++id) {
    const Holder holder = id == 1 ? Holder("a") : secret(id - 1, id - 1);
    EXPECT_EQ(release("k", holder, fence), Outcome::ok);
    ASSERT_EQ(outcome_of(id), Outcome::ok);
    ASSERT_EQ(outcome_of(id + 1), Outcome::queued);
    EXPECT_GT(fence_of(id), fence);
    fence = fence_of(id);
  }
}

TEST_F(LockTableTest, WaitThatTimesOutBeforeTheLeaseExpiresIsNotGranted) {
  grant("k", "a", {.ttl = 11ns});
  queue("k", "b", 1, 10ns);
  queue("k", "c", 2, 20ns);
  pass(60s);  // like a long stop of the process; the table ends both in the order of deadlines
  EXPECT_EQ(outcome_of(1), Outcome::timeout);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_EQ(settled_.at(2).grant.expires_at, now_ + kTtl);
}

TEST_F(LockTableTest, TryAtAFullQueueFailsAsHeldOrAsMaxWaiters) {
  for (const bool is_refused : {false, true}) {
    reset({.waiters_max = 1, .refuses_tries_at_full_queue = is_refused});
    settled_.clear();
    const Fence fence = grant("k", "a");
    EXPECT_EQ(acquire("k", "b").outcome, Outcome::held) << "the queue is empty";
    queue("k", "c", 1);
    EXPECT_EQ(acquire("k", "b").outcome, is_refused ? Outcome::max_waiters : Outcome::held);
    EXPECT_EQ(conflicts_.at(0).holder, "a");
    EXPECT_EQ(table_->stats().refusals.max_waiters, is_refused ? 1u : 0u);
    EXPECT_EQ(acquire("k", "b", {.wait = 1s}).outcome, Outcome::max_waiters);
    EXPECT_EQ(acquire("k", "a").outcome, Outcome::ok) << "it holds the key";
    release("k", "a", fence);
    EXPECT_EQ(acquire("k", "b").outcome, Outcome::held) << "the queue is empty again";
  }
}

TEST_F(LockTableTest, CancelWithoutListenerCancelsNothing) {
  grant("k", "a");
  const std::uint32_t slot = enqueue("k", secret(1, 11)).slot;  // a place without a listener
  EXPECT_FALSE(table_->cancel(now_, slot, nullptr, 0));
  EXPECT_EQ(table_->waiters(), 1u);
}

TEST_F(LockTableTest, LongQueueKeepsItsOrderAfterCancelsFromTheMiddle) {
  constexpr std::uint64_t kWaiters = 3'000;
  Fence fence = grant("k", "a");
  std::vector<std::uint32_t> slots{0};
  const auto ask = [&](std::uint64_t id) {
    return table_->acquire(now_, {"k", secret(id, id), kTtl, 10s}, this, id).slot;
  };
  for (std::uint64_t id = 1; id <= kWaiters; ++id) slots.push_back(ask(id));
  for (std::uint64_t id = 2; id <= kWaiters; id += 3) {
    ASSERT_TRUE(table_->cancel(now_, slots[id], this, id));
  }
  table_->effects().clear();
  EXPECT_EQ(table_->check(), "");
  Holder holder = "a";
  for (std::uint64_t id = 1; id <= kWaiters; ++id) {
    if (id % 3 == 2) continue;
    ASSERT_EQ(table_->release(now_, {"k", holder, fence}), Outcome::ok);
    ASSERT_EQ(table_->effects().wait_results.size(), 1u);
    const WaitResult result = table_->effects().wait_results[0];
    ASSERT_EQ(result.id, id) << "first-come";
    fence = result.grant.fence;
    holder = secret(id, id);
    table_->effects().clear();
  }
  EXPECT_EQ(table_->waiters(), 0u);
}

// When thousands of leases are due at once, a call ends a few of them, but all of its own key's.
TEST_F(LockTableTest, CallFindsItsOwnKeyUpToDateDuringABacklog) {
  reset({}, 10'000);
  for (int i = 0; i < 5'000; ++i) {
    table_->acquire(now_, {"k" + std::to_string(i), "a", 10s}, nullptr, 0);
  }
  table_->acquire(now_, {"k4000", "late", kTtl, 5s}, this, 1);   // times out before the lease ends
  table_->acquire(now_, {"k4000", "next", kTtl, 20s}, this, 2);  // waits when the lease ends
  table_->acquire(now_, {"k4000", "last", kTtl, 20s}, this, 3);
  table_->effects().clear();
  now_ = now_ + 10s;
  EXPECT_EQ(acquire("k4000", "z").outcome, Outcome::held);
  EXPECT_EQ(conflicts_.at(0).holder, "next");
  EXPECT_EQ(conflicts_.at(0).waiters, 1u);
  EXPECT_EQ(outcome_of(1), Outcome::timeout);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_EQ(outcome_of(3), Outcome::queued);
  EXPECT_LT(events_.size(), 100u) << "not the whole table";
  EXPECT_EQ(acquire("k4999", "z").outcome, Outcome::ok);
  EXPECT_FALSE(table_->advance(now_, 100));
  pass(0s);
  EXPECT_EQ(table_->fence(now_, "k1").held, false);
}

}  // namespace
}  // namespace lockd
