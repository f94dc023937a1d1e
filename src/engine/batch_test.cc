// Batches, sessions, and the journal: nobody is told of what is not durable.
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

TEST_F(BatchTest, TellsWhatItSettledWhenItIsCommitted) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  const Answer held = batch.acquire({.key = "k", .holder = "a", .ttl = 30s});
  const AcquireRequest waits{.key = "k", .holder = "b", .ttl = 30s, .wait = 10s};
  EXPECT_EQ(batch.acquire(waits, &recorder_, 1).outcome, Outcome::queued);
  EXPECT_EQ(batch.release({.key = "k", .holder = "a", .fence = held.grant.fence}), Outcome::ok);
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::queued);
  EXPECT_EQ(batch.commit(), 0u);
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::ok);
}

TEST_F(BatchTest, CancelsAWait) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  batch.acquire({.key = "k", .holder = "a", .ttl = 30s});
  const Answer queued =
      batch.acquire({.key = "k", .holder = "b", .ttl = 30s, .wait = 10s}, &recorder_, 7);
  EXPECT_TRUE(batch.cancel(queued.wait));
  EXPECT_FALSE(batch.cancel(queued.wait));
  WaitId nonsense = queued.wait;
  nonsense.shard = 1'000;
  EXPECT_FALSE(batch.cancel(nonsense));
  batch.commit();
  EXPECT_EQ(recorder_.outcome_of(7), Outcome::cancelled);
}

TEST_F(BatchTest, ASessionKnowsItsShardsAndEndsInAllOfThem) {
  // A seed of its own: with a random one, some shard gets none of the keys now and then.
  Engine engine({.clock = &clock_, .sweeper = false, .hash_seed = 1});
  Session session{.id = 3};
  Batch batch(engine);
  for (std::uint64_t i = 0; i < 500; ++i) {
    batch.acquire({.key = "k" + std::to_string(i), .holder = {&session, i}, .ttl = 30s});
  }
  EXPECT_EQ(session.shards, UINT64_MAX);
  batch.end_session(session);
  EXPECT_EQ(session.shards, 0u);
  engine.list([](const KeyStatus& status) { EXPECT_EQ(status.holders, 0u) << status.key; });
}

// Every shard has its share: a place in a queue does not wait for a thousand holds elsewhere.
TEST_F(BatchTest, ASessionEndsInPiecesAndItsPlacesGoSoon) {
  Engine engine({.clock = &clock_, .sweeper = false, .hash_seed = 1});
  Session session{.id = 3};
  Session other{.id = 4};
  Batch batch(engine);
  constexpr std::uint64_t kHolds = 2'000;
  for (std::uint64_t i = 0; i < kHolds; ++i) {
    batch.acquire({.key = "many",
                   .holder = {&session, i},
                   .ttl = 30s,
                   .kind = Kind::semaphore,
                   .limit = kHolds});
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    batch.acquire({.key = key, .holder = {&other, kHolds + i}, .ttl = 30s});
    batch.enqueue({.key = key, .holder = {&session, 2 * kHolds + i}, .ttl = 30s});
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

// A place in the queue is no hold, nor is a grant and nobody was told of.
TEST_F(BatchTest, ASessionHoldsWhatItWasToldOf) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Session session{.id = 3};
  Session other{.id = 4};
  Batch batch(engine);
  const Answer held = batch.acquire({.key = "k", .holder = {&other, 1}, .ttl = 5s});
  batch.enqueue({.key = "k", .holder = {&session, 2}, .ttl = 5s});
  EXPECT_TRUE(batch.has_state(session));
  EXPECT_FALSE(batch.has_acknowledged_hold(session));
  batch.release({.key = "k", .holder = {nullptr, 1}, .fence = held.grant.fence});
  EXPECT_TRUE(batch.has_state(session));
  EXPECT_FALSE(batch.has_acknowledged_hold(session));
  batch.await_turn(session, Kind::lock, "k", 0s, nullptr);
  EXPECT_TRUE(batch.has_acknowledged_hold(session));
  EXPECT_FALSE(batch.has_acknowledged_hold(other));
  clock_.advance(5s);
  EXPECT_FALSE(batch.has_acknowledged_hold(session));
  EXPECT_FALSE(batch.has_state(session));
}

// With a journal.

TEST_F(BatchTest, ARefusalRestsOnWhatItSpeaksOf) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  Batch first(engine);
  first.acquire({.key = "k", .holder = "a", .ttl = 30s});
  const Position granted = first.commit();
  Batch second(engine);
  EXPECT_EQ(second.acquire({.key = "k", .holder = "b", .ttl = 30s}).outcome, Outcome::held);
  EXPECT_EQ(second.commit(), granted) << "to be refused is to hear of the grant";
}

TEST_F(BatchTest, ABlockingCallReturnsWhenItIsDurable) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine({.journal = &journal});
  std::atomic<bool> returned = false;
  std::thread thread([&] {
    EXPECT_TRUE(engine.acquire({.key = "k", .holder = "a", .ttl = 30s}));
    returned = true;
  });
  while (journal.events().empty()) std::this_thread::yield();
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(returned);
  journal.sync();
  thread.join();
}

// What is refused depends on how full it is, and changes nothing; what ends by itself does so.
TEST_F(BatchTest, AFullJournalRefusesGrantsThenRenewalsThenReleases) {
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
    const Fence fence = batch.acquire({.key = "k", .holder = "a", .ttl = 30s}).grant.fence;
    const Fence lapses = batch.acquire({.key = "l", .holder = "a", .ttl = 10s}).grant.fence;
    ASSERT_EQ(batch.enqueue({.key = "e", .holder = {&session, 7}, .ttl = 30s}).outcome,
              Outcome::ok);
    batch.commit();
    journal.set_state(c.state);
    const HoldId hold{.key = "k", .holder = "a", .fence = fence};
    EXPECT_EQ(batch.acquire({.key = "x", .holder = "a", .ttl = 1s}).outcome, Outcome::storage);
    EXPECT_EQ(batch.renew(hold).outcome, c.renewed);
    EXPECT_EQ(batch.await_turn(session, Kind::lock, "e", 0s, nullptr, 0).outcome, c.renewed);
    EXPECT_EQ(batch.release(hold), c.released);
    clock_.advance(10s);
    engine.sweep();
    journal.set_state(State::accepting);
    EXPECT_EQ(batch.renew({.key = "l", .holder = "a", .fence = lapses}).outcome, Outcome::expired);
    EXPECT_EQ(batch.release(hold), c.released == Outcome::ok ? Outcome::expired : Outcome::ok);
    batch.commit();
  }
}

// It may have no room for days: who stops does not wait for that.
TEST_F(BatchTest, ToldAtTheEndWhatAJournalHadNoRoomFor) {
  ForgetfulJournal journal(Sync::by_hand);
  std::optional<Engine> engine;
  engine.emplace(EngineOptions{.clock = &clock_, .journal = &journal, .sweeper = false});
  {
    Batch batch(*engine);
    const Answer held = batch.acquire({.key = "k", .holder = "a", .ttl = 30s});
    batch.acquire({.key = "k", .holder = "b", .ttl = 30s, .wait = 10s}, &recorder_, 1);
    batch.commit();
    journal.sync();
    batch.release({.key = "k", .holder = "a", .fence = held.grant.fence});
    batch.commit();
    journal.set_state(Journal::State::exhausted);
  }
  engine->close();
  engine->drain_notifications();
  engine.reset();
  EXPECT_EQ(recorder_.outcome_of(1), Outcome::closed);
}

TEST_F(BatchTest, WhatWasDurableIsInForceAfterARestartAndFencesGoOn) {
  ForgetfulJournal journal(Sync::by_hand);
  Fence kept = 0;
  Fence last = 0;
  {
    Engine engine({.shards = 64, .clock = &clock_, .journal = &journal, .sweeper = false});
    Batch batch(engine);
    kept = batch.acquire({.key = "kept", .holder = "a", .ttl = 30s}).grant.fence;
    const Answer gone = batch.acquire({.key = "gone", .holder = "a", .ttl = 30s});
    batch.release({.key = "gone", .holder = "a", .fence = gone.grant.fence});
    last = batch.acquire({.key = "expires", .holder = "a", .ttl = 5s}).grant.fence;
    journal.sync();
    batch.acquire({.key = "lost", .holder = "a", .ttl = 30s});
  }
  clock_.advance(10s);
  ForgetfulJournal recovered(journal);
  Engine engine({.shards = 4, .clock = &clock_, .journal = &recovered, .sweeper = false});
  EXPECT_EQ(engine.acquire({.key = "kept", .holder = "b", .ttl = 1s}).outcome, Outcome::held);
  EXPECT_TRUE(engine.renew({.key = "kept", .holder = "a", .fence = kept}));
  EXPECT_FALSE(engine.fence("gone")->held);
  EXPECT_FALSE(engine.fence("lost")->held);
  EXPECT_FALSE(engine.fence("expires")->held);
  for (const char* key : {"gone", "lost", "expires", "new"}) {
    EXPECT_GT(engine.acquire({.key = key, .holder = "b", .ttl = 1s})->fence, last) << key;
  }
}

TEST_F(BatchTest, WhatTheEngineDescribesRebuildsIt) {
  ForgetfulJournal journal;
  Engine engine({.shards = 4, .clock = &clock_, .journal = &journal, .sweeper = false});
  std::vector<Fence> fences;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "k" + std::to_string(i);
    fences.push_back(engine.acquire({.key = key, .holder = "a", .ttl = 30s})->fence);
    if (i % 3 == 0) engine.release({.key = key, .holder = "a", .fence = fences.back()});
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
  EXPECT_GT(rebuilt.acquire({.key = "k0", .holder = "b", .ttl = 1s})->fence, largest);
}

TEST_F(BatchTest, WhatIsRefusedForWantOfRoomRestsOnNothing) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  Batch first(engine);
  first.acquire({.key = "k", .holder = "a", .ttl = 30s});
  EXPECT_FALSE(engine.is_durable(first.commit()));
  journal.set_state(Journal::State::full);
  Batch second(engine);
  EXPECT_EQ(second.acquire({.key = "k", .holder = "b", .ttl = 30s}).outcome, Outcome::storage);
  EXPECT_TRUE(engine.is_durable(second.commit()));
}

TEST_F(BatchTest, WhoeverHoldsAnswersBackHearsWhenTheyAreDurable) {
  ForgetfulJournal journal(Sync::by_hand);
  int heard = 0;
  Engine engine({.clock = &clock_,
                 .journal = &journal,
                 .on_durable = [&heard] { ++heard; },
                 .sweeper = false});
  Batch batch(engine);
  batch.acquire({.key = "k", .holder = "a", .ttl = 30s});
  const Position position = batch.commit();
  EXPECT_EQ(heard, 0);
  EXPECT_FALSE(engine.is_durable(position));
  journal.sync();
  EXPECT_EQ(heard, 1);
  EXPECT_TRUE(engine.is_durable(position));
  EXPECT_EQ(engine.journal_state(), Journal::State::accepting);
  journal.set_state(Journal::State::full);
  EXPECT_EQ(heard, 2);
  EXPECT_EQ(engine.journal_state(), Journal::State::full);
}

TEST_F(BatchTest, AContradictoryJournalIsRefused) {
  ForgetfulJournal journal;
  const Event granted{.type = Event::Type::granted, .key = "k", .holder = "a", .fence = 1};
  Event second = granted;
  second.fence = 2;
  journal.append(std::vector{granted, second});
  EXPECT_THROW(Engine({.clock = &clock_, .journal = &journal, .sweeper = false}),
               std::runtime_error);
}

// More than are ended under one hold of the shard's lock.
TEST_F(BatchTest, RevokesAllHoldersOfASemaphore) {
  constexpr std::uint32_t kHolders = 3000;
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  const auto request = [](const std::string& holder, Duration wait) {
    return AcquireRequest{.key = "s",
                          .holder = holder,
                          .ttl = 30s,
                          .wait = wait,
                          .kind = Kind::semaphore,
                          .limit = kHolders};
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
  EXPECT_EQ(batch.status(Kind::semaphore, "s")->holders, 2u) << "who was promoted keeps it";
  EXPECT_EQ(engine.stats().revocations, kHolders);
}

TEST_F(BatchTest, WhatAnAdminDidIsDurableBeforeItIsTold) {
  ForgetfulJournal journal(Sync::at_once);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  const AcquireRequest request{
      .key = "s", .holder = "a", .ttl = 30s, .kind = Kind::semaphore, .limit = 1};
  const GrantResult grant = engine.acquire(request);
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
