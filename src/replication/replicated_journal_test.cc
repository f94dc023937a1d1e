// One server, beside another that the test plays. Many of both are simulated: tests/ha.
#include "replication/replicated_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockd/batch.h"
#include "lockd/engine.h"
#include "replication/cluster_journal.h"
#include "replication/testing/model_etcd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDetect = 1s;
constexpr Duration kBeat = kDetect / 5;
const LeaderRecord kSelf{
    .incarnation = "1", .node = "n1", .address = "h:1", .policy = "max-locks=7"};
const LeaderRecord kOther{
    .incarnation = "2", .node = "n2", .address = "h:2", .policy = "max-locks=7 etcd-detect=1"};

// A connection whose watch can be silenced; the next watch delivers every change.
class DeafClient final : public etcd::Client, private etcd::Watcher {
 public:
  explicit DeafClient(etcd::Client& client) : client_(client) {}

  void go_deaf() { deaf_ = true; }

  void execute(const etcd::Txn& txn, Duration within, Done done) override {
    client_.execute(txn, within, std::move(done));
  }
  void switch_member() override { client_.switch_member(); }
  void compact(etcd::Revision revision, Duration within, Done done) override {
    client_.compact(revision, within, std::move(done));
  }
  void measure(Duration within, Measured measured) override {
    client_.measure(within, std::move(measured));
  }
  void watch(const std::string& key, const std::string& range_end, etcd::Revision from,
             etcd::Watcher& watcher) override {
    deaf_ = false;
    watcher_ = &watcher;
    client_.watch(key, range_end, from, *this);
  }
  void unwatch() override { client_.unwatch(); }

 private:
  void changed(const std::vector<etcd::Change>& changes) override {
    if (!deaf_) watcher_->changed(changes);
  }
  void ended(bool compacted, const std::string& why) override { watcher_->ended(compacted, why); }

  etcd::Client& client_;
  etcd::Watcher* watcher_ = nullptr;
  bool deaf_ = false;
};

class ReplicatedJournalTest : public testing::Test {
 protected:
  struct ModelClock final : Clock {
    explicit ModelClock(const etcd::ModelEtcd& model) : etcd(model) {}
    Time now() const noexcept override { return etcd.now() - stood_still; }
    const etcd::ModelEtcd& etcd;
    Duration stood_still{};
  };

  ReplicatedJournalTest() { etcd_.move_to(Time{1'000'000'000}); }

  ReplicatedJournalOptions options() {
    ReplicatedJournalOptions options;
    options.cluster = "t";
    options.self = kSelf;
    options.detect = kDetect;
    options.pending_max = 1000;
    options.log = [this](Severity, std::string_view line) { log_.emplace_back(line); };
    return options;
  }

  void put(const std::string& key, const std::string& value) {
    etcd_.store.execute({.then = {etcd::put(key, value)}});
  }
  // As a leader does: with the head.
  void put_batch(const BatchId& id, const std::string& value) {
    etcd_.store.execute(
        {.then = {etcd::put(keys_.batch(id), value), etcd::put(keys_.head, to_text(id))}});
  }
  std::string get(const std::string& key) {
    const auto found = etcd_.store.execute({.then = {etcd::get(key)}}).found.front();
    return found.empty() ? "" : found.front().value;
  }

  // For so long at most.
  bool run_until(const std::function<bool()>& happened, Duration longest = 60s) {
    for (const Time end = etcd_.now() + longest; !happened() && etcd_.now() < end;) {
      etcd_.move_to(etcd_.now() + 1ms);
      connection_->deliver();
      journal_.turn();
    }
    return happened();
  }
  void run_for(Duration time) {
    run_until([] { return false; }, time);
  }
  // Who leads is another, and has been for a while.
  void follow_the_other() {
    put(keys_.leader, to_text(kOther));
    for (int i = 0; i < 20; ++i) {
      put(keys_.heartbeat, std::to_string(i));
      run_for(kBeat / 2);
    }
    ASSERT_TRUE(journal_.status().caught_up);
  }
  bool is_leading() const { return journal_.is_leading(); }
  static LeaderRecord with_policy(const std::string& policy) {
    LeaderRecord record = kOther;
    record.policy = policy;
    return record;
  }
  std::ptrdiff_t lines_with(std::string_view text) const {
    return std::count_if(log_.begin(), log_.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  const EtcdKeys keys_{"t"};
  std::vector<std::string> log_;
  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  ModelClock clock_{etcd_};
  std::unique_ptr<etcd::ModelEtcd::Connection> connection_ = etcd_.connect();
  DeafClient client_{*connection_};
  ReplicatedJournal journal_{client_, clock_, options()};
  Engine engine_{{.clock = &clock_, .journal = &journal_, .sweeper = false}};
};

TEST_F(ReplicatedJournalTest, TheSettingsOfWhoLeadsAreInForce) {
  put(keys_.leader, to_text(with_policy("max-locks=5 etcd-detect=1 later=9")));
  for (int heartbeat = 0; heartbeat < 20; ++heartbeat) {
    put(keys_.heartbeat, std::to_string(heartbeat));
    run_for(kBeat);
  }
  EXPECT_EQ(journal_.over(), "");
  EXPECT_EQ(journal_.status().settings, "max-locks=5 etcd-detect=1 later=9");
  EXPECT_EQ(journal_.status().own_settings, "max-locks=7 etcd-detect=1");
  EXPECT_EQ(lines_with("max-locks is 5, here 7"), 1);
  EXPECT_EQ(lines_with("etcd-detect is"), 0);
  EXPECT_EQ(lines_with("later"), 0);
}

TEST_F(ReplicatedJournalTest, WhoBeginsToLeadBringsItsOwnSettings) {
  put(keys_.leader, to_text(with_policy("max-locks=5 etcd-detect=2")));
  ASSERT_TRUE(run_until([this] { return is_leading(); })) << journal_.over();
  EXPECT_EQ(journal_.status().settings, journal_.status().own_settings);
  EXPECT_EQ(journal_.status().detect, kDetect);
  EXPECT_NE(get(keys_.leader).find("policy=max-locks=7 etcd-detect=1\n"), std::string::npos);
  EXPECT_EQ(lines_with("in force from now on: etcd-detect is 1, was 2; max-locks is 7, was 5"), 1);
}

// The leader depends on it that no standby waits for less, whatever the standby's own detect.
TEST_F(ReplicatedJournalTest, ALeaderIsGivenTheDetectThatItHas) {
  put(keys_.leader, to_text(with_policy("etcd-detect=3")));
  const Time last = etcd_.now();
  ASSERT_TRUE(run_until([this] { return get(keys_.leader).find("node=n1") != std::string::npos; }));
  EXPECT_GE(etcd_.now() - last, 3s);
  EXPECT_LT(etcd_.now() - last, 4s);
}

TEST_F(ReplicatedJournalTest, ALeaderWithAShorterDetectIsReplacedSooner) {
  put(keys_.leader, to_text(with_policy("etcd-detect=0.3")));
  const Time last = etcd_.now();
  ASSERT_TRUE(run_until([this] { return get(keys_.leader).find("node=n1") != std::string::npos; }));
  EXPECT_GE(etcd_.now() - last, 300ms);
  EXPECT_LT(etcd_.now() - last, 800ms);
}

// The time that nothing has changed may be counted before its record has come by the watch; but not
// compared with what another counted on.
TEST_F(ReplicatedJournalTest, ANewLeadersDetectIsKnownBeforeItIsTakenForDead) {
  put(keys_.leader, to_text(with_policy("etcd-detect=0.3")));
  ASSERT_TRUE(run_until([this] { return journal_.status().caught_up; }));
  client_.go_deaf();
  put(keys_.leader, to_text(with_policy("etcd-detect=5")));
  const Time last = etcd_.now();
  ASSERT_TRUE(run_until([this] { return get(keys_.leader).find("node=n1") != std::string::npos; }));
  EXPECT_GE(etcd_.now() - last, 5s);
  EXPECT_LT(etcd_.now() - last, 7s);
}

TEST_F(ReplicatedJournalTest, SettingsThatAreNotUnderstoodMakeNothingUnreadable) {
  put(keys_.leader, to_text(with_policy("two words")));
  const Time last = etcd_.now();
  ASSERT_TRUE(run_until([this] { return journal_.status().caught_up; }));
  EXPECT_EQ(journal_.status().unreadable, "");
  EXPECT_EQ(lines_with("are not understood: two words"), 1);
  ASSERT_TRUE(run_until([this] { return is_leading(); }, 2 * kDetectMax)) << journal_.over();
  EXPECT_GE(etcd_.now() - last, kDetectMax);  // the longest that it may count on
}

// The first that a leader of a new cluster appends proves that it is there, however late it is.
TEST_F(ReplicatedJournalTest, WhoAppendsForTheFirstTimeIsNotReplaced) {
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until([this] { return journal_.stats().campaigns.value() > 0; }));
  put(keys_.head, to_text(BatchId{1, 0}));  // before the campaign has arrived
  run_for(kDetect / 2);
  EXPECT_EQ(get(keys_.leader), to_text(kOther));
}

TEST_F(ReplicatedJournalTest, AHandOverThatTheWatchConcealsIsNoticed) {
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until([this] { return journal_.status().leader.epoch != 0; }));
  run_for(kBeat);  // the watch is open
  client_.go_deaf();
  etcd_.store.execute({.then = {etcd::erase(keys_.leader)}});
  EXPECT_TRUE(run_until([this] { return is_leading(); }, 2 * kDetect)) << journal_.over();
}

TEST_F(ReplicatedJournalTest, WhatCannotBeReadIsNamedAndReadAgainLater) {
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until([this] { return journal_.status().caught_up; }));
  put_batch({5, 1}, "LkB7" + std::string(60, 'x'));
  ASSERT_TRUE(run_until([this] { return !journal_.status().unreadable.empty(); }));
  ASSERT_TRUE(journal_.over().empty());
  ClusterStatus status{.detect = kDetect, .caught_up = true, .answered = etcd_.now()};
  status.unreadable = journal_.status().unreadable;
  EXPECT_EQ(why_not_ready(status, etcd_.now()), "unreadable");
  EXPECT_NE(log_.back().find("batch " + to_text(BatchId{5, 1}) + " is of version 7"),
            std::string::npos)
      << log_.back();
  const Time stuck = etcd_.now();
  ASSERT_TRUE(run_until([this] { return !journal_.over().empty(); }));
  EXPECT_GE(etcd_.now() - stuck, 900ms);
  EXPECT_EQ(journal_.stats().unreadable.value(), 1u);
  EXPECT_EQ(get(keys_.leader), to_text(kOther));
}

// Its revisions start again, far below those that the watch waits for. No standby would see the new
// chain, nor be able to lead.
TEST_F(ReplicatedJournalTest, AnEtcdThatWasEmptiedIsFollowedFromTheBeginning) {
  follow_the_other();
  etcd_.store = {};
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until([this] { return !journal_.over().empty(); }, kDetect));
  EXPECT_EQ(journal_.over(), etcd::kAnotherStore);
  EXPECT_FALSE(journal_.status().refused);
  EXPECT_EQ(get(keys_.leader), to_text(kOther));
}

TEST_F(ReplicatedJournalTest, AnEtcdThatWasRestoredIsFollowedFromTheBeginning) {
  put(keys_.leader, to_text(kOther));
  const etcd::ModelStore backup = etcd_.store;
  follow_the_other();
  etcd_.store = backup;
  ASSERT_TRUE(run_until([this] { return !journal_.over().empty(); }, kDetect));
  EXPECT_EQ(journal_.over(), etcd::kAnotherStore);
}

TEST_F(ReplicatedJournalTest, AnotherEtcdIsKnownByItsId) {
  follow_the_other();
  etcd_.store.id = 2;
  ASSERT_TRUE(run_until([this] { return !journal_.over().empty(); }, kDetect));
  EXPECT_EQ(journal_.over(), etcd::kAnotherStore);
}

// This server was cut off for long: there are as many revisions as there were.
TEST_F(ReplicatedJournalTest, AnotherEtcdIsKnownByALeaderThatTheWatchMustHaveToldOf) {
  follow_the_other();
  etcd_.store = {};
  put(keys_.heartbeat, "1");
  put(keys_.leader, to_text(kOther));
  for (int i = 0; i < 100; ++i) put(keys_.heartbeat, std::to_string(i));
  ASSERT_TRUE(run_until([this] { return !journal_.over().empty(); }, kDetect));
  EXPECT_EQ(journal_.over(), etcd::kAnotherStore);
}

TEST_F(ReplicatedJournalTest, ALeaderWhoseEtcdWasEmptiedEnds) {
  ASSERT_TRUE(run_until([this] { return is_leading() && journal_.durable() > 0; }));
  etcd_.store = {};
  ASSERT_TRUE(run_until([this] { return !journal_.over().empty(); }, kDetect));
  EXPECT_EQ(journal_.over(), etcd::kAnotherStore);
  EXPECT_EQ(journal_.durable(), 0u);
}

TEST_F(ReplicatedJournalTest, ReadyIsWhoHasCaughtUpAndHearsFromEtcd) {
  const auto why = [this](Duration later = {}) {
    const ClusterStatus status{.detect = journal_.status().detect,
                               .caught_up = journal_.status().caught_up,
                               .lags_since = journal_.status().lags_since,
                               .answered = journal_.status().answered,
                               .not_written = journal_.status().not_written};
    return why_not_ready(status, etcd_.now() + later);
  };
  EXPECT_EQ(why(), "catching_up");
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until([this] { return journal_.status().caught_up; }));
  EXPECT_EQ(why(), "");
  EXPECT_EQ(why(2 * kDetect), "no_etcd");
  etcd_.store.full = true;
  EXPECT_TRUE(run_until([&] { return why() == "etcd_full"; }));
  etcd_.store.full = false;
  EXPECT_TRUE(run_until([&] { return why().empty(); }));
  client_.go_deaf();
  put(keys_.batch({5, 1}), "more than it hears of");
  put(keys_.head, to_text(BatchId{5, 1}));
  ASSERT_TRUE(run_until([this] { return journal_.status().lags_since.has_value(); }, kBeat * 2));
  EXPECT_EQ(why(), "");
  EXPECT_EQ(why(kDetect + 1ms), "no_etcd");
}

TEST_F(ReplicatedJournalTest, TellsTheOthersWhetherItCouldLead) {
  const auto says_ready = [this] {
    const auto record = node_record_in(get(keys_.nodes + kSelf.node));
    return record.has_value() && record->is_ready();
  };
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until(says_ready));
  put_batch({5, 1}, "LkB7" + std::string(60, 'x'));
  EXPECT_TRUE(run_until([&] { return !says_ready(); }));
  EXPECT_FALSE(journal_.status().unreadable.empty());
}

// The last that it had not heard of was that it is elected.
TEST_F(ReplicatedJournalTest, ALeaderIsBehindNobody) {
  ASSERT_TRUE(run_until([this] { return journal_.stats().campaigns.value() > 0; }));
  client_.go_deaf();
  ASSERT_TRUE(run_until([this] { return journal_.status().lags_since.has_value(); }));
  ASSERT_TRUE(run_until([this] { return is_leading(); }));
  run_for(kDetect);
  EXPECT_FALSE(journal_.status().lags_since.has_value());
  EXPECT_EQ(journal_.status().behind, 0u);
}

TEST_F(ReplicatedJournalTest, AnAddressIsOneServersAlone) {
  put(keys_.leader, to_text(kOther));
  const NodeRecord other{.node = "n3", .address = kSelf.address};
  for (int i = 0; i < 30 && journal_.over().empty(); ++i) {
    put(keys_.heartbeat, std::to_string(i));
    put(keys_.nodes + "n3", to_text(other));
    run_for(kBeat);
  }
  EXPECT_TRUE(journal_.status().refused);
  EXPECT_NE(journal_.over().find("n3, says that clients reach it at h:1"), std::string::npos)
      << journal_.over();
}

TEST_F(ReplicatedJournalTest, ANameIsOneServersAlone) {
  put(keys_.leader, to_text(kOther));
  const NodeRecord other{.node = kSelf.node, .address = "h:9", .incarnation = "9"};
  for (int i = 0; i < 60 && journal_.over().empty(); ++i) {
    put(keys_.heartbeat, std::to_string(i));
    put(keys_.nodes + kSelf.node, to_text(other));
    run_for(kBeat);
  }
  EXPECT_TRUE(journal_.status().refused);
  EXPECT_EQ(journal_.over(),
            "another server, which clients reach at h:9, is called n1, as this one is (--node-id, "
            "or else --advertise-addr)");
}

// A machine was paused together with its clock, and resumes when another node has led for long. By
// its clock it is certain to lead, but it cannot prove it.
TEST_F(ReplicatedJournalTest, ABarrierIsNotDeceivedByAClockThatStoodStill) {
  ASSERT_TRUE(run_until([this] { return is_leading() && journal_.durable() > 0; }));
  Batch batch(engine_);
  batch.barrier();
  const Position proved = batch.commit();
  ASSERT_TRUE(run_until([&] { return journal_.durable() >= proved; }));
  run_for(kBeat);
  put(keys_.leader, to_text(kOther));
  etcd_.move_to(etcd_.now() + 1h);
  clock_.stood_still = 1h;
  ASSERT_GE(journal_.durable(), proved);  // as its clock has it
  batch.barrier();
  const Position unproved = batch.commit();
  EXPECT_GT(unproved, proved);
  run_until([&] { return journal_.durable() >= unproved || !journal_.over().empty(); });
  EXPECT_LT(journal_.durable(), unproved);
  EXPECT_EQ(journal_.over(), "another node leads");
}

TEST_F(ReplicatedJournalTest, TellsWhomItFollowsAndWhenItHasCaughtUp) {
  put(keys_.leader, to_text(kOther));
  ASSERT_TRUE(run_until([this] { return journal_.status().caught_up; }));
  run_for(kBeat);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[0], "cluster: follows n2 at h:2, epoch 2");
  EXPECT_TRUE(log_[1].starts_with("cluster: has caught up")) << log_[1];
}

TEST_F(ReplicatedJournalTest, WhoIsNotToLeadStandsForElectionLater) {
  auto connection = etcd_.connect();
  ReplicatedJournalOptions later = options();
  later.self = kOther;
  later.ranks_below = 3;
  ReplicatedJournal other(*connection, clock_, later);
  Engine engine({.clock = &clock_, .journal = &other, .sweeper = false});
  const auto run_both = [&](const std::function<bool()>& happened) {
    return run_until([&] {
      connection->deliver();
      other.turn();
      return happened();
    });
  };
  ASSERT_TRUE(run_both([&] { return is_leading(); }));
  journal_.resign();
  const Time resigned = etcd_.now();
  ASSERT_TRUE(run_both([&] { return other.is_leading(); }));
  EXPECT_GE(etcd_.now() - resigned, 3 * kBeat);
}

// 400 ms from here to etcd and back.
TEST_F(ReplicatedJournalTest, AFarEtcdIsTalkedToAsANearOneIs) {
  etcd_.distance = 200ms;
  ASSERT_TRUE(run_until([this] { return is_leading(); }));
  run_for(5s);
  Batch batch(engine_);
  for (int i = 0; i < 10; ++i) {
    const Time asked = etcd_.now();
    const std::string key = std::to_string(i);
    EXPECT_EQ(batch.acquire({.keys = key, .holder = "h", .ttl = 600s}, nullptr, 0).outcome,
              Outcome::ok);
    const Position told = batch.commit();
    EXPECT_TRUE(run_until([&] { return journal_.durable() >= told; }, 10s));
    EXPECT_LT(etcd_.now() - asked, 500ms);
  }
  EXPECT_EQ(journal_.stats().resends.value(), 0u);
  EXPECT_EQ(journal_.stats().terms.value(), 1u);
}

TEST_F(ReplicatedJournalTest, ADetectThatEtcdIsTooSlowForIsToldOf) {
  etcd_.distance = 250ms;  // there and back, half of it
  run_for(20s);
  const auto complaints = std::count_if(log_.begin(), log_.end(), [](const std::string& line) {
    return line.find("which a detect of 1000 ms is too short for") != std::string::npos;
  });
  EXPECT_EQ(complaints, 1);
}

TEST_F(ReplicatedJournalTest, WhoIsStoppedWhenItWasJustElectedLeavesNoLeadersKey) {
  ASSERT_TRUE(run_until([this] { return journal_.epoch() != 0; }));
  ASSERT_FALSE(is_leading());
  journal_.resign();
  EXPECT_TRUE(run_until([this] { return !journal_.over().empty(); }));
  EXPECT_EQ(get(keys_.leader), "");
  EXPECT_EQ(journal_.turn(), Duration::zero()) << "its owner must not sleep";
}

// While etcd is unavailable holders keep renewing on new connections, and get no answers.
TEST_F(ReplicatedJournalTest, RenewalsWhileEtcdIsAwayDoNotPileUpForEver) {
  ASSERT_TRUE(run_until([this] { return is_leading(); }));
  Batch batch(engine_);
  const Answer granted = batch.acquire({.keys = "k", .holder = "h", .ttl = 600s}, nullptr, 0);
  ASSERT_EQ(granted.outcome, Outcome::ok);
  etcd_.fail_until(etcd_.now() + 1h);
  int renewed = 0;
  while (journal_.over().empty() && renewed < 10'000) {
    const HoldId hold{.keys = "k", .holder = "h", .fence = granted.grant.fence};
    renewed += batch.renew(hold, 600s).outcome == Outcome::ok;
    batch.commit();
    run_for(1ms);
  }
  EXPECT_LT(renewed, 1000);
  EXPECT_EQ(journal_.state(), Journal::State::failed);
}

}  // namespace
}  // namespace lockd
