// Batches and sessions, and when their results are durable.
#include "lockd/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "engine/testing/forgetful_journal.h"
#include "engine/testing/listeners.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Sync = ForgetfulJournal::Sync;

class BatchTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  WaitRecorder recorder_;
};

TEST_F(BatchTest, CommitNotifiesListenersOfEndedWaits) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  const Answer held = batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const AcquireRequest waits{.keys = "k", .holder = "b", .ttl = 30s, .wait = 10s};
  EXPECT_EQ(batch.acquire(waits, &recorder_, 1).outcome, Outcome::queued);
  EXPECT_EQ(batch.release({.keys = "k", .holder = "a", .fence = held.grant.fence}).outcome,
            Outcome::ok);
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::queued);
  EXPECT_EQ(batch.commit(), 0u);
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::ok);
}

TEST_F(BatchTest, CancelEndsAWaitOnce) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const Answer queued =
      batch.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 10s}, &recorder_, 7);
  EXPECT_TRUE(batch.cancel(queued.wait));
  EXPECT_FALSE(batch.cancel(queued.wait));
  WaitId nonsense = queued.wait;
  nonsense.shard = 1'000;
  EXPECT_FALSE(batch.cancel(nonsense));
  batch.commit();
  EXPECT_EQ(recorder_.outcome_of(7), Outcome::cancelled);
}

TEST_F(BatchTest, EndSessionReleasesHoldsInAllShards) {
  // A fixed seed, with which every shard gets a key.
  Engine engine({.clock = &clock_, .sweeper = false, .hash_seed = 1});
  Session session{.id = 3};
  Batch batch(engine);
  for (std::uint64_t i = 0; i < 500; ++i) {
    batch.acquire({.keys = "k" + std::to_string(i), .holder = {&session, i}, .ttl = 30s});
  }
  EXPECT_EQ(session.shards, UINT64_MAX);
  batch.end_session(session);
  EXPECT_EQ(session.shards, 0u);
  engine.list([](const KeyStatus& status) { EXPECT_EQ(status.holders, 0u) << status.key; });
}

// A place in a queue of one shard does not wait for many holds of another.
TEST_F(BatchTest, EndSessionInPiecesLeavesQueuesFirst) {
  Engine engine({.clock = &clock_, .sweeper = false, .hash_seed = 1});
  Session session{.id = 3};
  Session other{.id = 4};
  Batch batch(engine);
  constexpr std::uint64_t kHolds = 2'000;
  for (std::uint64_t i = 0; i < kHolds; ++i) {
    batch.acquire({.keys = semaphore("many", kHolds), .holder = {&session, i}, .ttl = 30s});
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    batch.acquire({.keys = key, .holder = {&other, kHolds + i}, .ttl = 30s});
    batch.enqueue({.keys = key, .holder = {&session, 2 * kHolds + i}, .ttl = 30s});
  }
  int budget = 500;
  EXPECT_FALSE(batch.end_session(session, false, &budget));
  EXPECT_LE(budget, 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(batch.status(Kind::lock, "k" + std::to_string(i))->waiters, 0u);
  }
  EXPECT_GE(batch.status(Kind::semaphore, "many")->holders, kHolds - 500);
  int pieces = 1;
  for (budget = 500; !batch.end_session(session, false, &budget); budget = 500) ++pieces;
  EXPECT_GE(pieces, 4);
  EXPECT_EQ(batch.status(Kind::semaphore, "many")->holders, 0u);
}

// A place is no hold, and neither is a grant that the session has not awaited.
TEST_F(BatchTest, OnlyDeliveredGrantsAreAcknowledgedHolds) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Session session{.id = 3};
  Session other{.id = 4};
  Batch batch(engine);
  const Answer held = batch.acquire({.keys = "k", .holder = {&other, 1}, .ttl = 5s});
  batch.enqueue({.keys = "k", .holder = {&session, 2}, .ttl = 5s});
  EXPECT_TRUE(batch.has_state(session));
  EXPECT_FALSE(batch.has_acknowledged_hold(session));
  batch.release({.keys = "k", .holder = {nullptr, 1}, .fence = held.grant.fence});
  EXPECT_TRUE(batch.has_state(session));
  EXPECT_FALSE(batch.has_acknowledged_hold(session));
  batch.await_turn(session, Kind::lock, "k", 0s, nullptr);
  EXPECT_TRUE(batch.has_acknowledged_hold(session));
  EXPECT_FALSE(batch.has_acknowledged_hold(other));
  clock_.advance(5s);
  EXPECT_FALSE(batch.has_acknowledged_hold(session));
  EXPECT_FALSE(batch.has_state(session));
}

TEST_F(BatchTest, RejectionDependsOnThePositionOfTheConflictingGrant) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  Batch first(engine);
  first.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const Position granted = first.commit();
  Batch second(engine);
  EXPECT_EQ(second.acquire({.keys = "k", .holder = "b", .ttl = 30s}).outcome, Outcome::held);
  EXPECT_EQ(second.commit(), granted) << "the rejection discloses the grant";
}

TEST_F(BatchTest, BlockingCallReturnsOnceDurable) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine({.journal = &journal});
  std::atomic<bool> returned = false;
  std::thread thread([&] {
    EXPECT_TRUE(engine.acquire({.keys = "k", .holder = "a", .ttl = 30s}));
    returned = true;
  });
  while (journal.events().empty()) std::this_thread::yield();
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(returned);
  journal.sync();
  thread.join();
}

// A rejected request changes nothing; leases expire in every state.
TEST_F(BatchTest, FullJournalRejectsGrantsThenRenewalsThenReleases) {
  using State = Journal::State;
  struct Case {
    State state;
    Outcome renewed;
    Outcome released;
  };
  for (const Case& c : {Case{State::full, Outcome::ok, Outcome::ok},
                        Case{State::scarce, Outcome::storage, Outcome::ok},
                        Case{State::exhausted, Outcome::storage, Outcome::storage}}) {
    ForgetfulJournal journal;
    Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
    Batch batch(engine);
    Session session{.id = 1};
    const Fence fence = batch.acquire({.keys = "k", .holder = "a", .ttl = 30s}).grant.fence;
    const Fence lapses = batch.acquire({.keys = "l", .holder = "a", .ttl = 10s}).grant.fence;
    ASSERT_EQ(batch.enqueue({.keys = "e", .holder = {&session, 7}, .ttl = 30s}).outcome,
              Outcome::ok);
    batch.commit();
    journal.set_state(c.state);
    const HoldId hold{.keys = "k", .holder = "a", .fence = fence};
    EXPECT_EQ(batch.acquire({.keys = "x", .holder = "a", .ttl = 1s}).outcome, Outcome::storage);
    EXPECT_EQ(batch.renew(hold).outcome, c.renewed);
    EXPECT_EQ(batch.await_turn(session, Kind::lock, "e", 0s, nullptr, 0).outcome, c.renewed);
    EXPECT_EQ(batch.release(hold).outcome, c.released);
    clock_.advance(10s);
    engine.sweep();
    journal.set_state(State::accepting);
    EXPECT_EQ(batch.renew({.keys = "l", .holder = "a", .fence = lapses}).outcome, Outcome::expired);
    EXPECT_EQ(batch.release(hold).outcome,
              c.released == Outcome::ok ? Outcome::expired : Outcome::ok);
    batch.commit();
  }
}

// A full disk may last for days, and must not block a shutdown.
TEST_F(BatchTest, WaitEndsAsClosedIfAnExhaustedJournalCannotStoreItsGrant) {
  ForgetfulJournal journal(Sync::by_hand);
  std::optional<Engine> engine;
  engine.emplace(EngineOptions{.clock = &clock_, .journal = &journal, .sweeper = false});
  {
    Batch batch(*engine);
    const Answer held = batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
    batch.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 10s}, &recorder_, 1);
    batch.commit();
    journal.sync();
    batch.release({.keys = "k", .holder = "a", .fence = held.grant.fence});
    batch.commit();
    journal.set_state(Journal::State::exhausted);
  }
  engine->close();
  engine->drain_notifications();
  engine.reset();
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::closed);
}

TEST_F(BatchTest, RestartKeepsDurableHoldsAndContinuesFences) {
  ForgetfulJournal journal(Sync::by_hand);
  Fence kept = 0;
  Fence last = 0;
  {
    Engine engine({.shards = 64, .clock = &clock_, .journal = &journal, .sweeper = false});
    Batch batch(engine);
    kept = batch.acquire({.keys = "kept", .holder = "a", .ttl = 30s}).grant.fence;
    const Answer gone = batch.acquire({.keys = "gone", .holder = "a", .ttl = 30s});
    batch.release({.keys = "gone", .holder = "a", .fence = gone.grant.fence});
    last = batch.acquire({.keys = "expires", .holder = "a", .ttl = 5s}).grant.fence;
    journal.sync();
    batch.acquire({.keys = "lost", .holder = "a", .ttl = 30s});
  }
  clock_.advance(10s);
  ForgetfulJournal recovered(journal);
  Engine engine({.shards = 4, .clock = &clock_, .journal = &recovered, .sweeper = false});
  EXPECT_EQ(engine.acquire({.keys = "kept", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
  EXPECT_TRUE(engine.renew({.keys = "kept", .holder = "a", .fence = kept}));
  EXPECT_FALSE(engine.fence("gone")->held);
  EXPECT_FALSE(engine.fence("lost")->held);
  EXPECT_FALSE(engine.fence("expires")->held);
  for (const char* key : {"gone", "lost", "expires", "new"}) {
    EXPECT_GT(engine.acquire({.keys = key, .holder = "b", .ttl = 1s})->fence, last) << key;
  }
}

TEST_F(BatchTest, SnapshotRebuildsTheEngine) {
  ForgetfulJournal journal;
  Engine engine({.shards = 4, .clock = &clock_, .journal = &journal, .sweeper = false});
  std::vector<Fence> fences;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "k" + std::to_string(i);
    fences.push_back(engine.acquire({.keys = key, .holder = "a", .ttl = 30s})->fence);
    if (i % 3 == 0) engine.release({.keys = key, .holder = "a", .fence = fences.back()});
  }
  const std::size_t before = journal.describe();
  const std::vector<Event> events = journal.events();

  ForgetfulJournal compacted;
  compacted.append(std::span(events).subspan(before));
  EXPECT_EQ(events.size() - before, 2000u + 4u);
  Engine rebuilt({.shards = 8, .clock = &clock_, .journal = &compacted, .sweeper = false});
  for (int i = 0; i < 3000; ++i) {
    const FenceStatus status = rebuilt.fence("k" + std::to_string(i)).status;
    EXPECT_EQ(status.held, i % 3 != 0) << i;
    if (!status.held) continue;
    EXPECT_EQ(status.fence, fences[static_cast<std::size_t>(i)]) << i;
  }
  const Fence largest = *std::max_element(fences.begin(), fences.end());
  EXPECT_GT(rebuilt.acquire({.keys = "k0", .holder = "b", .ttl = 1s})->fence, largest);
}

TEST_F(BatchTest, RejectionByAFullJournalDependsOnNoPosition) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  Batch first(engine);
  first.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  EXPECT_FALSE(engine.is_durable(first.commit()));
  journal.set_state(Journal::State::full);
  Batch second(engine);
  EXPECT_EQ(second.acquire({.keys = "k", .holder = "b", .ttl = 30s}).outcome, Outcome::storage);
  EXPECT_TRUE(engine.is_durable(second.commit()));
}

TEST_F(BatchTest, OnDurableReportsProgressAndStates) {
  ForgetfulJournal journal(Sync::by_hand);
  int calls = 0;
  Engine engine({.clock = &clock_,
                 .journal = &journal,
                 .on_durable = [&calls] { ++calls; },
                 .sweeper = false});
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const Position position = batch.commit();
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(engine.is_durable(position));
  journal.sync();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(engine.is_durable(position));
  EXPECT_EQ(engine.journal_state(), Journal::State::accepting);
  journal.set_state(Journal::State::full);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(engine.journal_state(), Journal::State::full);
}

TEST_F(BatchTest, ContradictoryJournalIsRejected) {
  ForgetfulJournal journal;
  const Event granted{.type = Event::Type::granted, .key = "k", .holder = "a", .fence = 1};
  Event second = granted;
  second.fence = 2;
  journal.append(std::vector{granted, second});
  EXPECT_THROW(Engine({.clock = &clock_, .journal = &journal, .sweeper = false}),
               std::runtime_error);
}

// More holds than are ended under one lock of the shard.
TEST_F(BatchTest, RevokeEndsAllHoldsOfASemaphore) {
  constexpr std::uint32_t kHolders = 3000;
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  const auto request = [](const std::string& holder, Duration wait) {
    return AcquireRequest{
        .keys = semaphore("s", kHolders), .holder = holder, .ttl = 30s, .wait = wait};
  };
  for (std::uint32_t i = 0; i < kHolders; ++i) batch.acquire(request("h" + std::to_string(i), 0s));
  for (std::uint64_t id : {1u, 2u}) {
    batch.acquire(request("w" + std::to_string(id), 9s), &recorder_, id);
  }
  const RevokeResult revoked = batch.revoke({.key = "s", .kind = Kind::semaphore});
  batch.commit();
  EXPECT_EQ(revoked.outcome, Outcome::ok);
  EXPECT_EQ(revoked.count, kHolders);
  EXPECT_EQ(revoked.holds.size(), kEntriesMax);
  EXPECT_EQ(revoked.holds.front().holder, "h0");
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::ok);
  EXPECT_EQ(recorder_.outcome_of(2), Outcome::ok);
  EXPECT_EQ(batch.status(Kind::semaphore, "s")->holders, 2u) << "new holders are not revoked";
  EXPECT_EQ(engine.stats().revocations, kHolders);
}

TEST_F(BatchTest, RevokeAndResizeReturnOnceDurable) {
  ForgetfulJournal journal(Sync::at_once);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  const AcquireRequest request{.keys = semaphore("s", 1), .holder = "a", .ttl = 30s};
  const AcquireResult grant = engine.acquire(request);
  EXPECT_EQ(engine.resize("s", 3, "", "ops"), Outcome::ok);
  EXPECT_EQ(journal.events().back().type, Event::Type::resized);
  const RevokeResult revoked =
      engine.revoke({.key = "s", .fence = grant->fence, .kind = Kind::semaphore});
  EXPECT_EQ(revoked.count, 1u);
  EXPECT_EQ(revoked.holds.at(0).fence, grant->fence);
  EXPECT_EQ(journal.events().back().cause, EndCause::revoked);
}

}  // namespace
}  // namespace lockd
