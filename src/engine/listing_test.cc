// Status and listings of keys.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/testing/forgetful_journal.h"
#include "engine/testing/listeners.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class ListingTest : public ::testing::Test {
 protected:
  void hold(Engine& engine, const std::string& key, Kind kind = Kind::lock) {
    EXPECT_TRUE(engine.acquire({.keys = KeyItem(key, kind), .holder = "a", .ttl = 30s}));
  }

  ManualClock clock_;
  NullListener null_listener_;
  std::map<std::string, int> seen_;
  const std::function<void(const KeyStatus&)> see_ = [this](const KeyStatus& status) {
    ++seen_[status.key + (status.kind == Kind::lock ? "" : "/s")];
  };
};

TEST_F(ListingTest, PiecesOfAnySizeVisitEveryKeyOnce) {
  Engine engine({.shards = 8, .clock = &clock_, .sweeper = false});
  for (int i = 0; i < 300; ++i) {
    hold(engine, "k" + std::to_string(i));
    hold(engine, "k" + std::to_string(i), Kind::semaphore);
  }
  for (std::size_t size : {1u, 2u, 7u, 600u, 100'000u}) {
    seen_.clear();
    for (ListCursor cursor; !cursor.done;) {
      std::size_t visited = 0;
      engine.list_some(cursor, size, [&](const KeyStatus& status) {
        see_(status);
        ++visited;
      });
      EXPECT_LE(visited, size);
      EXPECT_TRUE(visited == size || cursor.done) << "only the last piece may be smaller";
    }
    EXPECT_EQ(seen_.size(), 600u) << size;
    for (const auto& [key, times] : seen_) EXPECT_EQ(times, 1) << key;
  }
}

// The cursor is stored and restored while the index grows and shrinks.
TEST_F(ListingTest, CreatedAndForgottenKeysDoNotDisturbAListing) {
  Engine engine(
      {.shards = 4, .idle_max = 0s, .gc_interval = 1ns, .clock = &clock_, .sweeper = false});
  for (int i = 0; i < 500; ++i) hold(engine, "stays" + std::to_string(i));
  std::vector<std::pair<std::string, Fence>> crowd;
  ListCursor cursor;
  for (int piece = 0; !cursor.done; ++piece) {
    ListCursor again{.shard = cursor.shard, .rank = cursor.rank};
    engine.list_some(again, 10, see_);
    cursor = again;
    for (int i = 0; piece < 20 && i < 500; ++i) {
      const std::string key = "crowd" + std::to_string(crowd.size());
      crowd.emplace_back(key, engine.acquire({.keys = key, .holder = "a", .ttl = 30s})->fence);
    }
    if (piece != 30) continue;
    for (const auto& [key, fence] : crowd) {
      EXPECT_EQ(engine.release({.keys = key, .holder = "a", .fence = fence}).outcome, Outcome::ok);
    }
    clock_.advance(1ns);
    engine.sweep();
    EXPECT_EQ(engine.stats().keys, 500u);
  }
  for (int i = 0; i < 500; ++i) EXPECT_EQ(seen_["stays" + std::to_string(i)], 1) << i;
  for (const auto& [key, times] : seen_) EXPECT_EQ(times, 1) << key;
}

TEST_F(ListingTest, InvalidCursorIsHarmless) {
  Engine engine({.shards = 4, .clock = &clock_, .sweeper = false, .hash_seed = 1});
  for (int i = 0; i < 100; ++i) hold(engine, "k" + std::to_string(i));
  for (std::uint32_t shard : {0u, 3u, 4u, UINT32_MAX}) {
    for (std::uint64_t rank : {std::uint64_t{0}, std::uint64_t{1} << 63, UINT64_MAX}) {
      seen_.clear();
      ListCursor cursor{.shard = shard, .rank = rank};
      for (int pieces = 0; !cursor.done; ++pieces) {
        ASSERT_LT(pieces, 200);
        engine.list_some(cursor, 3, see_);
      }
      for (const auto& [key, times] : seen_) EXPECT_EQ(times, 1) << key;
      EXPECT_EQ(shard == 0 && rank == 0, seen_.size() == 100);
      EXPECT_TRUE(shard < 4 || seen_.empty());
    }
  }
  ListCursor cursor;
  engine.list_some(cursor, 0, see_);
  EXPECT_FALSE(cursor.done);
  EXPECT_EQ(cursor.rank, 0u);
}

TEST_F(ListingTest, ReturnsTheDurablePositionOfTheListing) {
  ForgetfulJournal journal(ForgetfulJournal::Sync::by_hand);
  Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  const Position granted = batch.commit();
  ListCursor cursor;
  EXPECT_EQ(engine.list_some(cursor, 10, see_), granted);
  EXPECT_EQ(seen_.size(), 1u);
  EXPECT_TRUE(batch.status(Kind::lock, "k").has_value());
  EXPECT_EQ(batch.commit(), granted);
}

TEST_F(ListingTest, StatusShowsHoldsAndWaiters) {
  Engine engine({.clock = &clock_, .sweeper = false});
  EXPECT_FALSE(engine.status(Kind::lock, "k"));
  EXPECT_FALSE(engine.status(Kind::lock, ""));
  const auto grant = engine.acquire({.keys = "k", .holder = "a", .ttl = 30s});
  EXPECT_FALSE(engine.status(Kind::semaphore, "k"));
  Batch batch(engine);
  Session session{.id = 7};
  batch.acquire({.keys = "k", .holder = {&session, 1}, .ttl = 5s, .wait = 60s}, &null_listener_);
  clock_.advance(10s);

  StatusResult status = engine.status(Kind::lock, "k");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->key, "k");
  EXPECT_EQ(status->holders, 1u);
  EXPECT_EQ(status->waiters, 1u);
  ASSERT_EQ(status->holds.size(), 1u);
  EXPECT_EQ(status->holds[0].holder, "a");
  EXPECT_EQ(status->holds[0].fence, grant->fence);
  EXPECT_EQ(status->holds[0].held, 10s);
  EXPECT_EQ(status->holds[0].remaining, 20s);
  ASSERT_EQ(status->queue.size(), 1u);
  EXPECT_EQ(status->queue[0].holder, "tcp:7");
  EXPECT_EQ(status->queue[0].waited, 10s);

  clock_.advance(20s);  // the lease expires, which status() detects
  status = engine.status(Kind::lock, "k");
  ASSERT_EQ(status->holds.size(), 1u);
  EXPECT_EQ(status->holds[0].holder, "tcp:7");
  clock_.advance(5s);
  status = engine.status(Kind::lock, "k");
  EXPECT_EQ(status->holders, 0u);
  clock_.advance(1s);
  EXPECT_EQ(engine.status(Kind::lock, "k")->idle, 1s);
}

TEST_F(ListingTest, LongQueueIsListedUpToTheLimit) {
  Engine engine({.shards = 1, .clock = &clock_, .sweeper = false});
  Batch batch(engine);
  hold(engine, "k");
  for (std::uint64_t id = 1; id <= 100'000; ++id) {
    batch.acquire({.keys = "k", .holder = "b", .ttl = 30s, .wait = 60s}, &null_listener_, id);
  }
  EXPECT_EQ(engine.status(Kind::lock, "k", SIZE_MAX)->queue.size(), kEntriesMax);
  const StatusResult status = engine.status(Kind::lock, "k", 16);
  EXPECT_EQ(status->waiters, 100'000u);
  EXPECT_EQ(status->queue.size(), 16u);
  engine.list(
      [](const KeyStatus& listed) {
        EXPECT_EQ(listed.waiters, 100'000u);
        EXPECT_EQ(listed.queue.size(), 3u);
      },
      3);
  engine.list([](const KeyStatus& listed) { EXPECT_TRUE(listed.queue.empty()); }, 0);
}

// An expired hold is listed with nothing remaining, and a hold recovered with a renewed lease must
// not be dated to the future.
TEST_F(ListingTest, NoDurationIsNegative) {
  ForgetfulJournal journal;
  Fence fence = 0;
  {
    Engine engine({.clock = &clock_, .journal = &journal, .sweeper = false});
    fence = engine.acquire({.keys = "k", .holder = "a", .ttl = 5s})->fence;
    EXPECT_TRUE(engine.renew({.keys = "k", .holder = "a", .fence = fence}, 60s));
  }
  ForgetfulJournal recovered(journal);
  Engine engine({.clock = &clock_, .journal = &recovered, .sweeper = false});
  engine.list([](const KeyStatus& s) { EXPECT_EQ(s.holds.at(0).held, 0s); });
  clock_.advance(61s);
  engine.list([](const KeyStatus& s) { EXPECT_EQ(s.holds.at(0).remaining, 0s); });
  EXPECT_TRUE(engine.status(Kind::lock, "k")->holds.empty());
}

TEST_F(ListingTest, ShowsTheIdentityOfHoldersAndWaiters) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Session ann{.id = 7,
              .client = std::make_shared<const ClientIdentity>(
                  ClientIdentity{"ann@build-7:4711", "10.0.0.7:51234", "deploy"})};
  Batch batch(engine);
  batch.acquire({.keys = "k", .holder = Holder(&ann, 1), .ttl = 30s});
  batch.acquire({.keys = "k", .holder = "bob", .ttl = 30s, .wait = 9s, .note = "backup"},
                &null_listener_);
  const std::optional<KeyStatus> status = batch.status(Kind::lock, "k");
  EXPECT_EQ(status->holds.at(0).client, ann.client);
  EXPECT_EQ(status->holds.at(0).session, 7u);
  EXPECT_EQ(*status->queue.at(0).client, (ClientIdentity{"", "", "backup"}));
  EXPECT_EQ(status->queue.at(0).session, 0u);
  EXPECT_EQ(engine.owned(7).holds, 1u);
  EXPECT_EQ(engine.owned(7).places, 0u);
}

TEST_F(ListingTest, LastToExpireIsTheHoldWhoseLeaseEndsLast) {
  Engine engine({.clock = &clock_, .sweeper = false});
  Batch batch(engine);
  EXPECT_FALSE(batch.last_to_expire(Kind::lock, "k"));
  for (const auto& [holder, ttl] : {std::pair("a", 20s), {"b", 30s}, {"c", 10s}}) {
    batch.acquire({.keys = shared("k"), .holder = holder, .ttl = ttl});
  }
  clock_.advance(1s);
  const auto last = batch.last_to_expire(Kind::lock, "k");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->holder, "b");
  EXPECT_EQ(last->held, 1s);
  EXPECT_EQ(last->remaining, 29s);
  EXPECT_FALSE(batch.last_to_expire(Kind::semaphore, "k"));
  clock_.advance(29s);
  EXPECT_FALSE(batch.last_to_expire(Kind::lock, "k"));
}

}  // namespace
}  // namespace lockd
