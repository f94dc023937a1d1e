// What operators ask of a cluster: to hand over to one of its servers, and for a snapshot.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/batch.h"
#include "lockd/engine.h"
#include "replication/replicated_journal.h"
#include "replication/testing/model_etcd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class OperatedCluster : public testing::Test {
 protected:
  static constexpr Duration kDetect = 1s;
  static constexpr Duration kBeat = kDetect / 5;

  struct ModelClock final : Clock {
    explicit ModelClock(const etcd::ModelEtcd& model) : etcd(model) {}
    Time now() const noexcept override { return etcd.now(); }
    const etcd::ModelEtcd& etcd;
  };

  // A server, until it is over.
  struct Node {
    Node(OperatedCluster& cluster, const std::string& name, int ranks_below)
        : connection(cluster.etcd_.connect()),
          journal(*connection, cluster.clock_, options_of(cluster, name, ranks_below)),
          engine({.clock = &cluster.clock_, .journal = &journal, .sweeper = false}) {}

    static ReplicatedJournalOptions options_of(OperatedCluster& cluster, const std::string& name,
                                               int ranks_below) {
      ReplicatedJournalOptions options;
      options.cluster = "t";
      options.self = {.incarnation = name + '-' + std::to_string(++cluster.incarnations_),
                      .node = name,
                      .address = name + ":1",
                      .policy = "same"};
      options.detect = kDetect;
      options.ranks_below = ranks_below;
      options.log = [&cluster](Severity, std::string_view line) {
        cluster.log_.emplace_back(line);
      };
      return options;
    }
    void run() {
      connection->deliver();
      journal.turn();
    }

    std::unique_ptr<etcd::ModelEtcd::Connection> connection;
    ReplicatedJournal journal;
    Engine engine;
  };
  using NodePtr = std::unique_ptr<Node>;

  OperatedCluster() { etcd_.move_to(Time{1'000'000'000}); }

  NodePtr start(const std::string& name, int ranks_below = 0) {
    return std::make_unique<Node>(*this, name, ranks_below);
  }

  bool run_until(const std::vector<Node*>& nodes, const std::function<bool()>& happened,
                 Duration longest = 60s) {
    for (const Time end = etcd_.now() + longest; !happened() && etcd_.now() < end;) {
      etcd_.move_to(etcd_.now() + 1ms);
      for (Node* node : nodes) node->run();
    }
    return happened();
  }
  void run_for(const std::vector<Node*>& nodes, Duration time) {
    run_until(
        nodes, [] { return false; }, time);
  }
  // The first leads, and the others have caught up.
  void settle(const std::vector<Node*>& nodes) {
    ASSERT_TRUE(run_until({nodes.front()}, [&] { return nodes.front()->journal.is_leading(); }));
    for (const Node* node : nodes) {
      ASSERT_TRUE(run_until(nodes, [&] { return node->journal.status().caught_up; }));
    }
  }

  void hold(Node& node, const std::string& key) {
    Batch batch(node.engine);
    ASSERT_EQ(batch.acquire({.keys = key, .holder = "h", .ttl = 600s}, nullptr, 0).outcome,
              Outcome::ok);
    const Position told = batch.commit();
    ASSERT_TRUE(run_until({&node}, [&] { return node.journal.durable() >= told; }));
  }
  static bool is_held(Node& node, const std::string& key) {
    Batch batch(node.engine);
    return batch.fence(key).held;
  }

  // A standby cannot read a batch that was damaged so, until the leader has written a snapshot.
  void expect_to_go_on_after(const std::function<void(const std::string&)>& damage) {
    const NodePtr n1 = start("n1");
    settle({n1.get()});
    hold(*n1, "k");
    const BatchId damaged = n1->journal.status().last_batch;
    hold(*n1, "l");
    damage(keys_.batch(damaged));
    NodePtr n2 = start("n2");
    const auto run_both = [&](const std::function<bool()>& happened, Duration longest = 60s) {
      return run_until({n1.get(), n2.get()}, happened, longest);
    };
    ASSERT_TRUE(run_both([&] { return !n2->journal.status().unreadable.empty(); }));
    EXPECT_EQ(n2->journal.status().unreadable_batch, damaged);
    EXPECT_EQ(n2->journal.stats().unreadable.value(), 1u);
    EXPECT_NE(log_.back().find("can neither follow nor lead"), std::string::npos) << log_.back();
    run_for({n1.get(), n2.get()}, kBeat);
    EXPECT_EQ(n2->journal.over(), "");

    const BatchId head = n1->journal.status().head;
    ASSERT_TRUE(n1->journal.begin_snapshot());
    ASSERT_TRUE(run_both([&] { return n1->journal.status().base > head; }));
    EXPECT_EQ(get(keys_.base), to_text(n1->journal.status().base));
    // It waits for less time than it would have without the snapshot.
    ASSERT_TRUE(run_both([&] { return !n2->journal.over().empty(); }, 2 * kBeat));
    EXPECT_EQ(n2->journal.over(), "the unreadable part of the chain is needed no more");
    n2 = start("n2");
    ASSERT_TRUE(run_both([&] { return n2->journal.status().caught_up; }));
    run_for({n1.get(), n2.get()}, kBeat);
    ASSERT_TRUE(n1->journal.transfer("n2"));
    ASSERT_TRUE(run_both([&] { return n2->journal.is_leading(); }));
    EXPECT_TRUE(is_held(*n2, "k"));
    EXPECT_TRUE(is_held(*n2, "l"));
  }

  std::string get(const std::string& key) {
    const auto found = etcd_.store.execute({.then = {etcd::get(key)}}).found.front();
    return found.empty() ? "" : found.front().value;
  }
  void put(const std::string& key, const std::string& value) {
    etcd_.store.execute({.then = {etcd::put(key, value)}});
  }

  const EtcdKeys keys_{"t"};
  std::vector<std::string> log_;
  int incarnations_ = 0;
  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  ModelClock clock_{etcd_};
};

TEST_F(OperatedCluster, WhoIsNamedLeadsNext) {
  const NodePtr n1 = start("n1");
  const NodePtr n2 = start("n2");
  const NodePtr n3 = start("n3", 10);  // by rank the last
  const std::vector<Node*> all{n1.get(), n2.get(), n3.get()};
  settle(all);
  run_for(all, kBeat);
  hold(*n1, "k");
  const Time asked = etcd_.now();
  ASSERT_TRUE(n1->journal.transfer("n3"));
  ASSERT_TRUE(run_until(all, [&] { return n3->journal.is_leading(); }));
  EXPECT_LT(etcd_.now() - asked, kBeat);
  EXPECT_EQ(n1->journal.over(), "it has handed over");
  EXPECT_EQ(n2->journal.stats().campaigns.value(), 0u);
  EXPECT_TRUE(is_held(*n3, "k"));
  EXPECT_EQ(get(keys_.successor), "") << "it counts for one hand-over";
}

// One of the other nodes leads after the named node had its time.
TEST_F(OperatedCluster, WhoIsNamedAndDeadIsNotWaitedForForEver) {
  const NodePtr n1 = start("n1");
  const NodePtr n2 = start("n2");
  const NodePtr n3 = start("n3");
  settle({n1.get(), n2.get(), n3.get()});
  run_for({n1.get(), n2.get(), n3.get()}, kBeat);
  ASSERT_TRUE(n1->journal.transfer("n3"));
  ASSERT_TRUE(run_until({n1.get()}, [&] { return !n1->journal.over().empty(); }));
  const Time handed_over = etcd_.now();
  const NodePtr again = start("n1");
  const std::vector<Node*> left{again.get(), n2.get()};
  const auto one_leads = [&] { return again->journal.is_leading() || n2->journal.is_leading(); };
  ASSERT_TRUE(run_until(left, one_leads));
  EXPECT_GE(etcd_.now() - handed_over, kDetect);
  EXPECT_LT(etcd_.now() - handed_over, 2 * kDetect);
}

// The last leader is back before the next one is there: it gives way as the others do.
TEST_F(OperatedCluster, WhoHasHandedOverDoesNotTakeItBack) {
  NodePtr n1 = start("n1");
  const NodePtr n2 = start("n2");
  settle({n1.get(), n2.get()});
  run_for({n1.get(), n2.get()}, kBeat);
  ASSERT_TRUE(n1->journal.transfer("n2"));
  ASSERT_TRUE(run_until({n1.get()}, [&] { return !n1->journal.over().empty(); }));
  n1 = start("n1");
  run_for({n1.get()}, kDetect * 4 / 5);
  EXPECT_EQ(get(keys_.leader), "");
  ASSERT_TRUE(run_until({n1.get(), n2.get()}, [&] { return n2->journal.is_leading(); }));
  EXPECT_EQ(n1->journal.stats().campaigns.value(), 0u);
}

// By a version that does not know of it, and so has not taken it away when it began to lead.
TEST_F(OperatedCluster, ANameOfATermBeforeCountsForNothing) {
  put(keys_.successor, successor_text("n9"));
  put(keys_.leader,
      to_text(LeaderRecord{.incarnation = "x", .node = "n2", .address = "n2:1", .policy = "same"}));
  const NodePtr n1 = start("n1");
  ASSERT_TRUE(run_until({n1.get()}, [&] { return n1->journal.status().caught_up; }));
  etcd_.store.execute({.then = {etcd::erase(keys_.leader)}});
  const Time erased = etcd_.now();
  ASSERT_TRUE(run_until({n1.get()}, [&] { return n1->journal.is_leading(); }));
  EXPECT_LT(etcd_.now() - erased, kDetect);
}

// Nothing can be put there, but the leader's key can be erased.
TEST_F(OperatedCluster, AHandOverWhileEtcdIsFullNamesNobody) {
  const NodePtr n1 = start("n1");
  const NodePtr n2 = start("n2");
  settle({n1.get(), n2.get()});
  run_for({n1.get(), n2.get()}, kBeat);
  etcd_.store.full = true;
  ASSERT_TRUE(n1->journal.transfer("n2"));
  ASSERT_TRUE(run_until({n1.get()}, [&] { return !n1->journal.over().empty(); }));
  EXPECT_EQ(n1->journal.over(), "it has handed over");
  EXPECT_EQ(get(keys_.leader) + get(keys_.successor), "");
}

// As far as the leader knew, it could.
TEST_F(OperatedCluster, WhoSaysThatItCouldNotLeadIsNotHandedOverTo) {
  const NodePtr n1 = start("n1");
  settle({n1.get()});
  put(keys_.nodes + "n2", to_text(NodeRecord{.node = "n2", .not_ready = "unreadable"}));
  for (const char* node : {"n2", "n9"}) {
    ASSERT_TRUE(n1->journal.transfer(node));
    run_for({n1.get()}, kDetect);
    EXPECT_TRUE(n1->journal.is_leading() && n1->journal.is_certain());
    EXPECT_NE(log_.back().find(std::string("does not hand over to ") + node), std::string::npos);
  }
}

TEST_F(OperatedCluster, AServerSaysAtOnceThatItCouldNotLead) {
  const NodePtr n1 = start("n1");
  const NodePtr n2 = start("n2");
  settle({n1.get(), n2.get()});
  const auto says = [&] { return node_record_in(get(keys_.nodes + "n2"))->not_ready; };
  ASSERT_TRUE(run_until(
      {n1.get(), n2.get()}, [&] { return says().empty(); }, kBeat));
  const BatchId damaged{1000, 1};
  etcd_.store.execute({.then = {etcd::put(keys_.batch(damaged), "no batch"),
                                etcd::put(keys_.head, to_text(damaged))}});
  EXPECT_TRUE(run_until(
      {n1.get(), n2.get()}, [&] { return says() == "unreadable"; }, kBeat));
}

TEST_F(OperatedCluster, OnlyALeaderActs) {
  const NodePtr n1 = start("n1");
  const NodePtr n2 = start("n2");
  settle({n1.get(), n2.get()});
  EXPECT_FALSE(n2->journal.transfer("n2"));
  EXPECT_FALSE(n2->journal.begin_snapshot());
  run_for({n1.get(), n2.get()}, kDetect);
  EXPECT_TRUE(n1->journal.is_leading());
  EXPECT_EQ(n2->journal.over(), "");
  EXPECT_EQ(n1->journal.stats().snapshots.value(), 0u);
}

TEST_F(OperatedCluster, ASnapshotLetsAServerGoOnThatCannotReadABatch) {
  expect_to_go_on_after([&](const std::string& batch) { put(batch, "no batch"); });
}

// Restarting at once would not help: the batch is still missing.
TEST_F(OperatedCluster, ASnapshotLetsAServerGoOnThatABatchIsMissingFor) {
  expect_to_go_on_after(
      [&](const std::string& batch) { etcd_.store.execute({.then = {etcd::erase(batch)}}); });
}

// The one under way may have begun before what is to be left behind.
TEST_F(OperatedCluster, ASnapshotThatIsAskedForTwiceIsWrittenTwice) {
  const NodePtr n1 = start("n1");
  settle({n1.get()});
  ASSERT_TRUE(n1->journal.begin_snapshot());
  run_for({n1.get()}, 1ms);
  hold(*n1, "k");
  const BatchId head = n1->journal.status().head;
  ASSERT_TRUE(n1->journal.begin_snapshot());
  EXPECT_TRUE(run_until({n1.get()}, [&] { return n1->journal.status().base > head; }));
  EXPECT_EQ(n1->journal.stats().snapshots.value(), 2u);
}

}  // namespace
}  // namespace lockd
