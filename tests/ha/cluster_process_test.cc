// Servers of a cluster, as processes on real members of etcd: a leader that was stopped, or paused
// together with its clock, an etcd that is full, a standby that was left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ha/cluster_under_test.h"
#include "ha/etcd_cluster.h"
#include "histories/chaos_proxy.h"
#include "journal/testing/temporary_directory.h"
#include "support/line_client.h"

namespace lockd::histories {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;
constexpr std::uint64_t kQuota = 16 << 20;

bool await(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

class ClusterProcess : public testing::Test {
 protected:
  ClusterProcess()
      : etcd_(3, kQuota),
        proxy_(1),
        cluster_({.name = "cluster", .auto_release = false, .directory = directory_.path()}, etcd_,
                 proxy_, false) {
    proxy_.start();
    cluster_.start();
    cluster_.await_service();
  }
  // A test that has failed may have left anything.
  void TearDown() override {
    for (std::size_t node = 0; node < ClusterUnderTest::kNodes; ++node) {
      if (!cluster_.is_running(node)) continue;
      cluster_.thaw(node);
      cluster_.stop_node(node);
    }
  }

  LineClient connect(std::size_t node, bool over_http = false) {
    const ServerUnderTest::Place place = cluster_.place(node);
    return LineClient(over_http ? place.http_port : place.line_port, 0, false);
  }
  std::string ask_leader(std::string_view command, std::string_view key,
                         std::string_view argument) {
    LineClient client = connect(cluster_.leader());
    client.send(request(command, key, argument));
    return client.read_line(10s);
  }
  std::string acquire(std::string_view key) { return ask_leader("l", key, "0 60"); }
  // While that one stands still another comes to lead, and grants again what it had granted.
  void hand_on(const Reign& reign, const std::string& key, const std::string& token) {
    ASSERT_NE(cluster_.await_reign_after(reign.epoch).node, reign.node);
    cluster_.await_service();
    ASSERT_EQ(ask_leader("r", key, token), "ok");
    granted_later_ = token_of(acquire(key));
    ASSERT_FALSE(granted_later_.empty());
    cluster_.is_deposed(reign.node);
  }

  TemporaryDirectory directory_;
  ha_test::EtcdCluster etcd_;
  ChaosProxy proxy_;
  ClusterUnderTest cluster_;
  std::string granted_later_;  // its token
};

// What was sent to it while it stood still is in its sockets when it goes on, and by then another
// has granted. Nobody may hear `ok` from it, nor anything else that only a leader can know.
TEST_F(ClusterProcess, ALeaderThatWasStoppedAcknowledgesNothing) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::string held = "held-" + std::to_string(round);
    const std::string free = "free-" + std::to_string(round);
    const std::string token = token_of(acquire(held));
    ASSERT_FALSE(token.empty());
    const Reign reign = cluster_.last_reign();
    std::vector<std::string> requests{request("l", held, "0 60"), request("barrier", "", ""),
                                      request("r", held, std::string(32, '1')),
                                      request("stats", "_", "")};
    // Those append something. What is answered in one turn rests on all that the turn appended, so
    // they come in every second round only.
    if (round % 2 == 1) {
      for (const std::string& text :
           {request("l", free, "0 60"), request("l", held, "30 60"), request("n", held, token),
            request("r", held, token), request("e", free, "60"), request("sl", free, "0 2 60")}) {
        requests.push_back(text);
      }
    }
    std::vector<LineClient> clients;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      clients.push_back(connect(reign.node));
      clients.back().send(request("barrier", "", ""));
      ASSERT_EQ(clients.back().read_line(), "ok");
    }
    cluster_.freeze(reign.node);
    for (std::size_t i = 0; i < requests.size(); ++i) clients[i].send(requests[i]);
    // And some who come only now.
    for (const std::string& text : requests) {
      clients.push_back(connect(reign.node));
      clients.back().send(text);
    }
    ASSERT_NO_FATAL_FAILURE(hand_on(reign, held, token));
    const std::string granted = acquire(free);
    ASSERT_FALSE(token_of(granted).empty()) << granted;
    cluster_.thaw(reign.node);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const std::string said = clients[i].read_line(kPatience);
      const bool nothing = said == kEnd || said == kReset || said.starts_with("error_not_leader ");
      EXPECT_TRUE(nothing) << "round " << round << ", to " << requests[i % requests.size()] << said;
    }
    EXPECT_EQ(acquire(held), "timeout");
    EXPECT_EQ(acquire(free), "timeout");
  }
}

// What a leader answers only when it has proved that it leads, since it was asked.
struct Question {
  std::string text;
  bool over_http = true;
};

std::vector<Question> questions_to_prove(const std::string& key) {
  const std::string end = " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  return {{request("barrier", "", ""), false},
          {"GET /leader" + end},
          {"GET /v1/fence?key=" + key + end},
          {"GET /v1/locks?certain=true" + end}};
}

bool affirms(const std::string& said) { return said == "ok" || said.starts_with("HTTP/1.1 200"); }

// By its own clock no time has passed, so it is as certain to lead as it was. One kind of question
// at a time: what is answered in one turn rests on all that the turn appended.
TEST_F(ClusterProcess, ALeaderWhoseClockStoodStillHasToProveThatItLeads) {
  if (!ClusterUnderTest::can_pause()) GTEST_SKIP() << "there is no shim";
  for (const Question& question : questions_to_prove("held")) {
    cluster_.await_service();
    const std::string token = token_of(acquire("held"));
    ASSERT_FALSE(token.empty());
    const Reign reign = cluster_.last_reign();
    std::vector<LineClient> clients;
    for (int i = 0; i < 9; ++i) clients.push_back(connect(reign.node, question.over_http));
    clients.back().send(question.text);
    ASSERT_TRUE(affirms(clients.back().read_line())) << question.text;
    clients.pop_back();
    cluster_.pause(reign.node);
    for (std::size_t i = 0; i < 4; ++i) clients[i].send(question.text);
    ASSERT_NO_FATAL_FAILURE(hand_on(reign, "held", token));
    cluster_.resume(reign.node);
    for (std::size_t i = 4; i < 8; ++i) clients[i].send(question.text);
    for (LineClient& client : clients) {
      const std::string said = client.read_line(kPatience);
      EXPECT_FALSE(affirms(said) || said == kSilence) << question.text << said;
    }
    EXPECT_EQ(ask_leader("r", "held", granted_later_), "ok");
  }
}

TEST_F(ClusterProcess, AFullEtcdGrantsNothingAndRecovers) {
  const std::string token = token_of(acquire("held"));
  ASSERT_FALSE(token.empty());
  const TemporaryDirectory directory;
  const std::string ballast = directory.path() + "/ballast";
  std::ofstream(ballast) << std::string(1 << 20, 'x');
  int key = 0;
  ASSERT_TRUE(await([&] {
    return etcd_.control("put ballast-" + std::to_string(++key), ballast).find("space exceeded") !=
           std::string::npos;
  }));
  ASSERT_NE(etcd_.control("alarm list").find("NOSPACE"), std::string::npos);
  // One after the other, so that one at least comes when the first has been refused by etcd.
  for (int i = 0; i < 3; ++i) {
    LineClient client = connect(cluster_.leader());
    client.send(request("l", "too-much-" + std::to_string(i), "0 60"));
    const std::string said = client.read_line(3s);
    EXPECT_FALSE(said.starts_with("ok")) << said;
    std::cout << "when etcd is full: " << said << std::endl;
  }
  etcd_.control("del --prefix ballast-");
  etcd_.control("compaction " + std::to_string(etcd_.revision()));
  etcd_.control("defrag");
  EXPECT_NE(etcd_.control("alarm disarm").find("NOSPACE"), std::string::npos);
  cluster_.await_service();
  EXPECT_TRUE(await([&] { return !token_of(acquire("more")).empty(); }));
  EXPECT_EQ(acquire("held"), "timeout");
  EXPECT_EQ(ask_leader("r", "held", token), "ok");
}

// What it has not seen is not there any more when it goes on: it begins anew, and knows everything
// when it leads.
TEST_F(ClusterProcess, AStandbyThatWasLeftBehindBeginsAnew) {
  const std::size_t leader = cluster_.leader();
  const std::size_t standby = (leader + 1) % ClusterUnderTest::kNodes;
  const std::size_t other = (leader + 2) % ClusterUnderTest::kNodes;
  cluster_.stop_node(other);
  cluster_.freeze(standby);
  // Else what the members have buffered for its watch would still reach it.
  for (std::size_t member = 0; member < etcd_.size(); ++member) {
    proxy_.inject(ChaosProxy::LinkFault::cut, cluster_.link(standby, member), 1, 0);
  }
  constexpr int kKeys = 500;
  LineClient client = connect(leader);
  std::vector<std::string> tokens;
  for (int i = 0; i < kKeys; ++i) {
    tokens.push_back(token_of(client.ask(request("l", std::to_string(i), "0 600"))));
    ASSERT_FALSE(tokens.back().empty());
  }
  etcd_.control("compaction " + std::to_string(etcd_.revision()));
  cluster_.thaw(standby);
  EXPECT_TRUE(await([&] { return cluster_.log(standby).find("compacted") != std::string::npos; }))
      << cluster_.log(standby);
  const Reign reign = cluster_.last_reign();
  cluster_.kill_node(leader);
  EXPECT_EQ(cluster_.await_reign_after(reign.epoch).node, standby);
  cluster_.await_service();
  LineClient next = connect(standby);
  for (int i = 0; i < kKeys; ++i) {
    const std::string& token = tokens[static_cast<std::size_t>(i)];
    EXPECT_EQ(next.ask(request("n", std::to_string(i), token)), "ok 600") << i;
  }
}

}  // namespace
}  // namespace lockd::histories
