// Followers pass on to the leader what they are asked, over the line protocol.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/membership_proof.h"
#include "support/server_cluster.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// The first reply through `node` that is not about a leader that is yet to be found.
std::string ask_when_led(ServerCluster& cluster, const std::string& node, const std::string& text) {
  std::string reply;
  for (int i = 0; i < 200; ++i) {
    LineClient client = cluster.connect(node);
    reply = client.ask(text);
    if (reply != kEnd && !reply.starts_with("error_not_leader")) break;
    std::this_thread::sleep_for(20ms);
  }
  return reply;
}

class Forwarding : public testing::Test {
 protected:
  Forwarding() { cluster_.lead("a"); }

  ServerCluster cluster_{ServerCluster::forwarding()};
};

TEST_F(Forwarding, AnyServerTakesAnyRequest) {
  LineClient by_b = cluster_.connect("b");
  LineClient by_c = cluster_.connect("c");
  const std::string granted = by_b.ask(request("l", "k", "0 20"));
  EXPECT_EQ(masked(granted), "ok <token> 20");
  EXPECT_EQ(by_c.ask(request("l", "k", "0 20")), "timeout");
  EXPECT_EQ(by_c.ask(request("n", "k", token_of(granted) + " 30")), "ok 30");  // by its token
  EXPECT_EQ(by_b.ask(request("r", "k", token_of(granted))), "ok");
  EXPECT_EQ(by_b.ask(request("r", "k", token_of(granted))), "error");
  EXPECT_EQ(masked(by_c.ask(request("l", "k", "0 20"))), "ok <token> 20");
  EXPECT_EQ(masked(by_b.ask(request("sl", "s", "0 3 20 2"))), "ok <token> 20");
  EXPECT_EQ(by_c.ask(request("sl", "s", "0 3 20 2")), "timeout");
  EXPECT_EQ(masked(by_b.ask(request("l", "shared", "0 20 shared"))), "ok <token> 20");
  EXPECT_EQ(masked(by_c.ask(request("l", "shared", "0 20 shared"))), "ok <token> 20");
  EXPECT_EQ(by_b.ask(request("barrier", "", "")), "ok");
  EXPECT_EQ(by_b.ask(request("ping", "", "")), "ok");
  EXPECT_NE(by_b.ask(request("stats", "", "")).find(R"("role":"leader")"), std::string::npos);
}

TEST_F(Forwarding, BeforeTheFirstRequestForTheLeaderTheFollowerAnswers) {
  LineClient client = cluster_.connect("b");
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
  EXPECT_NE(client.ask(request("stats", "", "")).find(R"("role":"follower")"), std::string::npos);
  const std::string seen = client.ask(request("api", "GET /v1/cluster", "{}"));
  EXPECT_NE(seen.find(R"("node_id":"b")"), std::string::npos) << seen;
}

TEST_F(Forwarding, AskedInOneGoAnswersInOrder) {
  LineClient client = cluster_.connect("b");
  client.send(request("l", "x", "0 9") + request("ping", "", "") + request("l", "x", "0 9") +
              request("e", "y", "9") + request("w", "y", "0"));
  EXPECT_EQ(masked(client.read_line()), "ok <token> 9");
  EXPECT_EQ(client.read_line(), "ok");
  EXPECT_EQ(client.read_line(), "timeout");
  EXPECT_EQ(masked(client.read_line()), "acquired <token> 9");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 9");
}

TEST_F(Forwarding, WaitersOfAllServersAreOneQueue) {
  LineClient holder = cluster_.connect("a");
  LineClient first = cluster_.connect("b");
  LineClient second = cluster_.connect("c");
  const std::string granted = holder.ask(request("l", "k", "0 20"));
  first.send(request("l", "k", "20 20"));
  EXPECT_EQ(await_stats(holder, R"("waiters":1)").find("ok"), 0U);
  second.send(request("l", "k", "20 20"));
  await_stats(holder, R"("waiters":2)");
  EXPECT_EQ(holder.ask(request("r", "k", token_of(granted))), "ok");
  const std::string next = first.read_line();
  EXPECT_EQ(masked(next), "ok <token> 20");
  EXPECT_EQ(first.ask(request("r", "k", token_of(next))), "ok");
  EXPECT_EQ(masked(second.read_line()), "ok <token> 20");
}

TEST_F(Forwarding, ADisconnectReleasesAtTheLeader) {
  LineClient waiter = cluster_.connect("a");
  {
    LineClient holder = cluster_.connect("b");
    EXPECT_EQ(masked(holder.ask(request("l", "k", "0 60"))), "ok <token> 60");
    LineClient gives_up = cluster_.connect("c");
    gives_up.send(request("l", "k", "60 60"));
    await_stats(waiter, R"("waiters":1)");
    waiter.send(request("l", "k", "60 60"));
    LineClient other = cluster_.connect("a");
    await_stats(other, R"("waiters":2)");
    gives_up.close();
    await_stats(other, R"("waiters":1)");
  }
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 60");
}

// Those of the server that a client is connected to do not count while another leads.
TEST(ForwardingSettings, AreTheLeaders) {
  ServerCluster cluster(ServerCluster::forwarding(), {"a", "b"}, [](Options& options) {
    const bool leads = options.node_id == "a";
    options.auto_release_on_disconnect = leads;
    options.default_lease_ttl = leads ? 20s : 30s;
    options.max_locks = leads ? 2 : 1;
  });
  cluster.lead("a");
  LineClient other = cluster.connect("b");
  {
    LineClient holder = cluster.connect("b");
    EXPECT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 20");
    EXPECT_EQ(masked(other.ask(request("l", "second", "0"))), "ok <token> 20");
    EXPECT_EQ(other.ask(request("l", "third", "0")), "error_max_locks");
    other.send(request("l", "k", "60"));
  }
  EXPECT_EQ(masked(other.read_line()), "ok <token> 20");  // as the holder has left
  LineClient look = cluster.connect("b");
  const std::string overview = look.ask(request("api", "GET /v1/overview", R"({"local":true})"));
  EXPECT_NE(overview.find(R"("settings":{"max-locks":"2"},"settings_differ":["max-locks"])"),
            std::string::npos)
      << overview;
  EXPECT_NE(overview.find(R"("max":2)"), std::string::npos) << overview;
}

TEST_F(Forwarding, WhatWasCompleteBeforeTheEndIsAnswered) {
  cluster_.await_link("b");
  LineClient client = cluster_.connect("b");
  client.send(request("l", "k", "5 60") + request("l", "other", "0 60"));
  client.half_close();
  EXPECT_EQ(masked(client.read_line()), "ok <token> 60");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 60");
  EXPECT_EQ(client.read_line(), kEnd);
  LineClient holder = cluster_.connect("a");
  LineClient leaves = cluster_.connect("b");
  EXPECT_EQ(masked(holder.ask(request("l", "held", "0 60"))), "ok <token> 60");
  leaves.send(request("l", "held", "60 60"));
  await_stats(holder, R"("waiters":1)");
  leaves.half_close();
  EXPECT_EQ(leaves.read_line(), kEnd);
  await_stats(holder, R"("waiters":0)");
}

TEST_F(Forwarding, IsShownAsTheServerAndTheClientThere) {
  LineClient client = cluster_.connect("b");
  EXPECT_EQ(client.ask(request("client", "ann@build", "deploy")), "ok");
  EXPECT_EQ(masked(client.ask(request("l", "k", "0 60"))), "ok <token> 60");
  LineClient leader = cluster_.connect("a");
  const std::string listed = leader.ask(request("api", "GET /v1/locks", R"({"key":"k"})"));
  EXPECT_NE(listed.find(R"("holder":"tcp:b/)"), std::string::npos) << listed;
  EXPECT_NE(listed.find(R"("client":"ann@build")"), std::string::npos) << listed;
  EXPECT_NE(listed.find(R"("note":"deploy")"), std::string::npos) << listed;
  EXPECT_NE(listed.find(R"("peer":"127.0.0.1:)"), std::string::npos) << listed;
}

TEST_F(Forwarding, TellsWhatWasLost) {
  LineClient client = cluster_.connect("b");
  EXPECT_EQ(client.ask(request("client", "ann", "")), "ok");
  const std::string granted = client.ask(request("l", "k", "0 1"));
  EXPECT_EQ(client.read_line(), "lost " + token_of(granted) + " expired k");
}

TEST_F(Forwarding, SignalsReachListenersOnEveryServer) {
  LineClient at_a = cluster_.connect("a");
  LineClient at_b = cluster_.connect("b");
  LineClient at_c = cluster_.connect("c");
  EXPECT_EQ(at_a.ask(request("listen", "s.>", "")), "ok");
  EXPECT_EQ(at_b.ask(request("listen", "s.>", "")), "ok");
  EXPECT_EQ(at_c.ask(request("listen", "s.*", "")), "ok");
  LineClient publisher = cluster_.connect("b");
  EXPECT_EQ(publisher.ask(request("signal", "s.x", "hello")), "ok 3");
  for (LineClient* listener : {&at_a, &at_b, &at_c}) {
    EXPECT_EQ(listener->read_line(), "sig s.x hello");
  }
  EXPECT_EQ(at_c.ask(request("unlisten", "s.*", "")), "ok");
  EXPECT_EQ(publisher.ask(request("signal", "s.x", "again")), "ok 2");
}

TEST_F(Forwarding, MoreThanTheWindowPassesBothWays) {
  LineClient client = cluster_.connect("b");
  const std::string payload(60'000, 'x');
  std::string text = request("listen", "s", "");
  for (int i = 0; i < 8; ++i) text += request("signal", "s", payload) + request("ping", "", "");
  client.send(text);
  EXPECT_EQ(client.read_line(), "ok");
  int signals = 0;
  int pings = 0;
  int reached = 0;
  for (int i = 0; i < 24; ++i) {
    const std::string line = client.read_line();
    if (line == "sig s " + payload) ++signals;
    if (line == "ok") ++pings;
    if (line == "ok 1") ++reached;
  }
  EXPECT_EQ(signals, 8);
  EXPECT_EQ(pings, 8);
  EXPECT_EQ(reached, 8);
}

// A client whose window is full delays no other one, and its disconnect is noticed.
TEST_F(Forwarding, FullWindowOfOneClientStopsNoOther) {
  LineClient holder = cluster_.connect("a");
  const std::string granted = holder.ask(request("l", "k", "0 60"));
  LineClient blocked = cluster_.connect("b");
  std::string text = request("l", "k", "60 60");
  while (text.size() < 300'000) text += request("ping", "", "");
  blocked.send(text);
  await_stats(holder, R"("waiters":1)");
  LineClient other = cluster_.connect("b");
  EXPECT_EQ(masked(other.ask(request("l", "other", "0 60"))), "ok <token> 60");
  blocked.close();
  await_stats(holder, R"("waiters":0)");
}

TEST_F(Forwarding, BrokenLinkClosesTheConnectionsAndReleasesNothing) {
  LineClient holder = cluster_.connect("b");
  LineClient waiter = cluster_.connect("b");
  LineClient other = cluster_.connect("a");
  const std::string granted = holder.ask(request("l", "k", "0 60"));
  waiter.send(request("l", "k", "60 60"));
  await_stats(other, R"("waiters":1)");
  cluster_.cut_links();
  EXPECT_EQ(holder.read_line(), kEnd);
  EXPECT_EQ(waiter.read_line(), kEnd);
  await_stats(other, R"("waiters":0)");
  EXPECT_EQ(other.ask(request("l", "k", "0 60")), "timeout");  // it is held
  LineClient again = cluster_.connect("b");
  EXPECT_EQ(again.ask(request("n", "k", token_of(granted))), "ok 60");
}

TEST_F(Forwarding, FailoverClosesTheConnectionsAndKeepsWhatIsHeld) {
  LineClient holder = cluster_.connect("c");
  LineClient waiter = cluster_.connect("c");
  LineClient here = cluster_.connect("b");
  LineClient look = cluster_.connect("a");
  const std::string own = "0 60 as=0123456789abcdef";
  const std::string granted = holder.ask(request("l", "k", own));
  EXPECT_EQ(masked(here.ask(request("l", "other", "0 60"))), "ok <token> 60");
  waiter.send(request("l", "k", "60 60"));
  await_stats(look, R"("waiters":1)");
  cluster_.lead("b");
  EXPECT_EQ(holder.read_line(), kEnd);
  EXPECT_EQ(waiter.read_line(), kEnd);
  EXPECT_EQ(here.read_line(), kEnd);  // although this server leads now
  EXPECT_EQ(ask_when_led(cluster_, "c", request("n", "k", token_of(granted))), "ok 60");
  EXPECT_EQ(ask_when_led(cluster_, "b", request("l", "other", "0 60")), "timeout");
  EXPECT_EQ(ask_when_led(cluster_, "c", request("l", "k", own)), granted);  // it asks again
}

// Whose connection was accepted last has the hold, whenever its channel opens.
TEST_F(Forwarding, ClientThatCameBeforeTakesNothingFromOneThatCameLater) {
  LineClient early = cluster_.connect("b");
  EXPECT_EQ(early.ask(request("ping", "", "")), "ok");
  std::this_thread::sleep_for(200ms);
  LineClient late = cluster_.connect("a");
  const std::string own = "0 60 as=0123456789abcdef";
  const std::string granted = late.ask(request("l", "k", own));
  EXPECT_EQ(early.ask(request("l", "k", own)), granted);
  early.close();
  LineClient other = cluster_.connect("a");
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(other.ask(request("l", "k", "0 60")), "timeout");
  late.close();
  EXPECT_EQ(masked(other.ask(request("l", "k", "20 60"))), "ok <token> 60");
}

// It waits for a leader at a follower, and leaves: what it asked for is not sent to the next
// leader.
TEST_F(Forwarding, ClientThatGivesUpWhileItWaitsTakesNothingLater) {
  cluster_.await_link("b");
  cluster_.kill("a");
  cluster_.lead_nobody();
  {
    LineClient gives_up = cluster_.connect("b");
    gives_up.send(request("l", "k", "0 60"));
    std::this_thread::sleep_for(100ms);
  }
  cluster_.lead("c");
  EXPECT_EQ(masked(ask_when_led(cluster_, "b", request("l", "other", "0 60"))), "ok <token> 60");
  LineClient look = cluster_.connect("c");
  EXPECT_EQ(look.ask(request("stats", "", "")).find(R"("key":"k")"), std::string::npos);
}

TEST_F(Forwarding, ClientWaitsForTheNextLeader) {
  cluster_.await_link("b");
  cluster_.kill("a");
  cluster_.lead_nobody();
  LineClient client = cluster_.connect("b");
  client.send(request("l", "k", "0 60") + request("ping", "", ""));
  std::this_thread::sleep_for(100ms);
  cluster_.lead("c");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 60");
  EXPECT_EQ(client.read_line(), "ok");
}

TEST_F(Forwarding, WhoSendsAllAtOnceWhileNobodyLeadsIsAnswered) {
  cluster_.await_link("b");
  cluster_.kill("a");
  cluster_.lead_nobody();
  LineClient client = cluster_.connect("b");
  client.send(request("l", "k", "0 60") + request("ping", "", ""));
  client.half_close();
  EXPECT_EQ(client.read_line(), "error_not_leader -");
  EXPECT_EQ(client.read_line(), "ok");
  EXPECT_EQ(client.read_line(), kEnd);
}

TEST_F(Forwarding, DrainingFollowerKeepsWhatItsClientsHold) {
  LineClient holder = cluster_.connect("b");
  const std::string granted = holder.ask(request("l", "k", "0 60"));
  cluster_.kill("b");
  EXPECT_EQ(holder.read_line(), kEnd);
  LineClient other = cluster_.connect("c");
  EXPECT_EQ(other.ask(request("l", "k", "0 60")), "timeout");
  EXPECT_EQ(other.ask(request("n", "k", token_of(granted))), "ok 60");
}

TEST(ForwardingLimits, LeaderRefusesChannelsAboveItsOwn) {
  ServerCluster cluster(ServerCluster::forwarding(), {"a", "b"}, [](Options& options) {
    if (options.node_id == "a") options.max_connections = 3;
  });
  cluster.lead("a");
  std::vector<LineClient> clients;
  for (int tries = 0; clients.size() < 3 && tries < 500; ++tries) {
    LineClient client = cluster.connect("b");
    if (client.ask(request("barrier", "", "")) == "ok") {
      clients.push_back(std::move(client));
    } else {
      std::this_thread::sleep_for(20ms);  // the link is not up yet
    }
  }
  ASSERT_EQ(clients.size(), 3U);
  LineClient refused = cluster.connect("b");
  refused.send(request("barrier", "", ""));
  EXPECT_EQ(refused.read_line(), kEnd);
  clients.pop_back();
  EXPECT_EQ(ask_when_led(cluster, "b", request("barrier", "", "")), "ok");
}

TEST_F(Forwarding, WhenNobodyLeadsItSaysSo) {
  cluster_.await_link("b");
  cluster_.kill("a");
  cluster_.lead_nobody();
  LineClient client = cluster_.connect("b");
  EXPECT_EQ(client.ask(request("l", "k", "0 60")), "error_not_leader -");
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

TEST_F(Forwarding, ASilentHolderIsNotClosedAndAnIdleClientIs) {
  Options options = ServerCluster::forwarding();
  options.read_timeout = 1s;
  ServerCluster cluster(options, {"d", "e"});
  cluster.lead("d");
  LineClient holder = cluster.connect("e");
  LineClient idle = cluster.connect("e");
  EXPECT_EQ(masked(holder.ask(request("l", "k", "0 60"))), "ok <token> 60");
  const std::string granted = idle.ask(request("l", "other", "0 60"));
  EXPECT_EQ(idle.ask(request("r", "other", token_of(granted))), "ok");
  EXPECT_EQ(idle.read_line(), "error");
  EXPECT_EQ(holder.ask(request("ping", "", "")), "ok");
}

// What is not forwarded.

TEST(NotForwarding, WithoutASecretOrByNoForwardClientsAreToldWhereTheLeaderIs) {
  Options without = ServerCluster::forwarding();
  without.cluster_secret = {};
  Options off = ServerCluster::forwarding();
  off.forward = false;
  for (const Options& options : {without, off}) {
    ServerCluster cluster(options, {"a", "b"});
    cluster.lead("a");
    LineClient client = cluster.connect("b");
    EXPECT_EQ(client.ask(request("l", "k", "0 60")),
              "error_not_leader 127.0.0.1:" + std::to_string(cluster.server("a").port()));
  }
}

// Proof.

std::string hello(const std::string& nonce) { return request("peer", "x", nonce); }

TEST(ForwardingProof, WithoutASecretThereIsNoSuchCommand) {
  LineServer server;
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(hello(std::string(64, '0'))), "error");
  EXPECT_EQ(client.read_line(), kEnd);
}

TEST_F(Forwarding, AWrongProofIsAFailedAuthentication) {
  LineClient client = cluster_.connect("a");
  const std::string reply = client.ask(hello(std::string(64, '0')));
  EXPECT_TRUE(reply.starts_with("ok ")) << reply;
  EXPECT_EQ(client.ask(request("peer", "x", std::string(64, 'a'))), "error_auth");
  EXPECT_EQ(client.read_line(), kEnd);
  LineClient look = cluster_.connect("a");
  const std::string history =
      look.ask(request("api", "GET /v1/history", R"({"event":"auth_failed"})"));
  EXPECT_NE(history.find("auth_failed"), std::string::npos) << history;
}

TEST_F(Forwarding, AProofIsGoodOnce) {
  if (tests_use_tls()) GTEST_SKIP() << "there it covers the connection, too";
  const HashedSecret secret("what all servers of one cluster know");
  const std::string nonce(64, '0');
  LineClient client = cluster_.connect("a");
  const std::string challenge = client.ask(hello(nonce)).substr(3);
  const std::string proof = prove(
      secret, {.node = "x", .asker_nonce = nonce, .answerer_nonce = challenge}, LinkEnd::asker);
  LineClient replayed = cluster_.connect("a");
  EXPECT_NE(replayed.ask(hello(nonce)).substr(3), challenge);
  EXPECT_EQ(replayed.ask(request("peer", "x", proof)), "error_auth");
  const std::string accepted = client.ask(request("peer", "x", proof));
  EXPECT_TRUE(accepted.starts_with("ok ")) << accepted;
  client.send("no frame at all");
  EXPECT_TRUE(client.read_line().starts_with("<cut off>"));  // behind the first frame of the leader
}

TEST_F(Forwarding, AFollowerTakesNoLink) {
  if (tests_use_tls()) GTEST_SKIP() << "the proof covers the connection";
  const HashedSecret secret("what all servers of one cluster know");
  const std::string nonce(64, '0');
  LineClient client = cluster_.connect("b");
  const std::string challenge = client.ask(hello(nonce)).substr(3);
  const std::string proof = prove(
      secret, {.node = "x", .asker_nonce = nonce, .answerer_nonce = challenge}, LinkEnd::asker);
  EXPECT_TRUE(client.ask(request("peer", "x", proof)).starts_with("error_not_leader "));
  EXPECT_EQ(client.read_line(), kEnd);
}

TEST(ForwardingProof, NoAuthTokenIsNeededButTheSecret) {
  Options options = ServerCluster::forwarding();
  options.secret = "a token of the clients, not of the servers";
  ServerCluster cluster(options, {"a", "b"});
  cluster.lead("a");
  LineClient client = cluster.connect("b");
  EXPECT_EQ(client.ask(request("auth", "", "a token of the clients, not of the servers")), "ok");
  EXPECT_EQ(masked(client.ask(request("l", "k", "0 60"))), "ok <token> 60");
  LineClient stranger = cluster.connect("b");
  EXPECT_EQ(stranger.ask(request("l", "k", "0 60")), "error_auth");
}

}  // namespace
}  // namespace lockd
