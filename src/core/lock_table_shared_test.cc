// The rules of what a hold takes: locks that are shared, semaphores of which one takes several
// permits, and a queue in which nobody is overtaken whatever they ask for.
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

class SharedTest : public LockTableTest {
 protected:
  static Ask shared(Duration wait = 0s, std::uint64_t id = 0) {
    return {.wait = wait, .id = id, .mode = Mode::shared};
  }
  static Ask alone(Duration wait = 0s, std::uint64_t id = 0) { return {.wait = wait, .id = id}; }
  static Ask permits(std::uint32_t permits, Duration wait = 0s, std::uint64_t id = 0) {
    return {.kind = kSemaphore, .limit = 5, .wait = wait, .id = id, .permits = permits};
  }
  static Ask for_long(Ask ask) {
    ask.ttl = 1h;
    return ask;
  }

  Fence fence() { return table_->fence(now_, "k").fence; }
  const Semaphore& key(Kind kind = Kind::lock) {
    return *table_->look_up(now_, kind, kind == Kind::lock ? "k" : "s");
  }
  Outcome resize(std::uint32_t limit) {
    const Outcome outcome = table_->resize(now_, "s", limit, {});
    pass(0s);  // collects the effects
    return outcome;
  }
  // What the events say, and what a snapshot does, must be the table.
  void expect_replayed(const LockTable& copy) {
    EXPECT_EQ(copy.check(), "");
    std::vector<Event> its;
    std::vector<Event> mine;
    Cursor its_cursor;
    Cursor my_cursor;
    copy.describe(its_cursor, SIZE_MAX, its);
    table_->describe(my_cursor, SIZE_MAX, mine);
    ASSERT_EQ(its.size(), mine.size());
    for (std::size_t i = 0; i < its.size(); ++i) {
      EXPECT_EQ(its[i].key, mine[i].key);
      EXPECT_EQ(its[i].fence, mine[i].fence);
      EXPECT_EQ(its[i].mode, mine[i].mode);
      EXPECT_EQ(its[i].permits, mine[i].permits);
    }
  }
};

TEST_F(SharedTest, ReadersHoldItTogether) {
  const Fence a = grant("k", "a", shared());
  const Fence b = grant("k", "b", shared());
  EXPECT_LT(a, b);
  EXPECT_EQ(key().holders, 2u);
  EXPECT_EQ(table_->stats().shared_holds, 2u);
  EXPECT_EQ(acquire("k", "w").outcome, Outcome::held);
  EXPECT_EQ(conflict_.mode, Mode::shared);
  EXPECT_EQ(conflict_.holders, 2u);
  EXPECT_EQ(conflict_.holder, "b");
  EXPECT_EQ(release("k", "a", a), Outcome::ok);
  EXPECT_EQ(release("k", "b", b), Outcome::ok);
  grant("k", "w");
  EXPECT_EQ(acquire("k", "a", shared()).outcome, Outcome::held);
  EXPECT_EQ(conflict_.mode, Mode::exclusive);
  EXPECT_EQ(table_->stats().shared_holds, 0u);
}

TEST_F(SharedTest, AWriterWaitsForTheLastReader) {
  const Fence a = grant("k", "a", shared());
  const Fence b = grant("k", "b", shared());
  queue("k", "w", 1);
  release("k", "b", b);
  EXPECT_EQ(outcome_of(1), Outcome::queued);
  release("k", "a", a);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
}

TEST_F(SharedTest, AReaderWaitsBehindAWaitingWriter) {
  const Fence a = grant("k", "a", shared());
  acquire("k", "w", alone(10s, 1));
  EXPECT_EQ(acquire("k", "b", shared()).outcome, Outcome::held) << "it would overtake the writer";
  EXPECT_EQ(acquire("k", "b", shared(10s, 2)).outcome, Outcome::queued);
  release("k", "a", a);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::queued);
  release("k", "w", fence_of(1));
  EXPECT_EQ(outcome_of(2), Outcome::ok);
}

// A reader holds it, a writer waits, and behind it readers, a writer, and a reader.
class WriterLeaves : public SharedTest {
 protected:
  void SetUp() override {
    SharedTest::SetUp();
    grant("k", "a", for_long(shared()));
    slot_ = acquire("k", secret(7, 7), alone(1s, 1)).slot;
    for (std::uint64_t id = 2; id <= 4; ++id) acquire("k", secret(id, id), shared(1min, id));
    acquire("k", "w", alone(1min, 5));
    acquire("k", "r", shared(1min, 6));
  }
  // In the same turn, and no further than the next writer.
  void expect_readers_in(Outcome why) {
    EXPECT_EQ(outcome_of(1), why);
    for (std::uint64_t id = 2; id <= 4; ++id) EXPECT_EQ(outcome_of(id), Outcome::ok);
    EXPECT_LT(fence_of(2), fence_of(3));
    EXPECT_LT(fence_of(3), fence_of(4));
    EXPECT_EQ(outcome_of(5), Outcome::queued);
    EXPECT_EQ(outcome_of(6), Outcome::queued);
    EXPECT_EQ(key().holders, 4u);
  }

  std::uint32_t slot_ = 0;
};

TEST_F(WriterLeaves, ByItsTimeout) {
  pass(999ms);
  EXPECT_EQ(outcome_of(2), Outcome::queued) << "never early";
  pass(1ms);
  expect_readers_in(Outcome::timeout);
}

TEST_F(WriterLeaves, ByACancel) {
  EXPECT_TRUE(cancel(slot_, 1));
  expect_readers_in(Outcome::cancelled);
}

TEST_F(WriterLeaves, WithItsSession) {
  end_session(7);
  expect_readers_in(Outcome::cancelled);
}

TEST_F(SharedTest, ATwoPhasePlaceThatIsNotAwaitedLetsThemIn) {
  grant("k", "a", for_long(shared()));
  EXPECT_EQ(enqueue("k", secret(7, 7)).outcome, Outcome::queued);
  acquire("k", "b", shared(1min, 1));
  EXPECT_EQ(await_turn("k", 7).outcome, Outcome::timeout);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
}

TEST_F(SharedTest, OneWhoLeavesFromTheMiddleLetsNobodyIn) {
  grant("k", "a", shared());
  acquire("k", "w", alone(10s, 1));
  const std::uint32_t slot = acquire("k", "v", alone(10s, 2)).slot;
  acquire("k", "b", shared(10s, 3));
  EXPECT_TRUE(cancel(slot, 2));
  EXPECT_EQ(outcome_of(3), Outcome::queued);
}

TEST_F(SharedTest, AnExpiryLetsAllReadersAtTheHeadInAtOnce) {
  grant("k", "w", {.ttl = 10ns});
  for (std::uint64_t id = 1; id <= 100; ++id) acquire("k", secret(id, id), shared(1min, id));
  acquire("k", "v", alone(1min, 101));
  pass(10ns);
  for (std::uint64_t id = 1; id <= 100; ++id) EXPECT_EQ(outcome_of(id), Outcome::ok);
  EXPECT_EQ(outcome_of(101), Outcome::queued);
}

TEST_F(SharedTest, TenThousandReadersComeAndGo) {
  for (int round = 0; round < 2; ++round) {
    const auto id_of = [](std::uint64_t i) { return secret(i, i); };
    std::vector<Fence> fences;
    for (std::uint64_t i = 1; i <= 10'000; ++i) {
      const AcquireRequest request{
          .key = "k", .holder = id_of(i), .ttl = kTtl, .mode = Mode::shared};
      fences.push_back(table_->acquire(now_, request, this, 0).grant.fence);
    }
    EXPECT_EQ(table_->stats().shared_holds, 10'000u);
    EXPECT_EQ(fence(), fences.back());
    for (std::uint64_t i = 10'000; i >= 1; --i) {
      ASSERT_EQ(table_->release(now_, {"k", id_of(i), fences[i - 1]}), Outcome::ok);
    }
    pass(0s);
    EXPECT_TRUE(key().idle());
    EXPECT_EQ(fence(), fences.back());
  }
  pass(1s);
  EXPECT_EQ(table_->forget_idle(now_, 10), 1u);
}

// Permits.

TEST_F(SharedTest, AHoldTakesSeveralPermits) {
  const Fence a = grant("s", "a", permits(3));
  grant("s", "b", permits(2));
  EXPECT_EQ(acquire("s", "c", permits(1)).outcome, Outcome::held);
  EXPECT_EQ(conflict_.permits, 5u);
  EXPECT_EQ(conflict_.holders, 2u);
  EXPECT_EQ(release("s", "a", a, kSemaphore), Outcome::ok);
  EXPECT_EQ(table_->permits_in_use(key(kSemaphore)), 2u);
  EXPECT_EQ(acquire("s", "c", permits(4)).outcome, Outcome::held);
  grant("s", "c", permits(3));
}

TEST_F(SharedTest, ASmallRequestWaitsBehindALargeOne) {
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

TEST_F(SharedTest, AnExpiryGivesAllOfItsPermitsBack) {
  Ask ask = permits(4);
  ask.ttl = 10ns;
  grant("s", "a", ask);
  grant("s", "b", for_long(permits(1)));
  acquire("s", "c", permits(4, 1min, 1));
  pass(10ns);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(table_->permits_in_use(key(kSemaphore)), 5u);
}

TEST_F(SharedTest, AResizeEndsThePlacesThatCouldNeverBeGranted) {
  grant("s", "a", permits(2));
  acquire("s", "b", permits(5, 10s, 1));
  acquire("s", "c", permits(1, 10s, 2));
  acquire("s", "d", permits(4, 10s, 3));
  EXPECT_EQ(resize(3), Outcome::ok);
  EXPECT_EQ(outcome_of(1), Outcome::limit_mismatch);
  EXPECT_EQ(outcome_of(3), Outcome::limit_mismatch);
  EXPECT_EQ(outcome_of(2), Outcome::ok) << "nobody is in its way any more";
  EXPECT_EQ(acquire("s", "e", permits(4, 10s, 4)).outcome, Outcome::limit_mismatch);
  EXPECT_EQ(acquire("s", "e", permits(3, 10s, 4)).outcome, Outcome::queued);
}

TEST_F(SharedTest, AResizeLetsALargeRequestIn) {
  grant("s", "a", permits(3));
  acquire("s", "b", permits(4, 10s, 1));
  EXPECT_EQ(resize(6), Outcome::ok);
  EXPECT_EQ(outcome_of(1), Outcome::queued);
  EXPECT_EQ(resize(7), Outcome::ok);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
}

TEST_F(SharedTest, AHoldThatIsLargerThanTheLimitByNowIsStillItsOwners) {
  const Fence a = grant("s", "a", permits(4));
  resize(2);
  EXPECT_EQ(acquire("s", "a", permits(4)).grant.fence, a);
  EXPECT_EQ(acquire("s", "b", permits(1)).outcome, Outcome::held);
}

// A name asks again.

TEST_F(SharedTest, ANameThatAsksAgainTheSameWayHasItsGrantBack) {
  const Fence a = grant("k", "a", shared());
  grant("k", "b", shared());
  acquire("k", "w", alone(10s, 1));
  EXPECT_EQ(grant("k", "a", shared()), a) << "past a waiting writer: it is no new grant";
  const Fence s = grant("s", "a", permits(2));
  EXPECT_EQ(grant("s", "a", permits(2)), s);
}

TEST_F(SharedTest, ANameThatAsksAgainInAnotherWayIsRefused) {
  grant("k", "a", shared());
  EXPECT_EQ(acquire("k", "a", alone(10s)).outcome, Outcome::mode_mismatch);
  EXPECT_EQ(conflict_.holder, "a");
  grant("l", "a");
  EXPECT_EQ(acquire("l", "a", shared()).outcome, Outcome::mode_mismatch);
  grant("s", "a", permits(2));
  EXPECT_EQ(acquire("s", "a", permits(1, 10s)).outcome, Outcome::permits_mismatch);
  EXPECT_EQ(conflict_.permits, 2u);
  EXPECT_EQ(table_->waiters(), 0u);
}

TEST_F(SharedTest, TheOtherPlacesOfANameThatIsGrantedItEndToo) {
  const Fence w = grant("k", "w");
  acquire("k", "a", shared(10s, 1));
  acquire("k", "b", alone(10s, 2));
  acquire("k", "a", alone(10s, 3));
  acquire("k", "a", shared(10s, 4));
  release("k", "w", w);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(3), Outcome::mode_mismatch);
  EXPECT_EQ(outcome_of(4), Outcome::ok);
  EXPECT_EQ(fence_of(4), fence_of(1));
  EXPECT_EQ(outcome_of(2), Outcome::queued);
}

TEST_F(SharedTest, TheOtherPlacesOfANameEndWithAMismatchOfPermits) {
  const Fence a = grant("s", "a", permits(5));
  acquire("s", "b", permits(2, 10s, 1));
  acquire("s", "b", permits(5, 10s, 2));
  acquire("s", "c", permits(3, 10s, 3));
  release("s", "a", a, kSemaphore);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::permits_mismatch);
  EXPECT_EQ(outcome_of(3), Outcome::ok) << "the place before it is gone";
}

TEST_F(SharedTest, WhatIsWrongWithARequestIsTold) {
  EXPECT_EQ(acquire("s", "a", permits(0)).outcome, Outcome::invalid_permits);
  EXPECT_EQ(acquire("s", "a", permits(6)).outcome, Outcome::invalid_permits);
  EXPECT_EQ(acquire("k", "a", {.permits = 2}).outcome, Outcome::invalid_permits);
  EXPECT_EQ(acquire("s", "a", {.kind = kSemaphore, .mode = Mode::shared}).outcome,
            Outcome::invalid_mode);
  EXPECT_EQ(enqueue("s", secret(1, 1), permits(6)).outcome, Outcome::invalid_permits);
  EXPECT_EQ(table_->keys(), 0u);
}

// Fences.

TEST_F(SharedTest, TheLargestFenceIsToldThoughItsHoldHasEnded) {
  const Fence a = grant("k", "a", shared());
  const Fence b = grant("k", "b", shared());
  const Fence c = grant("k", "c", shared());
  release("k", "c", c);
  EXPECT_EQ(fence(), c);
  release("k", "a", a);
  EXPECT_EQ(fence(), c) << "though the hold that keeps it is over";
  const Fence d = grant("k", "d", shared());
  EXPECT_EQ(fence(), d);
  release("k", "d", d);
  release("k", "b", b);
  EXPECT_EQ(fence(), d) << "though nobody holds it";
  const Fence w = grant("k", "w");
  EXPECT_GT(w, d);
  EXPECT_EQ(fence(), w);
}

// The snapshot has nothing of the hold that had the largest.
TEST_F(SharedTest, NoSmallerFenceIsToldAfterARestart) {
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
  EXPECT_EQ(copy.fence(now_, "k").fence, b) << "though nobody holds it";
}

// Sessions, and two phases.

TEST_F(SharedTest, ASessionThatEndsIsGrantedNothing) {
  const Fence a = grant("k", "a", shared());
  acquire("k", secret(7, 1), alone(10s, 1));
  acquire("k", secret(7, 2), shared(10s, 2));
  acquire("k", "b", shared(10s, 3));
  acquire("k", secret(7, 3), shared(10s, 4));
  end_session(7);
  for (const std::uint64_t id : {1u, 2u, 4u}) EXPECT_EQ(outcome_of(id), Outcome::cancelled);
  EXPECT_EQ(outcome_of(3), Outcome::ok);
  EXPECT_EQ(key().holders, 2u);
  EXPECT_EQ(release("k", "a", a), Outcome::ok);
}

TEST_F(SharedTest, TwoPhasesShareToo) {
  const Fence w = grant("k", "w");
  EXPECT_EQ(enqueue("k", secret(1, 1), shared()).outcome, Outcome::queued);
  EXPECT_EQ(enqueue("k", secret(2, 2), shared()).outcome, Outcome::queued);
  EXPECT_EQ(enqueue("k", secret(3, 3)).outcome, Outcome::queued);
  release("k", "w", w);
  EXPECT_EQ(await_turn("k", 1).outcome, Outcome::ok);
  EXPECT_EQ(await_turn("k", 2).outcome, Outcome::ok);
  EXPECT_EQ(await_turn("k", 3, {.wait = 10s, .id = 1}).outcome, Outcome::queued);
  end_session(1);
  end_session(2);
  EXPECT_EQ(outcome_of(1), Outcome::ok);
}

TEST_F(SharedTest, TwoPhasesTakeSeveralPermits) {
  const Fence a = grant("s", "a", permits(2));
  EXPECT_EQ(enqueue("s", secret(1, 1), permits(4)).outcome, Outcome::queued);
  EXPECT_EQ(enqueue("s", secret(2, 2), permits(1)).outcome, Outcome::queued);
  release("s", "a", a, kSemaphore);
  EXPECT_EQ(table_->permits_in_use(key(kSemaphore)), 5u);
  EXPECT_EQ(await_turn("s", 1, {.kind = kSemaphore}).outcome, Outcome::ok);
  EXPECT_EQ(await_turn("s", 2, {.kind = kSemaphore}).outcome, Outcome::ok);
}

// Replay.

TEST_F(SharedTest, ModesAndPermitsAreReplayed) {
  KeyBudget budget(10);
  LockTable copy({}, budget);
  const auto follow = [&] {
    for (const Event& event : table_->effects().events) ASSERT_TRUE(copy.apply(event));
    expect_replayed(copy);
    pass(0s);
  };
  const auto ask = [&](const char* key, const char* holder, Kind kind, Mode mode,
                       std::uint32_t permits) {
    const AcquireRequest request{.key = key,
                                 .holder = holder,
                                 .ttl = kTtl,
                                 .kind = kind,
                                 .limit = kind == Kind::lock ? 1u : 5u,
                                 .mode = mode,
                                 .permits = permits};
    EXPECT_EQ(table_->acquire(now_, request, nullptr, 0).outcome, Outcome::ok);
    follow();
  };
  ask("k", "a", Kind::lock, Mode::shared, 1);
  ask("k", "b", Kind::lock, Mode::shared, 1);
  ask("l", "a", Kind::lock, Mode::exclusive, 1);
  ask("s", "a", kSemaphore, Mode::exclusive, 3);
  ask("s", "b", kSemaphore, Mode::exclusive, 1);
  const AcquireRequest more{
      .key = "s", .holder = "c", .ttl = kTtl, .kind = kSemaphore, .limit = 5, .permits = 2};
  EXPECT_EQ(copy.acquire(now_, more, nullptr, 0).outcome, Outcome::held);
  EXPECT_EQ(copy.acquire(now_, {.key = "k", .holder = "w", .ttl = kTtl}, nullptr, 0).outcome,
            Outcome::held);
}

// Made larger and then smaller, it has a hold larger than both limits that a snapshot tells of.
TEST_F(SharedTest, AHoldThatIsLargerThanEveryLimitIsReplayed) {
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
  expect_replayed(copy);
}

TEST_F(SharedTest, AJournalThatContradictsTheModeIsRefused) {
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
  EXPECT_FALSE(copy.apply(granted)) << "alone beside one who shares it";
  granted.mode = Mode::shared;
  granted.permits = 2;
  EXPECT_FALSE(copy.apply(granted)) << "permits of a lock";
  granted.permits = 1;
  EXPECT_TRUE(copy.apply(granted));
  granted.kind = kSemaphore;
  EXPECT_FALSE(copy.apply(granted)) << "a semaphore that is shared";
}

}  // namespace
}  // namespace lockd
