// After the journal has failed, results that a restart loses are not disclosed, and no wait
// remains.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "engine/testing/listeners.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Sync = ForgetfulJournal::Sync;

class FailedJournalTest : public ::testing::Test {
 protected:
  void fail() { journal_.set_state(Journal::State::failed); }
  // A grant that was appended and will not become durable.
  HoldId acquire_undurably(std::string_view key) {
    Batch batch(engine_);
    const Answer answer = batch.acquire({.keys = key, .holder = "lost", .ttl = 30s});
    EXPECT_FALSE(engine_.is_durable(batch.commit()));
    return {.keys = key, .holder = "lost", .fence = answer.grant.fence};
  }
  HoldId acquire(std::string_view key) {
    const HoldId hold = acquire_undurably(key);
    journal_.sync();
    return hold;
  }
  void wait_for(std::string_view key, Listener& listener) {
    Batch batch(engine_);
    const AcquireRequest request{.keys = key, .holder = "next", .ttl = 30s, .wait = 60s};
    EXPECT_EQ(batch.acquire(request, &listener).outcome, Outcome::queued);
  }

  ManualClock clock_;
  ForgetfulJournal journal_{Sync::by_hand};
  Engine engine_{{.clock = &clock_, .journal = &journal_, .sweeper = false}};
};

TEST_F(FailedJournalTest, LostGrantIsNotDisclosed) {
  acquire_undurably("k");
  fail();
  const FenceResult fence = engine_.fence("k");
  EXPECT_EQ(fence.outcome, Outcome::storage);
  EXPECT_EQ(fence->fence, 0u);
  EXPECT_FALSE(fence->held);
  const StatusResult status = engine_.status(Kind::lock, "k");
  EXPECT_EQ(status.outcome, Outcome::storage);
  EXPECT_FALSE(status.key.has_value());
}

TEST_F(FailedJournalTest, ReadsThatWaitForTheJournalReturnStorage) {
  acquire_undurably("k");
  auto fence = std::async(std::launch::async, [&] { return engine_.fence("k").outcome; });
  auto status = std::async(std::launch::async, [&] { return engine_.status({}, "k").outcome; });
  EXPECT_EQ(fence.wait_for(10ms), std::future_status::timeout) << "it is not durable";
  fail();
  EXPECT_EQ(fence.get(), Outcome::storage);
  EXPECT_EQ(status.get(), Outcome::storage);
}

TEST_F(FailedJournalTest, DurableHoldsCanBeRead) {
  const HoldId held = acquire("k");
  fail();
  EXPECT_EQ(engine_.fence("k")->fence, held.fence);
  EXPECT_EQ(engine_.status(Kind::lock, "k")->holds.at(0).fence, held.fence);
}

TEST_F(FailedJournalTest, ExpiryAfterTheFailureIsNotDisclosed) {
  acquire("k");
  fail();
  clock_.advance(31s);
  EXPECT_EQ(engine_.fence("k").outcome, Outcome::storage);
  EXPECT_EQ(engine_.status(Kind::lock, "k").outcome, Outcome::storage);
}

TEST_F(FailedJournalTest, LostGrantAndItsConflictAreNotDisclosed) {
  auto granted = std::async(std::launch::async, [&] {
    return engine_.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  });
  while (journal_.events().empty()) std::this_thread::yield();
  auto refused = std::async(std::launch::async, [&] {
    return engine_.acquire({.keys = "k", .holder = "b", .ttl = 30s});
  });
  fail();
  const AcquireResult lost = granted.get();
  EXPECT_EQ(lost.outcome, Outcome::storage);
  EXPECT_EQ(lost->fence, 0u);
  const AcquireResult none = refused.get();
  EXPECT_EQ(none.outcome, Outcome::storage);
  EXPECT_TRUE(none.conflicts.empty());
}

TEST_F(FailedJournalTest, BlockedCallsReturnAtOnce) {
  acquire("k");
  std::vector<std::future<Outcome>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(std::async(std::launch::async, [&, holder = "h" + std::to_string(i)] {
      return engine_.acquire({.keys = "k", .holder = holder, .ttl = 1s, .wait = 3600s}).outcome;
    }));
  }
  while (engine_.stats().queued < 3) std::this_thread::yield();
  fail();
  for (auto& call : calls) EXPECT_EQ(call.wait_for(60s), std::future_status::ready);
  engine_.close();
  for (auto& call : calls) EXPECT_EQ(call.get(), Outcome::storage);
}

TEST_F(FailedJournalTest, ListenersAreNotifiedAtOnce) {
  acquire("k");
  WaitRecorder when_durable;
  WaitRecorder at_commit(Listener::Delivery::at_commit);
  wait_for("k", when_durable);
  wait_for("k", at_commit);
  Session session{.id = 7};
  WaitRecorder in_turn;
  Batch batch(engine_);
  batch.enqueue({.keys = "k", .holder = {&session, 1}, .ttl = 30s});
  batch.await_turn(session, Kind::lock, "k", 60s, &in_turn);
  fail();
  EXPECT_EQ(when_durable.outcome_of(), Outcome::storage);
  EXPECT_EQ(at_commit.outcome_of(), Outcome::storage);
  EXPECT_EQ(in_turn.outcome_of(), Outcome::storage);
  EXPECT_EQ(engine_.stats().lock_waiters, 0u);
}

// The waiter was granted the lock, but only learns of the failure.
TEST_F(FailedJournalTest, LostGrantOfAWaiterEndsAsStorage) {
  const HoldId held = acquire("k");
  WaitRecorder next;
  wait_for("k", next);
  Batch batch(engine_);
  batch.release(held);
  const Position position = batch.commit();
  fail();
  EXPECT_FALSE(engine_.wait_durable(position));
  EXPECT_EQ(engine_.release({.keys = "k", .holder = "next", .fence = 2}).outcome, Outcome::storage);
  EXPECT_EQ(next.outcome_of(), Outcome::storage);
  EXPECT_EQ(next.fence_of(), 0u);
}

TEST_F(FailedJournalTest, NewWaitsAreRejected) {
  acquire("k");
  fail();
  WaitRecorder late;
  Batch batch(engine_);
  const AcquireRequest request{.keys = "k", .holder = "late", .ttl = 30s, .wait = 60s};
  EXPECT_EQ(batch.acquire(request, &late).outcome, Outcome::storage);
}

}  // namespace
}  // namespace lockd
