// Engine::hold(): renewal, loss, and release with the scope.
#include "lockd/held.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/eventually.h"
#include "engine/testing/forgetful_journal.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

AcquireRequest request_for(std::string_view key, Duration ttl = 60s, Duration wait = {}) {
  return {.keys = key, .holder = "me", .ttl = ttl, .wait = wait};
}

bool is_free(Engine& engine, std::string_view key) {
  const AcquireResult grant = engine.acquire({.keys = key, .holder = "other", .ttl = 60s});
  if (grant) engine.release({.keys = key, .holder = "other", .fence = grant->fence});
  return static_cast<bool>(grant);
}

TEST(Held, IsReleasedWithItsScope) {
  Engine engine;
  {
    const HeldResult held = engine.hold(request_for("k"));
    ASSERT_TRUE(held);
    EXPECT_TRUE(held->is_held());
    EXPECT_FALSE(held->loss());
    EXPECT_EQ(held->keys(), std::vector<std::string>{"k"});
    EXPECT_EQ(held->fence(), engine.fence("k")->fence);
    EXPECT_FALSE(is_free(engine, "k"));
  }
  EXPECT_TRUE(is_free(engine, "k"));
}

TEST(Held, RejectionNamesTheHolder) {
  Engine engine;
  const HeldResult first = engine.hold(request_for("k"));
  const HeldResult second = engine.hold({.keys = "k", .holder = "late", .ttl = 60s});
  EXPECT_EQ(second.outcome, Outcome::held);
  ASSERT_EQ(second.conflicts.size(), 1U);
  EXPECT_EQ(second.conflicts.front().holder, "me");
  EXPECT_FALSE(second->is_held());
  EXPECT_EQ(engine.hold({.keys = "", .holder = "me", .ttl = 60s}).outcome, Outcome::invalid_key);
  Session session{1};
  EXPECT_EQ(engine.hold({.keys = "x", .holder = Holder(&session, 7), .ttl = 60s}).outcome,
            Outcome::invalid_holder);
}

TEST(Held, WaitIsGrantedOrCancelled) {
  Engine engine;
  HeldResult first = engine.hold(request_for("k"));
  HeldResult second;
  std::jthread waiter([&](const std::stop_token& stop) {
    second = engine.hold({.keys = "k", .holder = "next", .ttl = 60s, .wait = kDurationMax}, stop);
  });
  ASSERT_TRUE(eventually([&] { return engine.stats().lock_waiters == 1; }));
  EXPECT_EQ(first->release(), Outcome::ok);
  waiter.join();
  ASSERT_TRUE(second);
  EXPECT_GT(second->fence(), first->fence());
  waiter = std::jthread([&](const std::stop_token& stop) {
    first = engine.hold(request_for("k", 60s, kDurationMax), stop);
  });
  ASSERT_TRUE(eventually([&] { return engine.stats().lock_waiters == 1; }));
  waiter.request_stop();
  waiter.join();
  EXPECT_EQ(first.outcome, Outcome::cancelled);
}

TEST(Held, IsRenewedAfterAThirdOfItsLease) {
  Engine engine;
  const HeldResult held = engine.hold(request_for("k", 3s));
  ASSERT_TRUE(held);
  const Time granted_until = held->expires_at();
  ASSERT_TRUE(eventually([&] { return held->expires_at() > granted_until; }));
  EXPECT_GE(engine.now(), granted_until - 2s) << "at a third of the lease, and not before";
  EXPECT_TRUE(held->is_held());
  EXPECT_FALSE(is_free(engine, "k"));
}

TEST(Held, ManyAreRenewedByOneThread) {
  Engine engine;
  std::vector<Held> all;
  std::vector<std::string> names;
  for (int i = 0; i < 1000; ++i) names.push_back("k" + std::to_string(i));
  for (const std::string& name : names)
    all.push_back(std::move(engine.hold(request_for(name, 6s)).held));
  const Time until = engine.now() + 6s;
  ASSERT_TRUE(eventually([&] { return engine.now() > until; }));
  for (const Held& held : all) EXPECT_TRUE(held.is_held());
  EXPECT_EQ(engine.stats().expiries, 0U);
}

TEST(Held, RevocationIsALoss) {
  Engine engine;
  std::atomic<int> notified = 0;
  std::atomic<Outcome> how = Outcome::ok;
  HeldResult held = engine.hold(request_for("k", 1500ms), {}, [&](Outcome loss) {
    how = loss;
    ++notified;
  });
  ASSERT_TRUE(held);
  ASSERT_TRUE(engine.revoke({.key = "k", .reason = "a test", .by = "admin"}));
  ASSERT_TRUE(eventually([&] { return notified == 1; }));
  EXPECT_EQ(how, Outcome::expired);
  EXPECT_TRUE(held->lost().stop_requested());
  EXPECT_FALSE(held->is_held());
  EXPECT_EQ(held->loss(), Outcome::expired);
  EXPECT_EQ(held->release(), Outcome::expired);
  EXPECT_TRUE(is_free(engine, "k"));
}

TEST(Held, GrantToAnotherHolderIsALoss) {
  Engine engine;
  const HeldResult held = engine.hold(request_for("k", 1500ms));
  ASSERT_TRUE(engine.revoke({.key = "k"}));
  const HeldResult other = engine.hold({.keys = "k", .holder = "next", .ttl = 60s});
  ASSERT_TRUE(other);
  ASSERT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
  EXPECT_EQ(held->loss(), Outcome::stale);
  EXPECT_TRUE(other->is_held()) << "the old holder must not release the new hold";
  EXPECT_FALSE(is_free(engine, "k"));
}

// The process was paused for longer than the lease.
TEST(Held, EndOfTheLeaseIsFinal) {
  ManualClock clock;
  Engine engine({.clock = &clock, .sweeper = false});
  const HeldResult held = engine.hold(request_for("k", 60s));
  ASSERT_TRUE(held);
  clock.advance(60s - 1ns);
  EXPECT_TRUE(held->is_held());
  clock.advance(1ns);
  EXPECT_FALSE(held->is_held());
  EXPECT_EQ(held->loss(), Outcome::expired);
  ASSERT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
  EXPECT_TRUE(is_free(engine, "k"));
}

TEST(Held, RenewalCountsOnceDurable) {
  ManualClock clock;
  ForgetfulJournal journal(ForgetfulJournal::Sync::by_hand);
  Engine engine({.clock = &clock, .journal = &journal, .sweeper = false});
  std::jthread syncs([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      journal.sync();
      std::this_thread::yield();
    }
  });
  const HeldResult held = engine.hold(request_for("k", 60s));
  ASSERT_TRUE(held);
  syncs.request_stop();
  syncs.join();
  const Time granted_until = held->expires_at();
  const std::uint64_t renewals = engine.stats().renewals;
  clock.advance(30s);
  ASSERT_TRUE(eventually([&] { return engine.stats().renewals > renewals; }));
  EXPECT_EQ(held->expires_at(), granted_until) << "a crash could lose the renewal";
  journal.sync();
  ASSERT_TRUE(eventually([&] { return held->expires_at() > granted_until; }));
  clock.advance(25s);
  ASSERT_TRUE(eventually([&] { return engine.stats().renewals > renewals + 1; }));
  clock.advance(36s);
  EXPECT_FALSE(held->is_held()) << "the renewal was not durable before the end of the lease";
  journal.sync();
  EXPECT_FALSE(held->is_held()) << "the end is final";
  syncs = std::jthread([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) journal.sync();
  });
  ASSERT_TRUE(eventually([&] { return is_free(engine, "k"); })) << "the hold is released";
}

TEST(Held, CallbackMayDestroyTheHeld) {
  Engine engine;
  std::optional<Held> held;
  std::atomic<bool> notified = false;
  held.emplace(std::move(engine
                             .hold(request_for("k", 600ms), {},
                                   [&](Outcome) {
                                     held.reset();
                                     notified = true;
                                   })
                             .held));
  ASSERT_TRUE(engine.revoke({.key = "k"}));
  ASSERT_TRUE(eventually([&] { return notified.load(); }));
  EXPECT_FALSE(held.has_value());
}

TEST(Held, ReleaseIsNoLossAndIdempotent) {
  Engine engine;
  std::atomic<int> notified = 0;
  HeldResult held = engine.hold(request_for("k", 300ms), {}, [&](Outcome) { ++notified; });
  EXPECT_EQ(held->release(), Outcome::ok);
  EXPECT_EQ(held->release(), Outcome::ok);
  EXPECT_FALSE(held->is_held());
  EXPECT_FALSE(held->loss());
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(notified, 0);
  EXPECT_FALSE(held->lost().stop_requested());
  Held nothing;
  EXPECT_EQ(nothing.release(), Outcome::expired);
  EXPECT_FALSE(nothing.is_held());
}

TEST(Held, MoveAssignmentReleasesTheOldHold) {
  Engine engine;
  Held first = std::move(engine.hold(request_for("a")).held);
  Held second = std::move(engine.hold(request_for("b")).held);
  first = std::move(second);
  EXPECT_TRUE(is_free(engine, "a")) << "the old hold is released";
  EXPECT_FALSE(is_free(engine, "b"));
  EXPECT_TRUE(first.is_held());
}

TEST(Held, SeveralKeysAreRenewedAndLostTogether) {
  Engine engine;
  std::atomic<bool> notified = false;
  const std::vector<KeyItem> keys{"a", semaphore("s", 2, 2)};
  const HeldResult held = engine.hold({.keys = keys, .holder = "me", .ttl = 1500ms}, {},
                                      [&](Outcome) { notified = true; });
  ASSERT_TRUE(held);
  EXPECT_EQ(held->keys(), (std::vector<std::string>{"a", "s"}));
  const Time granted_until = held->expires_at();
  ASSERT_TRUE(eventually([&] { return held->expires_at() > granted_until; }));
  const std::vector<KeyItem> others{"b", "a"};
  EXPECT_EQ(engine.hold({.keys = others, .holder = "x", .ttl = 1s}).conflicts.size(), 1U);
  ASSERT_TRUE(engine.revoke({.key = "s", .kind = Kind::semaphore}));
  ASSERT_TRUE(eventually([&] { return notified.load(); }));
  EXPECT_TRUE(is_free(engine, "a")) << "the other key is released";
}

TEST(Held, DestroyedEngineIsALoss) {
  std::optional<Engine> engine(std::in_place);
  HeldResult held = engine->hold(request_for("k"));
  HeldResult late;
  std::jthread waiter([&] {
    late = engine->hold({.keys = "k", .holder = "late", .ttl = 60s, .wait = kDurationMax});
  });
  ASSERT_TRUE(eventually([&] { return engine->stats().lock_waiters == 1; }));
  engine.reset();
  waiter.join();
  EXPECT_EQ(late.outcome, Outcome::closed);
  EXPECT_FALSE(held->is_held());
  EXPECT_TRUE(held->lost().stop_requested());
  EXPECT_EQ(held->loss(), Outcome::closed);
  EXPECT_EQ(held->release(), Outcome::closed);
}

}  // namespace
}  // namespace lockd
