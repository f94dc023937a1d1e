#include "replication/term.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "replication/compaction.h"
#include "replication/snapshot_writer.h"
#include "replication/testing/model_etcd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// A connection to a model of etcd that has no faults.
class EtcdContextTest : public testing::Test {
 protected:
  explicit EtcdContextTest(Duration detect)
      : context_{.client = *client_,
                 .keys = EtcdKeys("t"),
                 .timeouts = {100ms, detect},
                 .retry = 10ms,
                 .stats = stats_,
                 .log = [this](Severity severity, std::string_view line) {
                   log_.emplace_back(severity, line);
                 }} {}

  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  std::unique_ptr<etcd::ModelEtcd::Connection> client_ = etcd_.connect();
  ReplicationStats stats_;
  std::vector<std::pair<Severity, std::string>> log_;
  ReplicationContext context_;
  const EtcdKeys& keys_ = context_.keys;
};

class TermTest : public EtcdContextTest {
 protected:
  TermTest() : EtcdContextTest(400ms) {
    etcd_.move_to(Time{1'000'000'000});
    epoch_ = etcd_.store.execute({.then = {etcd::put(keys_.leader, "it")}}).revision;
    term_ = std::make_unique<Term>(context_, LeaderGuard(context_.keys, epoch_, "it", 1s),
                                   kChainVersion, BatchId{}, Position{0});
    term_->turn(etcd_.now(), nullptr);
    await([this] { return term_->has_begun(); });
    pending_ = std::make_unique<AppendBuffer>(AppendBufferOptions{}, term_->committed());
    turn();
  }

  Time turn() { return term_->turn(etcd_.now(), pending_.get()); }
  void append() {
    const Event event{.type = Event::Type::ended, .key = "k", .fence = ++fence_};
    pending_->append({&event, 1});
  }
  // Without a turn.
  template <typename Happened>
  void await(Happened happened) {
    for (int i = 0; i < 100'000 && !happened(); ++i) {
      etcd_.move_to(etcd_.now() + 10us);
      client_->deliver();
    }
    ASSERT_TRUE(happened());
  }
  void run_for(Duration time) {
    for (const Time end = etcd_.now() + time; etcd_.now() < end;) {
      etcd_.move_to(etcd_.now() + 1ms);
      client_->deliver();
      turn();
    }
  }
  void run_until_appended() {
    while (term_->committed() < pending_->end() && term_->guard().ended().empty()) run_for(1ms);
  }
  void await_append() {
    await([this, before = term_->committed()] { return term_->committed() > before; });
  }

  etcd::Revision epoch_ = 0;
  std::unique_ptr<Term> term_;
  std::unique_ptr<AppendBuffer> pending_;
  Fence fence_ = 0;
};

TEST_F(TermTest, SendsAtOnceWhatNobodyWaitsBeside) {
  for (int i = 0; i < 3; ++i) {
    append();
    turn();
    EXPECT_EQ(pending_->size(), 0u);
    EXPECT_FALSE(term_->is_idle());
    await_append();
    turn();
    EXPECT_TRUE(term_->is_idle());
    EXPECT_EQ(term_->wanted(), 1u);
  }
}

TEST_F(TermTest, WaitsForThoseWhoAreToldWhenOthersWaitAlready) {
  append();
  turn();
  append();  // while the first is on its way
  await_append();
  turn();
  EXPECT_EQ(pending_->count(), 1u);
  EXPECT_FALSE(term_->is_idle());
  EXPECT_EQ(term_->wanted(), 2u);
  append();  // by a client that was answered
  turn();
  EXPECT_EQ(pending_->count(), 0u) << "there is no other client to wait for";
  await_append();
  EXPECT_EQ(term_->committed(), pending_->end());
}

TEST_F(TermTest, KeepsTogetherWhoWasToldTogether) {
  append();
  append();
  turn();
  await_append();
  turn();
  append();
  turn();
  EXPECT_EQ(pending_->count(), 1u);
  append();
  turn();
  EXPECT_EQ(pending_->count(), 0u);
}

TEST_F(TermTest, WaitsForAMomentOnlyForThoseWhoDoNotCome) {
  append();
  append();
  turn();
  await_append();
  const Time told = etcd_.now();
  const Time next = turn();
  EXPECT_GT(next, told);
  EXPECT_LE(next, told + 1ms);
  append();
  turn();
  EXPECT_EQ(pending_->count(), 1u);
  etcd_.move_to(next);
  turn();
  EXPECT_EQ(pending_->count(), 0u);
  await_append();
  turn();
  EXPECT_EQ(term_->wanted(), 1u) << "a single client is never delayed";
}

// The first batch is sent again before its answer can arrive, and the answer to its first try
// counts. From then on the latency of etcd is known.
TEST_F(TermTest, WaitsAsLongAsEtcdTakes) {
  etcd_.distance = 150ms;
  append();
  const Time sent = etcd_.now();
  run_until_appended();
  EXPECT_LT(etcd_.now(), sent + 310ms);
  EXPECT_GT(stats_.resends.value(), 0u);
  EXPECT_EQ(stats_.resolved.value(), 0u);
  EXPECT_GE(context_.timeouts.retry_after(), 300ms);
  run_for(1s);
  const std::uint64_t resends = stats_.resends.value();
  for (int i = 0; i < 5; ++i) {
    append();
    run_until_appended();
  }
  EXPECT_EQ(stats_.resends.value(), resends);
  EXPECT_EQ(term_->guard().ended(), "");
}

// Another leads there, with the same epoch and the same head: revisions are used again.
TEST_F(TermTest, AppendsNothingInAnEtcdThatWasEmptied) {
  etcd_.store = {};
  ASSERT_EQ(etcd_.store.execute({.then = {etcd::put(keys_.leader, "other")}}).revision, epoch_);
  etcd_.store.execute({.then = {etcd::put(keys_.head, to_text(term_->last()))}});
  append();
  run_until_appended();
  EXPECT_EQ(term_->guard().ended(), "another node leads");
  EXPECT_EQ(etcd_.store.find(keys_.batch({term_->last().epoch, 1})), nullptr);
}

// As after a change of its password. It has nothing to append, and is about to lose the lead.
TEST_F(TermTest, SaysOnceThatEtcdLetsItDoNothing) {
  run_for(1s);
  ASSERT_TRUE(log_.empty());
  etcd_.store.read_only = true;
  run_for(5s);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].second, "etcd: permission denied");
  EXPECT_EQ(term_->guard().ended(), "");
  etcd_.store.read_only = false;
  run_for(1s);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[1].second, "etcd: answers again");
}

// Heartbeats succeed, so no other node would replace this leader, and no client would get an
// answer.
TEST_F(TermTest, EndsWhereEtcdRefusesABatchAndNothingElse) {
  run_for(1s);
  etcd_.store.value_max = kBatchHeaderSize;
  append();
  const Time sent = etcd_.now();
  while (term_->guard().ended().empty() && etcd_.now() < sent + 5s) run_for(1ms);
  EXPECT_LT(etcd_.now(), sent + 1s);
  EXPECT_NE(term_->guard().ended().find("/0000000000000001 of "), std::string::npos)
      << term_->guard().ended();
  EXPECT_NE(term_->guard().ended().find("request is too large"), std::string::npos)
      << term_->guard().ended();
  ASSERT_FALSE(log_.empty());
  EXPECT_EQ(log_[0].first, Severity::error);
  EXPECT_TRUE(log_[0].second.starts_with("etcd: refuses batch ")) << log_[0].second;
}

TEST_F(TermTest, GoesOnWhenEverythingWasRefusedForAWhile) {
  run_for(1s);
  for (int i = 0; i < 3; ++i) {
    append();
    etcd_.store.read_only = true;
    run_for(2s);
    EXPECT_LT(term_->committed(), pending_->end());
    etcd_.store.read_only = false;
    run_until_appended();
  }
  EXPECT_EQ(term_->guard().ended(), "");
}

// Answers take half of `detect`, and the leader stays certain: heartbeats do not wait for each
// other.
TEST_F(TermTest, IsCertainAllTheTimeThoughEtcdIsFar) {
  etcd_.distance = 250ms;
  run_for(2s);
  for (int i = 0; i < 5000; ++i) {
    run_for(1ms);
    ASSERT_LT(etcd_.now(), term_->guard().certain_until()) << i;
  }
}

// The base was moved by a leader before this one, when this one had read it already.
TEST_F(TermTest, TruncatesFromWhereverTheBaseIs) {
  const BatchId before{1, 5};
  etcd_.store.execute(
      {.then = {etcd::put(keys_.batch(before), "b"), etcd::put(keys_.base, to_text(before))}});
  Compaction compaction(context_);
  Truncation truncation(context_, {}, compaction, term_->guard(), {}, 0);
  for (int round = 0; round < 3; ++round) {
    const BatchId base = term_->next();
    truncation.begin(base);
    for (int i = 0; i < 1000 && !truncation.is_idle(); ++i) {
      truncation.turn(etcd_.now());
      etcd_.move_to(etcd_.now() + 1ms);
      client_->deliver();
    }
    EXPECT_TRUE(truncation.is_idle());
    const auto answer = etcd_.store.execute({.then = {etcd::get(keys_.base)}});
    EXPECT_EQ(answer.found.front().front().value, to_text(base));
    EXPECT_TRUE(etcd_.store.execute({.then = {etcd::get(keys_.batch(before))}}).found[0].empty());
    append();
    turn();
    await_append();
    turn();
  }
}

class CompactionTest : public EtcdContextTest {
 protected:
  CompactionTest() : EtcdContextTest(100ms) {
    etcd_.move_to(Time{1'000'000'000});
    etcd_.store.refuses_compaction = true;
    etcd_.store.quota = 1;
    write();
  }

  void write() {
    for (int i = 0; i < 10; ++i) etcd_.store.execute({.then = {etcd::put(keys_.head, "it")}});
  }
  void finish() {
    for (int i = 0; i < 1000 && compaction_.is_in_flight(); ++i) {
      etcd_.move_to(etcd_.now() + 1ms);
      client_->deliver();
    }
    EXPECT_FALSE(compaction_.is_in_flight());
    for (int i = 0; i < 50; ++i) {  // how large the store is
      etcd_.move_to(etcd_.now() + 1ms);
      client_->deliver();
    }
  }
  void check_rights() {
    compaction_.check_rights(etcd_.store.revision(), etcd_.now());
    finish();
  }
  void compact() {
    write();
    compaction_.compact(etcd_.store.revision(), etcd_.now());
    finish();
  }

  Compaction compaction_{context_};
};

TEST_F(CompactionTest, SaysAtTheStartThatItMayNot) {
  check_rights();
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].first, Severity::warning);
  EXPECT_NE(log_[0].second.find("permission denied"), std::string::npos) << log_[0].second;
  EXPECT_NE(log_[0].second.find("role root"), std::string::npos) << log_[0].second;
  EXPECT_EQ(stats_.compactions_refused.value(), 0u);
}

TEST_F(CompactionTest, SaysNothingWhereItMay) {
  etcd_.store.refuses_compaction = false;
  check_rights();
  compact();
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(stats_.compactions.value(), 1u);
  EXPECT_EQ(stats_.compactions_refused.value(), 0u);
}

TEST_F(CompactionTest, CountsEveryRefusalAndTellsNowAndThen) {
  check_rights();
  for (int i = 0; i < 5; ++i) compact();
  EXPECT_EQ(stats_.compactions_refused.value(), 5u);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[1].first, Severity::error);
  etcd_.move_to(etcd_.now() + Compaction::kSilence);
  compact();
  EXPECT_EQ(log_.size(), 3u);
}

// etcd does it when it likes, which may be much later.
TEST_F(CompactionTest, IsContentWhileHalfOfTheStoreIsFree) {
  etcd_.store.quota = 1000;
  check_rights();
  for (int i = 0; i < 5; ++i) compact();
  EXPECT_EQ(stats_.compactions_refused.value(), 0u);
  EXPECT_EQ(log_.size(), 1u);  // the warning
  etcd_.store.quota = 1;
  compact();
  EXPECT_EQ(stats_.compactions_refused.value(), 1u);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[1].first, Severity::error);
  EXPECT_NE(log_[1].second.find("half of the quota is in use"), std::string::npos)
      << log_[1].second;
}

TEST_F(CompactionTest, IsContentWhenEtcdDoesItByItself) {
  etcd_.store.compact(etcd_.store.revision());
  check_rights();
  for (int i = 0; i < 3; ++i) {
    write();
    etcd_.store.compact(etcd_.store.revision());
    compact();
  }
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(stats_.compactions_refused.value(), 0u);
  compact();  // what was refused last is still there
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].first, Severity::error);
  etcd_.store.compact(etcd_.store.revision());
  compact();
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[1].first, Severity::info);
}

}  // namespace
}  // namespace lockd
