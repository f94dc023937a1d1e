// One server, beside another that the test plays. Many of both are simulated: tests/ha.
#include "replication/replicated_journal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockd/batch.h"
#include "lockd/engine.h"
#include "replication/testing/model_etcd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr Duration kDetect = 1s;
constexpr Duration kBeat = kDetect / 5;
const LeaderRecord kSelf{.incarnation = "1", .node = "n1", .address = "h:1", .policy = "same"};
const LeaderRecord kOther{.incarnation = "2", .node = "n2", .address = "h:2", .policy = "same"};

// A connection whose watch can be made to tell nothing more; another watch tells all.
class DeafClient final : public etcd::Client, private etcd::Watcher {
 public:
  explicit DeafClient(etcd::Client& client) : client_(client) {}

  void go_deaf() { deaf_ = true; }

  void execute(const etcd::Txn& txn, Duration within, Done done) override {
    client_.execute(txn, within, std::move(done));
  }
  void compact(etcd::Revision revision, Duration within, Done done) override {
    client_.compact(revision, within, std::move(done));
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
    Time now() const noexcept override { return etcd.now(); }
    const etcd::ModelEtcd& etcd;
  };

  ReplicatedJournalTest() { etcd_.move_to(Time{1'000'000'000}); }

  static ReplicatedJournalOptions options() {
    ReplicatedJournalOptions options;
    options.cluster = "t";
    options.self = kSelf;
    options.detect = kDetect;
    options.pending_max = 1000;
    return options;
  }

  void put(const std::string& key, const std::string& value) {
    etcd_.store.execute({.then = {etcd::put(key, value)}});
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
  bool is_leading() const { return journal_.is_leading(); }

  const EtcdKeys keys_{"t"};
  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  ModelClock clock_{etcd_};
  std::unique_ptr<etcd::ModelEtcd::Connection> connection_ = etcd_.connect();
  DeafClient client_{*connection_};
  ReplicatedJournal journal_{client_, clock_, options()};
  Engine engine_{{.clock = &clock_, .journal = &journal_, .sweeper = false}};
};

TEST_F(ReplicatedJournalTest, WhoLeadsWithOtherSettingsIsNotJoined) {
  LeaderRecord other = kOther;
  other.policy = "other";
  put(keys_.leader, to_text(other));
  for (int heartbeat = 0; heartbeat < 20 && journal_.over().empty(); ++heartbeat) {
    put(keys_.heartbeat, std::to_string(heartbeat));
    run_for(kBeat);
  }
  EXPECT_TRUE(journal_.is_refused());
  EXPECT_NE(journal_.over().find("other settings"), std::string::npos) << journal_.over();
}

// All have died, and are started again with other settings.
TEST_F(ReplicatedJournalTest, WhoIsDeadWithOtherSettingsIsReplaced) {
  LeaderRecord other = kOther;
  other.policy = "other";
  put(keys_.leader, to_text(other));
  put(keys_.heartbeat, "1");
  EXPECT_TRUE(run_until([this] { return is_leading(); })) << journal_.over();
  EXPECT_EQ(get(keys_.leader), to_text(kSelf));
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
  ASSERT_TRUE(run_until([this] { return journal_.leader().epoch != 0; }));
  run_for(kBeat);  // the watch is open
  client_.go_deaf();
  etcd_.store.execute({.then = {etcd::erase(keys_.leader)}});
  EXPECT_TRUE(run_until([this] { return is_leading(); }, 2 * kDetect)) << journal_.over();
}

TEST_F(ReplicatedJournalTest, WhoIsStoppedWhenItWasJustElectedLeavesNoLeadersKey) {
  ASSERT_TRUE(run_until([this] { return journal_.epoch() != 0; }));
  ASSERT_FALSE(is_leading());
  journal_.resign();
  EXPECT_TRUE(run_until([this] { return !journal_.over().empty(); }));
  EXPECT_EQ(get(keys_.leader), "");
}

// While etcd is away holders go on renewing, on new connections, and none of it can be told.
TEST_F(ReplicatedJournalTest, RenewalsWhileEtcdIsAwayDoNotPileUpForEver) {
  ASSERT_TRUE(run_until([this] { return is_leading(); }));
  Batch batch(engine_);
  const Answer granted = batch.acquire({.key = "k", .holder = "h", .ttl = 600s}, nullptr, 0);
  ASSERT_EQ(granted.outcome, Outcome::ok);
  etcd_.fail_until(etcd_.now() + 1h);
  int renewed = 0;
  while (journal_.over().empty() && renewed < 10'000) {
    const HoldId hold{.key = "k", .holder = "h", .fence = granted.grant.fence};
    renewed += batch.renew(hold, 600s).outcome == Outcome::ok;
    batch.commit();
    run_for(1ms);
  }
  EXPECT_LT(renewed, 1000);
  EXPECT_EQ(journal_.state(), Journal::State::failed);
}

}  // namespace
}  // namespace lockd
