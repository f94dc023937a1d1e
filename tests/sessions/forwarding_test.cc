// Followers pass on to the leader what they are asked, over the line protocol.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "cluster/membership_proof.h"
#include "support/server_cluster.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Signals until somebody hears it: who listens at another leader is attached there in a moment, and
// signals are not kept. The last reply.
std::string signal_until_heard(LineClient& publisher) {
  std::string reached;
  for (int i = 0; i < 500 && reached != "ok 1"; ++i) {
    if (i > 0) std::this_thread::sleep_for(20ms);
    reached = publisher.ask(request("signal", "s", "x"));
  }
  return reached;
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
  EXPECT_TRUE(by_b.ask(request("stats", "", "")).find(R"("role":"follower")") != std::string::npos);
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
  const std::string overview = other.ask(request("api", "GET /v1/overview", "{}"));
  EXPECT_NE(overview.find(R"("settings":{"max-locks":"2"},"settings_differ":["max-locks"])"),
            std::string::npos)
      << overview;
  EXPECT_NE(overview.find(R"("max":2)"), std::string::npos) << overview;
}

TEST_F(Forwarding, WhatWasCompleteBeforeTheEndIsAnswered) {
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

TEST_F(Forwarding, ABrokenLinkReleasesNothingAndSessionsAttachAgain) {
  LineClient holder = cluster_.connect("b");
  LineClient listener = cluster_.connect("b");
  LineClient waiter = cluster_.connect("b");
  LineClient other = cluster_.connect("a");
  const std::string granted = holder.ask(request("l", "k", "0 60"));
  EXPECT_EQ(listener.ask(request("listen", "s", "")), "ok");
  waiter.send(request("l", "k", "60 60"));
  await_stats(other, R"("waiters":1)");
  cluster_.cut_links();
  EXPECT_EQ(other.ask(request("l", "k", "0 60")), "timeout");  // it is held
  EXPECT_EQ(holder.ask(request("n", "k", token_of(granted))), "ok 60");
  await_stats(other, R"("waiters":1)");  // it has asked again
  EXPECT_EQ(signal_until_heard(other), "ok 1");
  EXPECT_EQ(listener.read_line(), "sig s x");
  holder.close();  // and that releases: the session is its own again
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 60");
}

TEST_F(Forwarding, WhoLeavesWhileTheLinkIsDownIsClosedWhenItIsBack) {
  LineClient holder = cluster_.connect("b");
  EXPECT_EQ(masked(holder.ask(request("l", "k", "0 60"))), "ok <token> 60");
  cluster_.cut_links();
  holder.close();
  LineClient other = cluster_.connect("a");
  EXPECT_EQ(masked(other.ask(request("l", "k", "20 60"))), "ok <token> 60");
}

TEST_F(Forwarding, AtAFailoverWhatWaitsIsAskedOfTheNextLeader) {
  LineClient holder = cluster_.connect("c");
  LineClient waiter = cluster_.connect("c");
  LineClient enqueued = cluster_.connect("c");
  LineClient listener = cluster_.connect("c");
  LineClient look = cluster_.connect("a");
  const std::string granted = holder.ask(request("l", "k", "0 60"));
  const std::string second = holder.ask(request("l", "other", "0 60"));
  EXPECT_EQ(listener.ask(request("listen", "s", "")), "ok");
  waiter.send(request("l", "k", "60 60"));
  await_stats(look, R"("waiters":1)");
  EXPECT_EQ(enqueued.ask(request("e", "other", "60")), "queued");
  enqueued.send(request("w", "other", "60"));
  std::this_thread::sleep_for(50ms);  // so that it waits, as a rule
  cluster_.lead("b");
  EXPECT_EQ(holder.ask(request("n", "k", token_of(granted))), "ok 60");
  EXPECT_EQ(holder.ask(request("r", "k", token_of(granted))), "ok");
  EXPECT_EQ(holder.ask(request("r", "other", token_of(second))), "ok");
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 60");
  EXPECT_EQ(masked(enqueued.read_line()), "ok <token> 60");
  LineClient later = cluster_.connect("b");
  EXPECT_EQ(signal_until_heard(later), "ok 1");
  EXPECT_EQ(listener.read_line(), "sig s x");
}

TEST_F(Forwarding, APlaceThatNobodyAwaitsYetIsThereAtTheNextLeader) {
  LineClient holder = cluster_.connect("c");
  LineClient enqueued = cluster_.connect("c");
  for (const std::string next : {"b", "c"}) {
    const std::string granted = holder.ask(request("l", next, "0 60"));
    EXPECT_EQ(enqueued.ask(request("e", next, "60")), "queued");
    cluster_.lead(next);
    EXPECT_EQ(holder.ask(request("r", next, token_of(granted))), "ok");
    EXPECT_EQ(masked(enqueued.ask(request("w", next, "30"))), "ok <token> 60") << next;
  }
}

TEST_F(Forwarding, WhatWasAskedOfTheLastLeaderIsAnsweredHereWhenThisServerLeads) {
  LineClient holder = cluster_.connect("b");
  LineClient waiter = cluster_.connect("b");
  LineClient listener = cluster_.connect("b");
  LineClient look = cluster_.connect("a");
  const std::string granted = holder.ask(request("l", "k", "0 60"));
  EXPECT_EQ(listener.ask(request("listen", "s", "")), "ok");
  waiter.send(request("l", "k", "60 60"));
  await_stats(look, R"("waiters":1)");
  cluster_.lead("b");
  EXPECT_EQ(holder.ask(request("r", "k", token_of(granted))), "ok");
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 60");
  EXPECT_EQ(signal_until_heard(holder), "ok 1");
  EXPECT_EQ(listener.read_line(), "sig s x");
}

// The same subscription, and it is over when it was ended: also at the next leader.
TEST_F(Forwarding, ASubscriptionWithOtherBlanksIsNoOther) {
  LineClient listener = cluster_.connect("c");
  for (const char* group : {"g", " g", "g\t "}) {
    EXPECT_EQ(listener.ask(request("listen", "s", group)), "ok");
  }
  EXPECT_EQ(listener.ask(request("unlisten", "s", "  g")), "ok");
  EXPECT_EQ(listener.ask(request("listen", "other", "")), "ok");
  cluster_.lead("b");
  LineClient publisher = cluster_.connect("b");
  std::string reached;
  for (int i = 0; i < 500 && reached != "ok 1"; ++i) {  // until it is attached there
    if (i > 0) std::this_thread::sleep_for(20ms);
    reached = publisher.ask(request("signal", "other", "x"));
  }
  EXPECT_EQ(reached, "ok 1");
  EXPECT_EQ(publisher.ask(request("signal", "s", "x")), "ok 0");
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
  EXPECT_EQ(client.read_line(), kEnd);
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
