// Tests of shared locks, of holds with several permits, and of FIFO order among different requests.
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

class SharedTest : public LockTableTest {
 protected:
  static Params shared(Duration wait = 0s, std::uint64_t id = 0) {
    return {.wait = wait, .id = id, .mode = Mode::shared};
  }
  static Params exclusive(Duration wait = 0s, std::uint64_t id = 0) {
    return {.wait = wait, .id = id};
  }
  static Params permits(std::uint32_t permits, Duration wait = 0s, std::uint64_t id = 0) {
    return {.kind = kSemaphore, .limit = 5, .wait = wait, .id = id, .permits = permits};
  }
  Fence fence() { return table_->fence(now_, "k").fence; }
  Outcome resize(std::uint32_t limit) {
    const Outcome outcome = table_->resize(now_, "s", limit, {});
    pass(0s);  // collects the effects
    return outcome;
  }
  // `copy`, rebuilt from events, must describe itself as the table does.
  void expect_equal(const LockTable& copy) {
    EXPECT_EQ(copy.check(), "");
    std::vector<Event> actual;
    std::vector<Event> expected;
    Cursor copy_cursor;
    Cursor table_cursor;
    copy.describe(copy_cursor, SIZE_MAX, actual);
    table_->describe(table_cursor, SIZE_MAX, expected);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      EXPECT_EQ(actual[i].key, expected[i].key);
      EXPECT_EQ(actual[i].fence, expected[i].fence);
      EXPECT_EQ(actual[i].mode, expected[i].mode);
      EXPECT_EQ(actual[i].permits, expected[i].permits);
    }
  }
};

TEST_F(SharedTest, ReaderWaitsBehindAWaitingWriter) {
  const Fence a = grant("k", "a", shared());
  acquire("k", "w", exclusive(10s, 1));
  EXPECT_EQ(acquire("k", "b", shared()).outcome, Outcome::held) << "it would overtake the writer";
  EXPECT_EQ(acquire("k", "b", shared(10s, 2)).outcome, Outcome::queued);
  release("k", "a", a);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::queued);
  release("k", "w", fence_of(1));
  EXPECT_EQ(outcome_of(2), Outcome::ok);
}

TEST_F(SharedTest, TenThousandReadersAcquireAndRelease) {
  for (int round = 0; round < 2; ++round) {
    const auto reader = [](std::uint64_t i) { return secret(i, i); };
    std::vector<Fence> fences;
    for (std::uint64_t i = 1; i <= 10'000; ++i) {
      const KeyRequest request{.key = "k", .holder = reader(i), .ttl = kTtl, .mode = Mode::shared};
      fences.push_back(table_->acquire(now_, request, this, 0).grant.fence);
    }
    EXPECT_EQ(table_->stats().shared_holds, 10'000u);
    EXPECT_EQ(fence(), fences.back());
    for (std::uint64_t i = 10'000; i >= 1; --i) {
      ASSERT_EQ(table_->release(now_, {"k", reader(i), fences[i - 1]}), Outcome::ok);
    }
    pass(0s);
    EXPECT_TRUE(table_->find(now_, Kind::lock, "k")->idle());
    EXPECT_EQ(fence(), fences.back());
  }
  pass(1s);
  EXPECT_EQ(table_->forget_idle(now_, 10), 1u);
}

TEST_F(SharedTest, SmallRequestWaitsBehindALargeOne) {
  const Fence a = grant("s", "a", permits(3));
  acquire("s", "large", permits(4, 10s, 1));
  EXPECT_EQ(acquire("s", "small", permits(1)).outcome, Outcome::held)
      << "there is room, but a queue";
  acquire("s", "small", permits(1, 10s, 2));
  acquire("s", "last", permits(1, 10s, 3));
  release("s", "a", a, kSemaphore);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::ok) << "four and one fit";
  EXPECT_EQ(outcome_of(3), Outcome::queued);
}

// The snapshot does not contain the ended hold that had the largest fence.
TEST_F(SharedTest, ReportedFenceDoesNotDecreaseAfterARestart) {
  const Fence a = grant("k", "a", shared());
  const Fence b = grant("k", "b", shared());
  release("k", "b", b);
  std::vector<Event> events;
  Cursor cursor;
  table_->describe(cursor, SIZE_MAX, events);
  KeyBudget budget(10);
  LockTable copy({}, budget);
  for (const Event& event : events) ASSERT_TRUE(copy.apply(event));
  ASSERT_TRUE(copy.apply({.type = Event::Type::fence_floor, .fence = table_->last_fence()}));
  EXPECT_EQ(copy.fence(now_, "k").fence, b);
  EXPECT_EQ(copy.release(now_, {"k", "a", a}), Outcome::ok);
  EXPECT_EQ(copy.fence(now_, "k").fence, b) << "also without a holder";
}

// After the semaphore grows and shrinks, a hold exceeds both limits that a snapshot records.
TEST_F(SharedTest, HoldLargerThanEveryLimitIsReplayed) {
  const Fence a = grant("s", "a", permits(5));
  resize(9);
  grant("s", "b", permits(1));
  release("s", "a", a, kSemaphore);
  grant("s", "c", {.kind = kSemaphore, .limit = 9, .permits = 8});
  resize(2);
  std::vector<Event> events;
  Cursor cursor;
  table_->describe(cursor, SIZE_MAX, events);
  KeyBudget budget(10);
  LockTable copy({}, budget);
  for (const Event& event : events) ASSERT_TRUE(copy.apply(event));
  expect_equal(copy);
}

TEST_F(SharedTest, JournalWithContradictoryModesIsRejected) {
  KeyBudget budget(10);
  LockTable copy({}, budget);
  Event granted{.type = Event::Type::granted,
                .key = "k",
                .holder = "a",
                .mode = Mode::shared,
                .fence = 1,
                .ttl = 1s,
                .expires_at = now_ + 1s};
  ASSERT_TRUE(copy.apply(granted));
  granted.fence = 2;
  granted.mode = Mode::exclusive;
  EXPECT_FALSE(copy.apply(granted)) << "an exclusive hold beside a shared one";
  granted.mode = Mode::shared;
  granted.permits = 2;
  EXPECT_FALSE(copy.apply(granted)) << "permits of a lock";
  granted.permits = 1;
  EXPECT_TRUE(copy.apply(granted));
  granted.kind = kSemaphore;
  EXPECT_FALSE(copy.apply(granted)) << "a shared hold of a semaphore";
}

}  // namespace
}  // namespace lockd
