// The parts of replication, each by itself. The whole of it is simulated: tests/ha.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/format.h"
#include "replication/follower.h"
#include "replication/leader_watch.h"
#include "replication/records.h"
#include "replication/testing/model_etcd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(BatchId, IsWrittenSoThatTextHasItsOrder) {
  EXPECT_EQ(to_text(BatchId{42, 7}), "000000000000002a/0000000000000007");
  const std::vector<BatchId> rising = {{1, 0}, {1, 9},     {1, 16},
                                       {2, 0}, {0x100, 3}, {UINT64_MAX, 0}};
  for (std::size_t i = 0; i + 1 < rising.size(); ++i) {
    EXPECT_LT(rising[i], rising[i + 1]);
    EXPECT_LT(to_text(rising[i]), to_text(rising[i + 1]));
    EXPECT_EQ(parse_batch_id(to_text(rising[i])), rising[i]);
  }
  for (const char* text :
       {"", "1/2", "000000000000002a-0000000000000007", "000000000000002a/000000000000000g"}) {
    EXPECT_FALSE(parse_batch_id(text).has_value()) << text;
  }
}

TEST(LeaderRecord, ComesBackAsItWasWritten) {
  const LeaderRecord record{.incarnation = "1-2", .node = "n", .address = "h:1", .policy = "a=b c"};
  EXPECT_EQ(leader_record_in(to_text(record)), record);
  EXPECT_EQ(leader_record_in(to_text(record) + "later=1\n"), record);
  EXPECT_EQ(leader_record_in("incarnation=1\nnode=n\naddress=h:1\npolicy=p\n")->version, 1u);
  EXPECT_EQ(version_of_record("anything=1\nversion=7\n"), 7u);
  EXPECT_FALSE(leader_record_in("").has_value());
  EXPECT_FALSE(leader_record_in("node=n\n").has_value());
}

TEST(ReplicaBatch, IsRefusedWhenOneBitIsOther) {
  std::string bytes = std::string(kBatchHeaderSize, '\0') + "payload";
  seal({.previous = {3, 4}, .position = 99}, bytes);
  BatchHeader header;
  std::string_view payload;
  ASSERT_TRUE(open(bytes, &header, &payload));
  EXPECT_EQ(header.previous, (BatchId{3, 4}));
  EXPECT_EQ(header.position, 99);
  EXPECT_EQ(payload, "payload");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_FALSE(open(damaged, &header, &payload)) << i;
  }
  EXPECT_FALSE(open(std::string_view(bytes).substr(0, kBatchHeaderSize - 1), &header, &payload));
}

class DetectorTest : public testing::Test {
 protected:
  static Time at(Duration time) { return Time{1'000'000'000'000} + time; }

  Detector detector_{1s};
  const LeaderObservation observation_{.leader = 5, .head = 9, .heartbeat = 7};
};

TEST_F(DetectorTest, NeedsAWholeWindowWithoutAnyChange) {
  detector_.observe(observation_, at(0ms), at(10ms));
  detector_.observe(observation_, at(1009ms), at(1010ms));
  EXPECT_FALSE(detector_.dead().has_value());  // since 10 ms
  detector_.observe(observation_, at(1010ms), at(1011ms));
  EXPECT_EQ(detector_.dead(), observation_);
  detector_.observe({.leader = 5, .head = 9, .heartbeat = 8}, at(1100ms), at(1101ms));
  EXPECT_FALSE(detector_.dead().has_value());
}

TEST_F(DetectorTest, DoesNotCountTheTimeWhenEtcdIsAwayOrSlow) {
  detector_.observe(observation_, at(0ms), at(1ms));
  detector_.reset();
  detector_.observe(observation_, at(1100ms), at(1101ms));
  EXPECT_FALSE(detector_.dead().has_value());
  detector_.observe(observation_, at(1600ms), at(2101ms));  // more than half of it under way
  detector_.observe(observation_, at(2110ms), at(2111ms));
  EXPECT_FALSE(detector_.dead().has_value());
}

TEST_F(DetectorTest, FindsNobodyDeadWhereNobodyLeads) {
  detector_.observe({}, at(0ms), at(1ms));
  detector_.observe({}, at(5000ms), at(5001ms));
  EXPECT_FALSE(detector_.dead().has_value());
}

// A chain that a test puts into the model's store by hand.
class FollowerTest : public testing::Test {
 protected:
  FollowerTest() { etcd_.move_to(Time{1'000'000'000}); }

  static Event granted(std::string_view key, Fence fence) {
    return {.type = Event::Type::granted,
            .key = key,
            .holder = Holder("a"),
            .fence = fence,
            .ttl = 1s,
            .expires_at = Time{2'000'000'000}};
  }

  void append(const BatchId& id, const BatchId& previous, Position position,
              const std::vector<Event>& events) {
    std::string bytes(kBatchHeaderSize, '\0');
    for (const Event& event : events) {
      char record[kRecordSizeMax];
      bytes.append(record, encode(event, record));
    }
    seal({.previous = previous, .position = position}, bytes);
    end_ = end_of({.position = position}, bytes.size() - kBatchHeaderSize);
    etcd_.store.execute(
        {.then = {etcd::put(keys_.batch(id), bytes), etcd::put(keys_.head, to_text(id))}});
  }
  ReplicationContext context_for(etcd::Client& client) {
    return {.client = client,
            .keys = EtcdKeys("t"),
            .timeouts = {25ms, 100ms},
            .retry = 10ms,
            .stats = stats_,
            .log = [](Severity, std::string_view) {}};
  }
  void put(const std::string& key, const std::string& value) {
    etcd_.store.execute({.then = {etcd::put(key, value)}});
  }
  void run(int turns = 200) {
    for (int i = 0; i < turns; ++i) {
      etcd_.move_to(etcd_.now() + 1ms);
      client_->deliver();
      follower_.turn(etcd_.now(), [&](const Event& event) {
        heard_.push_back(event.fence);
        return event.fence != 666;
      });
    }
  }

  const EtcdKeys keys_{"t"};
  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  std::unique_ptr<etcd::ModelEtcd::Connection> client_ = etcd_.connect();
  ReplicationStats stats_;
  ReplicationContext context_ = context_for(*client_);
  Follower follower_{context_, 2};
  std::vector<Fence> heard_;
  Position end_ = 0;
};

TEST_F(FollowerTest, LoadsInPagesAndThenWatches) {
  append({5, 0}, {}, 0, {});
  for (std::uint64_t i = 1; i <= 5; ++i) append({5, i}, {5, i - 1}, end_, {granted("k", i)});
  run();
  EXPECT_TRUE(follower_.is_current());
  append({5, 6}, {5, 5}, end_, {granted("k", 6)});
  run();
  EXPECT_EQ(heard_, (std::vector<Fence>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(follower_.chain().last_batch, (BatchId{5, 6}));
  EXPECT_EQ(follower_.chain().position, end_);
  EXPECT_EQ(follower_.failure().why, "");
}

TEST_F(FollowerTest, BeginsWithTheBase) {
  append({5, 7}, {5, 6}, 1000, {granted("k", 7)});
  append({6, 0}, {5, 7}, end_, {});
  etcd_.store.execute({.then = {etcd::put(keys_.base, to_text(BatchId{5, 7}))}});
  run();
  EXPECT_TRUE(follower_.is_current());
  EXPECT_EQ(heard_, std::vector<Fence>{7});
}

// An operator or a later version has put it there. It is not a batch of the chain.
TEST_F(FollowerTest, ReadsNothingBehindTheHead) {
  append({5, 0}, {}, 0, {});
  append({5, 1}, {5, 0}, end_, {granted("k", 1)});
  put(keys_.batch({5, UINT64_MAX - 255}), "no batch");
  run();
  EXPECT_TRUE(follower_.is_current());
  append({5, 2}, {5, 1}, end_, {granted("k", 2)});
  run();
  EXPECT_EQ(heard_, (std::vector<Fence>{1, 2}));
  EXPECT_EQ(follower_.failure().why, "");
}

TEST_F(FollowerTest, PassesOverWhatNoBatchOfTheChainFollows) {
  append({5, 0}, {}, 0, {});
  put(keys_.batch({5, 7}), "no batch");
  put(keys_.batch({5, 8}), "LkB7" + std::string(60, 'x'));
  append({9, 0}, {5, 0}, end_, {granted("k", 1)});
  run();
  EXPECT_TRUE(follower_.is_current()) << follower_.failure().why;
  EXPECT_EQ(heard_, std::vector<Fence>{1});
}

TEST_F(FollowerTest, PassesOverWhatIsPutWithoutTheHead) {
  append({5, 0}, {}, 0, {});
  run();
  std::string elsewhere(kBatchHeaderSize, '\0');
  seal({.previous = {3, 4}, .position = 99}, elsewhere);
  for (const std::string& stray : {std::string("no batch"), elsewhere}) {
    put(keys_.batch({5, UINT64_MAX}), stray);
    append({5, follower_.chain().last_batch.seq + 1}, follower_.chain().last_batch, end_,
           {granted("k", 1)});
    run();
  }
  EXPECT_EQ(follower_.failure().why, "");
  EXPECT_EQ(heard_, (std::vector<Fence>{1, 1}));
}

TEST_F(FollowerTest, RefusesALaterVersionByName) {
  append({5, 0}, {}, 0, {});
  etcd_.store.execute({.then = {etcd::put(keys_.batch({5, 1}), "LkB2" + std::string(60, 'x')),
                                etcd::put(keys_.head, to_text(BatchId{5, 1}))}});
  run();
  EXPECT_EQ(follower_.failure().why,
            "batch " + to_text(BatchId{5, 1}) +
                " is of version 2, and this program knows version 1; run on every node the "
                "version of the leader, or a newer one");
  EXPECT_TRUE(follower_.failure().unreadable);
}

TEST_F(FollowerTest, RefusesALaterLeadersRecordByName) {
  etcd_.store.execute({.then = {etcd::put(keys_.leader, "who=n\nversion=3\n")}});
  run();
  EXPECT_EQ(follower_.failure().why,
            "the leader's record is of version 3, and this program knows version 1; run on every "
            "node the version of the leader, or a newer one");
  EXPECT_TRUE(follower_.failure().unreadable);
}

// Nothing has come for long, and all that is older is compacted. Its watch breaks.
TEST_F(FollowerTest, NeedsNothingOlderThanWhatItWasSaidToHaveSeen) {
  append({5, 0}, {}, 0, {});
  run();
  for (int i = 0; i < 10; ++i) etcd_.store.execute({.then = {etcd::put(keys_.heartbeat, "5")}});
  follower_.advance(etcd_.store.revision());
  client_->unwatch();
  etcd_.store.compact(etcd_.store.revision() - 1);
  follower_.reopen_watch();
  run();
  append({5, 1}, {5, 0}, end_, {granted("k", 1)});
  run();
  EXPECT_EQ(follower_.failure().why, "");
  EXPECT_EQ(heard_, std::vector<Fence>{1});
}

TEST_F(FollowerTest, IsLostWhereTheBeginningIsMissing) {
  append({5, 7}, {5, 6}, 1000, {granted("k", 7)});
  run();
  EXPECT_TRUE(follower_.failure().unreadable);
  EXPECT_EQ(follower_.failure().batch, (BatchId{5, 6}));
}

// A follower that starts again finds the same chain.
TEST_F(FollowerTest, CannotReadAChainThatLacksABatchOrHasADamagedOne) {
  append({5, 0}, {}, 0, {});
  for (std::uint64_t i = 1; i <= 5; ++i) append({5, i}, {5, i - 1}, end_, {granted("k", i)});
  etcd_.store.execute({.then = {etcd::erase(keys_.batch({5, 3}))}});
  run();
  EXPECT_TRUE(follower_.failure().unreadable);
  EXPECT_EQ(follower_.failure().batch, (BatchId{5, 3}));
  EXPECT_EQ(follower_.failure().why, "batch " + to_text(BatchId{5, 4}) + " follows " +
                                         to_text(BatchId{5, 3}) + ", and the last one seen is " +
                                         to_text(BatchId{5, 2}));

  put(keys_.batch({5, 3}), "no batch");
  Follower another(context_, 2);
  for (int i = 0; i < 200; ++i) {
    etcd_.move_to(etcd_.now() + 1ms);
    client_->deliver();
    another.turn(etcd_.now(), [](const Event&) { return true; });
  }
  EXPECT_EQ(another.failure().why, "batch " + to_text(BatchId{5, 3}) + " is damaged");
  EXPECT_EQ(another.failure().batch, (BatchId{5, 3}));
}

TEST_F(FollowerTest, IsLostWhereTheHeadIsNotTheEnd) {
  append({5, 0}, {}, 0, {});
  etcd_.store.execute({.then = {etcd::put(keys_.head, to_text(BatchId{5, 1}))}});
  run();
  EXPECT_TRUE(follower_.failure().unreadable);
  EXPECT_EQ(follower_.failure().batch, (BatchId{5, 1}));
}

TEST_F(FollowerTest, IsLostAtAGapAnOldEpochsBatchAndAContradiction) {
  struct {
    const char* what;
    BatchId id;
    BatchId previous;
    Fence fence;
  } cases[] = {{"a gap", {5, 2}, {5, 1}, 1},
               {"a new epoch that begins elsewhere", {9, 0}, {5, 3}, 1},
               {"what the engine refuses", {5, 1}, {5, 0}, 666}};
  for (const auto& c : cases) {
    etcd::ModelEtcd etcd(1, etcd::kNoFaults);
    etcd.move_to(Time{1'000'000'000});
    const auto client = etcd.connect();
    ReplicationContext context = context_for(*client);
    Follower follower(context, 64);
    const auto run = [&] {
      for (int i = 0; i < 100; ++i) {
        etcd.move_to(etcd.now() + 1ms);
        client->deliver();
        follower.turn(etcd.now(), [](const Event& event) { return event.fence != 666; });
      }
    };
    std::swap(etcd.store, etcd_.store);
    append({5, 0}, {}, 0, {});
    std::swap(etcd.store, etcd_.store);
    run();
    ASSERT_TRUE(follower.is_current()) << c.what;
    std::swap(etcd.store, etcd_.store);
    append(c.id, c.previous, end_, {granted("k", c.fence)});
    std::swap(etcd.store, etcd_.store);
    run();
    EXPECT_NE(follower.failure().why, "") << c.what;
    etcd_.store = {};
  }
}

TEST_F(FollowerTest, PassesOverWhatComesTwice) {
  append({5, 0}, {}, 0, {});
  run();
  append({5, 1}, {5, 0}, end_, {granted("k", 1)});
  follower_.reopen_watch();  // from the last revision on, which it has seen
  run();
  follower_.reopen_watch();
  run();
  EXPECT_EQ(heard_, std::vector<Fence>{1});
  EXPECT_GT(stats_.batches_repeated.value(), 0u);
}

TEST_F(FollowerTest, IsLostWhenWhatItNeedsIsCompacted) {
  append({5, 0}, {}, 0, {});
  run();
  client_->unwatch();
  append({5, 1}, {5, 0}, end_, {});
  append({5, 2}, {5, 1}, end_, {});
  etcd_.store.compact(etcd_.store.revision());
  follower_.reopen_watch();
  run();
  EXPECT_NE(follower_.failure().why, "");
}

TEST_F(FollowerTest, IsLostWhenEtcdIsEmptiedWhileItIsRead) {
  append({5, 0}, {}, 0, {});
  for (std::uint64_t i = 1; i <= 5; ++i) append({5, i}, {5, i - 1}, end_, {granted("k", i)});
  while (heard_.empty()) run(1);
  etcd_.store = {};
  run();
  EXPECT_NE(follower_.failure().why, "");
  EXPECT_FALSE(follower_.failure().unreadable);
}

TEST_F(FollowerTest, KnowsWhoLeads) {
  const LeaderRecord record{.incarnation = "i", .node = "n", .address = "h:1", .policy = "p"};
  run();
  EXPECT_EQ(follower_.chain().leader.epoch, 0);
  etcd_.store.execute({.then = {etcd::put(keys_.leader, to_text(record))}});
  run();
  EXPECT_EQ(follower_.chain().leader.epoch, etcd_.store.revision());
  EXPECT_EQ(follower_.chain().leader.record, record);
  etcd_.store.execute({.then = {etcd::erase(keys_.leader)}});
  run();
  EXPECT_EQ(follower_.chain().leader.epoch, 0);
}

}  // namespace
}  // namespace lockd
