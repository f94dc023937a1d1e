// An engine on a journal in a real directory, over restarts.
#include "lockd/file_journal.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>

#include "base/testing/test_size.h"
#include "journal/inspect.h"
#include "journal/testing/file_journal_fixture.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST_F(FileJournalTest, TheFirstFenceOfANewJournalIsOne) {
  start();
  EXPECT_EQ(engine_->acquire({.keys = "k", .holder = "a", .ttl = 30s})->fence, 1U);
}

// Of the journal itself first, and then of a snapshot of it.
TEST_F(FileJournalTest, WhoHeldItIsKnownAfterARestart) {
  start();
  Session ann{.id = 7,
              .client = std::make_shared<const ClientIdentity>(
                  ClientIdentity{"ann@build-7:4711", "10.0.0.7:51234", "deploy"})};
  Batch batch(*engine_);
  batch.acquire({.keys = "k", .holder = Holder(&ann, 0xfeed), .ttl = 600s});
  engine_->wait_durable(batch.commit());
  ASSERT_TRUE(engine_->acquire(
      {.keys = "l", .holder = "bob", .ttl = 600s, .note = "backup", .peer = "10.0.0.9:1"}));
  for (int run = 0; run < 2; ++run) {
    start();
    const HoldStatus by_session = engine_->status(Kind::lock, "k")->holds.at(0);
    EXPECT_EQ(by_session.holder, "tcp:0");
    EXPECT_EQ(by_session.session, 0U) << "a disconnect must never hit a stranger";
    EXPECT_EQ(*by_session.client, *ann.client);
    const HoldStatus by_name = engine_->status(Kind::lock, "l")->holds.at(0);
    EXPECT_EQ(*by_name.client, (ClientIdentity{"", "10.0.0.9:1", "backup"}));
  }
}

TEST_F(FileJournalTest, WhatWasHeldIsHeldAndItsOwnerRenewsAndReleases) {
  start();
  const auto kept = engine_->acquire({.keys = "kept", .holder = "a", .ttl = 600s});
  const auto gone = engine_->acquire({.keys = "gone", .holder = "a", .ttl = 600s});
  ASSERT_TRUE(kept);
  Session session{.id = 7};
  Batch batch(*engine_);
  const Answer secret =
      batch.acquire({.keys = "secret", .holder = Holder(&session, 0xfeed), .ttl = 600s});
  engine_->wait_durable(batch.commit());
  const auto pooled = engine_->acquire({.keys = semaphore("pool", 2), .holder = "a", .ttl = 600s});
  ASSERT_EQ(engine_->release({.keys = "gone", .holder = "a", .fence = gone->fence}).outcome,
            Outcome::ok);

  for (const std::uint32_t shards : {4U, 64U}) {
    start(Duration::zero(), shards);
    const auto refused = engine_->acquire({.keys = "kept", .holder = "b", .ttl = 1s});
    EXPECT_EQ(refused.outcome, Outcome::held);
    EXPECT_EQ(refused.conflicts.at(0).holder, "a");
    EXPECT_EQ(refused.conflicts.at(0).fence, kept->fence);
    EXPECT_LE(refused.conflicts.at(0).expires_at, engine_->now() + 600s);
    EXPECT_GT(refused.conflicts.at(0).expires_at, engine_->now());
    EXPECT_FALSE(engine_->fence("gone")->held) << "released stays released";
    EXPECT_TRUE(engine_->renew({.keys = "kept", .holder = "a", .fence = kept->fence}));
    EXPECT_TRUE(engine_->renew(
        {.keys = "secret", .holder = Holder::of_secret(0xfeed), .fence = secret.grant.fence}));
    EXPECT_EQ(engine_->acquire({.keys = semaphore("pool", 3), .holder = "b", .ttl = 1s}).outcome,
              Outcome::limit_mismatch);
  }
  EXPECT_EQ(engine_->release({.keys = "kept", .holder = "a", .fence = kept->fence}).outcome,
            Outcome::ok);
  EXPECT_EQ(
      engine_
          ->release(
              {.keys = "secret", .holder = Holder::of_secret(0xfeed), .fence = secret.grant.fence})
          .outcome,
      Outcome::ok);
  EXPECT_EQ(
      engine_
          ->release(
              {.keys = KeyItem("pool", Kind::semaphore), .holder = "a", .fence = pooled->fence})
          .outcome,
      Outcome::ok);
  start();
  EXPECT_TRUE(engine_->acquire({.keys = "kept", .holder = "b", .ttl = 1s}));
}

// Else leases would end early after a restart, by as much as the two differ.
TEST_F(FileJournalTest, TheClockIsTheOneInTheHeaders) {
  struct : Inspector {
    void segment(const SegmentHeader& header, std::uint64_t) override {
      offset_ns = header.engine_time.ns - header.opened.boot_ns;
    }
    std::uint64_t offset_ns = 0;
  } headers;
  start();
  inspect(directory_, headers);
  const auto boot_ns = [] {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  };
  const std::uint64_t before = boot_ns();
  const Time now = journal_->clock().now();
  const std::uint64_t after = boot_ns();
  EXPECT_LE(headers.offset_ns + before, now.ns);
  EXPECT_LE(now.ns, headers.offset_ns + after);
}

// A process in a time namespace of its own, in which CLOCK_BOOTTIME is ahead by so much. False if
// the machine does not allow it.
bool run_in_time_namespace(std::chrono::seconds ahead, const std::function<int()>& run,
                           int* status) {
  constexpr int kNotAllowed = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWTIME) != 0) ::_exit(kNotAllowed);
    std::ofstream offsets("/proc/self/timens_offsets");
    offsets << "boottime " << ahead.count() << " 0" << std::flush;
    if (!offsets) ::_exit(kNotAllowed);
    const pid_t inside = ::fork();  // only children are in it
    if (inside == 0) ::_exit(run());
    ::waitpid(inside, status, 0);
    ::_exit(WEXITSTATUS(*status));
  }
  ::waitpid(child, status, 0);
  *status = WEXITSTATUS(*status);
  return *status != kNotAllowed;
}

TEST_F(FileJournalTest, ATimeNamespaceMovesNoLease) {
  if (kSanitized) GTEST_SKIP() << "threads after a fork";
  start();
  ASSERT_TRUE(engine_->acquire({.keys = "k", .holder = "owner", .ttl = 600s}));
  Time last = engine_->now();
  for (const auto ahead : {100'000s, -100s, 300s}) {
    stop();
    int status = 0;
    const auto inside = [&] {
      start();
      const bool held =
          engine_->acquire({.keys = "k", .holder = "thief", .ttl = 1s}).outcome == Outcome::held;
      const Duration passed = engine_->now() - last;
      stop();
      return held && passed >= 0s && passed < 100s ? 0 : 1;
    };
    if (!run_in_time_namespace(ahead, inside, &status)) GTEST_SKIP() << "no time namespaces here";
    EXPECT_EQ(status, 0) << ahead.count();
    start();
    EXPECT_EQ(engine_->acquire({.keys = "k", .holder = "thief", .ttl = 1s}).outcome, Outcome::held);
    EXPECT_GE(engine_->now(), last);
    EXPECT_LT(engine_->now() - last, 100s);
    last = engine_->now();
  }
}

}  // namespace
}  // namespace lockd
