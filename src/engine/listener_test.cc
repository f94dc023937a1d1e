// Listeners: each is told once, on whatever thread; what it may do then; and until when it is
// called.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/forgetful_journal.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Sync = ForgetfulJournal::Sync;

// Takes note, then does what it was made for.
class Hears final : public Listener {
 public:
  explicit Hears(std::function<void(const Settled&)> then = [](const Settled&) {})
      : then_(std::move(then)) {}
  void settled(const Settled& settled) noexcept override {
    EXPECT_EQ(outcome, Outcome::queued) << "settled-once";
    outcome = settled.outcome;
    then_(settled);
  }
  Outcome outcome = Outcome::queued;

 private:
  const std::function<void(const Settled&)> then_;
};

class ListenerTest : public ::testing::Test {
 protected:
  EngineOptions options(Journal* journal = nullptr) {
    return {.clock = &clock_, .journal = journal, .sweeper = false};
  }
  static HoldId take(Batch& batch, std::string_view key) {
    const Answer answer = batch.acquire({.key = key, .holder = "a", .ttl = 30s});
    return {.key = key, .holder = "a", .fence = answer.grant.fence};
  }
  static void wait_for(Batch& batch, std::string_view key, Listener& listener) {
    const AcquireRequest request{.key = key, .holder = "b", .ttl = 30s, .wait = 10s};
    EXPECT_EQ(batch.acquire(request, &listener).outcome, Outcome::queued);
  }

  ManualClock clock_;
};

TEST_F(ListenerTest, MayCallTheEngineIfThatDoesNotWait) {
  Engine engine(options());
  Hears listener([&](const Settled& s) {
    EXPECT_EQ(engine.release({.key = "k", .holder = "b", .fence = s.grant.fence}), Outcome::ok);
  });
  Batch batch(engine);
  const HoldId held = take(batch, "k");
  wait_for(batch, "k", listener);
  engine.release(held);
  EXPECT_EQ(listener.outcome, Outcome::ok);
  EXPECT_FALSE(engine.fence("k").held);
}

TEST_F(ListenerTest, MayUseTheBatchThatTellsIt) {
  Engine engine(options());
  Batch batch(engine);
  const HoldId first = take(batch, "k1");
  const HoldId second = take(batch, "k2");
  Hears passes_on([&](const Settled&) { batch.release(second); });
  Hears next;
  wait_for(batch, "k1", passes_on);
  wait_for(batch, "k2", next);
  batch.release(first);
  batch.commit();
  EXPECT_EQ(passes_on.outcome, Outcome::ok);
  EXPECT_EQ(next.outcome, Outcome::queued);
  batch.commit();
  EXPECT_EQ(next.outcome, Outcome::ok);
}

TEST_F(ListenerTest, MayUseABatchThatGoes) {
  Engine engine(options());
  std::optional<Batch> batch(std::in_place, engine);
  const HoldId first = take(*batch, "k1");
  const HoldId second = take(*batch, "k2");
  Hears passes_on([&, goes = &*batch](const Settled&) { goes->release(second); });
  Hears next;
  wait_for(*batch, "k1", passes_on);
  wait_for(*batch, "k2", next);
  batch->release(first);
  batch.reset();
  EXPECT_EQ(next.outcome, Outcome::ok);
}

TEST_F(ListenerTest, MayUseABatchOnTheJournalsThread) {
  ForgetfulJournal journal(Sync::by_hand);
  Engine engine(options(&journal));
  Hears passes_on([&](const Settled& s) {
    Batch(engine).release({.key = "k", .holder = "b", .fence = s.grant.fence});
  });
  Hears next;
  Batch batch(engine);
  const HoldId held = take(batch, "k");
  wait_for(batch, "k", passes_on);
  wait_for(batch, "k", next);
  batch.release(held);
  batch.commit();
  journal.sync();
  EXPECT_EQ(passes_on.outcome, Outcome::ok);
  EXPECT_EQ(next.outcome, Outcome::queued) << "granted, and not durable";
  journal.sync();
  EXPECT_EQ(next.outcome, Outcome::ok);
}

}  // namespace
}  // namespace lockd
