#include "replication/membership.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "replication/testing/model_etcd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

NodeRecord record_of(const std::string& node) {
  return {.node = node,
          .address = node + ":6388",
          .leads = node == "a",
          .applied = 7,
          .behind = 2,
          .program = "0.1.0"};
}

TEST(NodeRecord, ComesBackAsItWasWritten) {
  NodeRecord record = record_of("a");
  EXPECT_EQ(node_record_in(to_text(record)), record);
  record.not_ready = "catching_up";
  EXPECT_EQ(node_record_in(to_text(record)), record);
  record.incarnation = "1-2";
  EXPECT_EQ(node_record_in(to_text(record)), record);
  EXPECT_EQ(node_record_in(to_text(record) + "later=1\n"), record);
  for (const char* text : {"", "node=a\n", "node=a\naddress=b\nleads=1\napplied=x\nbehind=0\n"}) {
    EXPECT_FALSE(node_record_in(text).has_value()) << text;
  }
}

// Missing fields are derived from others, so an upgrade causes no alarms.
TEST(NodeRecord, OfAnOlderServerIsReadAsFarAsItGoes) {
  const auto caught_up = node_record_in("node=a\naddress=b\nleads=0\napplied=1\nbehind=0\n");
  EXPECT_TRUE(caught_up->is_ready());
  EXPECT_EQ(caught_up->program, "");
  EXPECT_EQ(caught_up->incarnation, "");
  EXPECT_FALSE(node_record_in("node=a\naddress=b\nleads=0\napplied=1\nbehind=3\n")->is_ready());
}

class MembershipTest : public testing::Test {
 protected:
  struct Node {
    Node(etcd::ModelEtcd& etcd, const EtcdKeys& keys, const std::string& name)
        : record(record_of(name)),
          client(etcd.connect()),
          context{.client = *client,
                  .keys = keys,
                  .timeouts = {100ms, 100ms},
                  .retry = 10ms,
                  .stats = stats,
                  .log = [this](Severity, std::string_view line) { log.emplace_back(line); }},
          membership(context) {}

    NodeRecord record;
    std::unique_ptr<etcd::ModelEtcd::Connection> client;
    std::vector<std::string> log;
    ReplicationStats stats;
    ReplicationContext context;
    Membership membership;
  };

  MembershipTest() { etcd_.move_to(Time{1'000'000'000}); }

  void run(Duration time, const std::vector<Node*>& nodes) {
    for (const Time end = etcd_.now() + time; etcd_.now() < end;) {
      etcd_.move_to(etcd_.now() + 10ms);
      for (Node* node : nodes) {
        node->client->deliver();
        node->membership.turn(etcd_.now(), node->record);
      }
    }
  }
  std::vector<std::string> names(const Node& node) const {
    std::vector<std::string> names;
    for (const Member& m : node.membership.members()) names.push_back(m.record.node);
    return names;
  }

  const EtcdKeys keys_{"t"};
  etcd::ModelEtcd etcd_{1, etcd::kNoFaults};
  Node a_{etcd_, keys_, "a"};
  Node b_{etcd_, keys_, "b"};
};

TEST_F(MembershipTest, TellsEachOfAll) {
  run(3s, {&a_, &b_});
  EXPECT_EQ(names(a_), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(b_), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(b_.membership.members().front().record, record_of("a"));
  EXPECT_LE(etcd_.now() - b_.membership.members().front().last_seen, 2s);
}

TEST_F(MembershipTest, SaysHowLongANodeIsSilentAndForgetsItInTheEnd) {
  run(3s, {&a_, &b_});
  run(30s, {&a_});
  ASSERT_EQ(names(a_), (std::vector<std::string>{"a", "b"}));
  EXPECT_GT(etcd_.now() - a_.membership.members().back().last_seen, 25s);
  run(40s, {&a_});
  EXPECT_EQ(names(a_), std::vector<std::string>{"a"});
  EXPECT_EQ(etcd_.store.find(keys_.nodes + "b"), nullptr);  // a leads: it has cleaned up
}

TEST_F(MembershipTest, SaysOnceThatItMayNotWrite) {
  etcd_.store.read_only = true;
  run(5s, {&a_});
  ASSERT_EQ(a_.log.size(), 1u);
  EXPECT_NE(a_.log[0].find("read and write all keys that begin with /t/"), std::string::npos)
      << a_.log[0];
  etcd_.store.read_only = false;
  run(5s, {&a_});
  etcd_.store.read_only = true;
  run(5s, {&a_});
  EXPECT_EQ(a_.log.size(), 2u);
}

TEST_F(MembershipTest, KnowsTheLatestVersionThatAllRead) {
  EXPECT_EQ(node_record_in("node=a\naddress=b\nleads=1\napplied=1\nbehind=0\n")->version, 1u);
  a_.record.version = 3;
  b_.record.version = 2;
  run(3s, {&a_, &b_});
  EXPECT_EQ(a_.membership.version(), 2u);
}

// Otherwise a server that is started with a wrong address would stop the server that owns it.
TEST_F(MembershipTest, OfTwoAtOneAddressTheLaterIsToldAlone) {
  b_.record.address = a_.record.address;
  run(3s, {&a_});
  run(5s, {&a_, &b_});
  EXPECT_EQ(a_.membership.address_conflict(a_.record), "");
  EXPECT_EQ(b_.membership.address_conflict(b_.record), "a");
}

// It may have been this server, under another name.
TEST_F(MembershipTest, AServerThatIsGoneIsAtNoAddress) {
  b_.record.address = a_.record.address;
  run(1s, {&b_});
  run(5s, {&a_});
  EXPECT_EQ(a_.membership.address_conflict(a_.record), "");
}

// They put over each other's records. Of one that is older, the record does not say which it is.
TEST_F(MembershipTest, OfTwoOfOneNameTheLaterIsToldAlone) {
  for (const char* incarnation : {"1", ""}) {
    Node first(etcd_, keys_, "n");
    Node second(etcd_, keys_, "n");
    first.record.incarnation = incarnation;
    first.record.address = "first:1";
    second.record.incarnation = "2";
    run(3s, {&first});
    run(10s, {&first, &second});
    EXPECT_FALSE(first.membership.name_conflict().has_value());
    ASSERT_TRUE(second.membership.name_conflict().has_value()) << "of '" << incarnation << "'";
    EXPECT_EQ(second.membership.name_conflict()->address, "first:1");
    run(1s, {});
    etcd_.store.execute({.then = {etcd::erase(keys_.nodes + "n")}});
  }
}

// Its puts may arrive late.
TEST_F(MembershipTest, AnEarlierLifeIsNoOtherServer) {
  a_.record.incarnation = "1";
  run(3s, {&a_});
  Node again(etcd_, keys_, "a");
  again.record.incarnation = "2";
  run(3s, {&again});
  etcd_.store.execute({.then = {etcd::put(keys_.nodes + "a", to_text(a_.record))}});
  run(5s, {&again});
  etcd_.store.execute({.then = {etcd::put(keys_.nodes + "a", to_text(a_.record))}});
  run(5s, {&again});
  EXPECT_FALSE(again.membership.name_conflict().has_value());
}

TEST_F(MembershipTest, PassesOverWhatItCannotRead) {
  etcd_.store.execute({.then = {etcd::put(keys_.nodes + "c", "nonsense")}});
  run(3s, {&a_});
  EXPECT_EQ(names(a_), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace lockd
