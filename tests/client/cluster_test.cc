// One cluster, several servers: the leader is found, and redirects go to addresses that were given.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <string>

#include "client/cluster_client.h"
#include "lockd/client/client.h"
#include "support/fake_cluster.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

TEST(Cluster, IsFoundByItsLeaderWhereverThatIsInTheList) {
  FakeCluster cluster(3);
  for (const std::size_t leader : {1U, 2U, 0U}) {
    cluster.lead(leader);
    Client client(patient(cluster.addresses()));
    HeldLock lock = acquire(client, {.key = "k", .lease = kLease});
    EXPECT_EQ(client.server_of("k"), cluster.addresses()[leader]);
    EXPECT_EQ(lock.release().outcome, Outcome::ok);
    EXPECT_FALSE(cluster.is_held("k"));
  }
}

TEST(Cluster, RemembersWhoLed) {
  FakeCluster cluster(3);
  cluster.lead(2);
  Client client(patient(cluster.addresses()));
  ASSERT_TRUE(client.acquire({.key = "a", .lease = kLease}));
  const int before = cluster.asked(0, "barrier") + cluster.asked(1, "barrier");
  ASSERT_TRUE(client.acquire({.key = "b", .lease = kLease}));
  EXPECT_EQ(cluster.asked(0, "barrier") + cluster.asked(1, "barrier"), before);
}

TEST(Cluster, IsFoundAmongTheDead) {
  FakeCluster cluster(3);
  cluster.lead(2);
  cluster.kill(0);
  cluster.kill(1);
  Client client(patient(cluster.addresses()));
  EXPECT_TRUE(client.acquire({.key = "k", .lease = kLease}));
}

TEST(Cluster, IsFoundBesideOneThatHangs) {
  FakeCluster cluster(3);
  cluster.lead(1);
  cluster.hang(0);
  ClientOptions options = patient(cluster.addresses());
  options.connect.connect_timeout = 20s;
  Client client(options);
  EXPECT_TRUE(client.acquire({.key = "k", .lease = kLease}));
}

TEST(Cluster, IsWaitedForDuringAnElection) {
  FakeCluster cluster(3);
  cluster.lead_none();
  Client client(patient(cluster.addresses()));
  auto lock =
      std::async(std::launch::async, [&] { return client.acquire({.key = "k", .lease = kLease}); });
  ASSERT_TRUE(eventually([&] { return cluster.asked(2, "barrier") >= 3; }));
  cluster.lead(1);
  EXPECT_TRUE(lock.get());
  EXPECT_EQ(cluster.asked(0, "l") + cluster.asked(2, "l"), 0) << "only who leads is asked";
}

TEST(Cluster, IsNotWaitedForFarBeyondTheTimeThatWasGiven) {
  FakeCluster cluster(3);
  cluster.lead_none();
  ClientOptions options = patient(cluster.addresses());
  options.connect.connect_timeout = 3s;
  Client client(options);
  const auto before = BootClock::now();
  const auto lock = client.acquire({.key = "k", .wait = 1s, .lease = kLease});
  EXPECT_EQ(lock.outcome, Outcome::not_leader);
  EXPECT_GE(BootClock::now() - before, 1s);
  EXPECT_LT(BootClock::now() - before, 60s);
  EXPECT_NE(lock.detail.find("no leader was found among 127.0.0.1:"), std::string::npos);
  cluster.kill(0);
  cluster.kill(1);
  cluster.kill(2);
  EXPECT_EQ(client.acquire({.key = "k"}).outcome, Outcome::unreachable);
}

TEST(Cluster, SearchCanBeGivenUp) {
  FakeCluster cluster(3);
  cluster.lead_none();
  Client client(patient(cluster.addresses()));
  std::stop_source stop;
  auto lock = std::async(std::launch::async, [&] {
    return client.acquire({.key = "k", .lease = kLease}, stop.get_token());
  });
  ASSERT_TRUE(eventually([&] { return cluster.asked(1, "barrier") >= 1; }));
  stop.request_stop();
  EXPECT_EQ(lock.get().outcome, Outcome::cancelled);
}

TEST(Cluster, RedirectsOnlyToAddressesThatWereGiven) {
  const FakeCluster elsewhere(1);
  FakeCluster cluster(2);
  cluster.lead_none();
  cluster.name(elsewhere.addresses()[0].to_string());
  ClientOptions options = patient(cluster.addresses());
  options.connect.connect_timeout = 3s;
  Client client(options);
  const auto lock = client.acquire({.key = "k", .lease = kLease});
  EXPECT_EQ(lock.outcome, Outcome::not_leader);
  EXPECT_NE(lock.detail.find("\"" + elsewhere.addresses()[0].to_string() +
                             "\" was named, and was not given"),
            std::string::npos)
      << lock.detail;
  EXPECT_EQ(elsewhere.asked(0, "barrier") + elsewhere.asked(0, "l"), 0);
}

TEST(Cluster, IsFoundThoughItsLeaderGoesByAnotherName) {
  FakeCluster cluster(3);
  cluster.lead(2);
  cluster.name("leader.example.com:6388");
  Client client(patient(cluster.addresses()));
  EXPECT_TRUE(client.acquire({.key = "k", .lease = kLease}));
}

TEST(Cluster, OfOneServerThatFollowsSaysWhoLeads) {
  FakeCluster cluster(2);
  cluster.lead(1);
  Client client({.servers = {cluster.addresses()[0]}});
  const auto lock = client.acquire({.key = "k", .lease = kLease});
  EXPECT_EQ(lock.outcome, Outcome::not_leader);
  EXPECT_EQ(lock.leader, cluster.addresses()[1].to_string());
  EXPECT_EQ(describe(lock), "the server does not lead its cluster");
  EXPECT_EQ(cluster.asked(0, "l"), 1) << "once";
  EXPECT_EQ(cluster.asked(1, "l"), 0);
  EXPECT_EQ(cluster.asked(0, "barrier"), 0) << "a server that stands alone is not asked";
}

TEST(Cluster, ThatCannotBeIsInvalid) {
  Client client({.cluster = {{"a", 1}, {"a", 1}}});
  EXPECT_EQ(client.acquire({.key = "k"}).outcome, Outcome::invalid);
  EXPECT_EQ(client.server_of("k"), (Address{"a", 1}));
}

TEST(Cluster, AsksAgainWhenTheAnswerToAnAcquireIsLost) {
  std::atomic<int> asked = 0;
  FakeCluster cluster(2, [&](std::size_t, const Asked& request) -> std::optional<std::string> {
    if (request.command != "l" || asked++ > 0) return {};
    return "cut";
  });
  Client client(patient(cluster.addresses()));
  EXPECT_TRUE(client.acquire({.key = "k", .lease = kLease}));
  EXPECT_EQ(asked, 2);
}

TEST(Cluster, LeaderThatProvesItselfAndRefusesIsNotAskedForEver) {
  FakeCluster cluster(2, [](std::size_t, const Asked& request) -> std::optional<std::string> {
    if (request.command == "barrier") return "ok";
    return "error_not_leader -";
  });
  ClientOptions options = patient(cluster.addresses());
  options.connect.connect_timeout = 3s;
  Client client(options);
  EXPECT_EQ(client.acquire({.key = "k", .lease = kLease}).outcome, Outcome::not_leader);
}

TEST(Cluster, WhoStoodInLineAsksAgainAtTheNextLeader) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  HeldLock holder = acquire(client, {.key = "k", .lease = 600s});
  auto waiter = std::async(std::launch::async, [&] {
    return client.acquire({.key = "k", .wait = 600s, .lease = kLease});
  });
  ASSERT_TRUE(eventually([&] { return cluster.waiting() == 1; }));
  cluster.kill(0);
  cluster.lead(1);
  ASSERT_TRUE(eventually([&] { return cluster.waiting() == 1; }));
  EXPECT_EQ(cluster.asked(1, "l"), 1);
  EXPECT_EQ(holder.release().outcome, Outcome::ok);
  EXPECT_TRUE(waiter.get());
}

TEST(Cluster, WhoStoodInLineWaitsNoLongerThanItAskedFor) {
  FakeCluster cluster(2);
  Client client(patient(cluster.addresses()));
  const HeldLock holder = acquire(client, {.key = "k", .lease = 600s});
  const auto before = BootClock::now();
  auto waiter = std::async(std::launch::async, [&] {
    return client.acquire({.key = "k", .wait = 2s, .lease = kLease});
  });
  ASSERT_TRUE(eventually([&] { return cluster.waiting() == 1; }));
  cluster.kill(0);
  cluster.lead(1);
  EXPECT_EQ(waiter.get().outcome, Outcome::timeout);
  EXPECT_GE(BootClock::now() - before, 2s);
}

// Which ends the waits at it by a plain `error`, and then says why.
TEST(Cluster, WhoStoodInLineAtALeaderThatStopsAsksAgainAtTheNext) {
  std::atomic<bool> stops = false;
  std::atomic<FakeCluster*> all = nullptr;
  FakeCluster cluster(2,
                      [&](std::size_t server, const Asked& request) -> std::optional<std::string> {
                        if (server == 1) return {};
                        if (stops) return "error_draining";
                        if (request.command != "l") return {};
                        stops = true;
                        all.load()->lead(1);
                        return "error";
                      });
  all = &cluster;
  Client client(patient(cluster.addresses()));
  const auto lock = client.acquire({.key = "k", .wait = 60s, .lease = kLease});
  EXPECT_TRUE(lock) << describe(lock);
  EXPECT_EQ(cluster.asked(0, "l"), 1);
}

TEST(Cluster, RefusalOfALeaderThatStaysIsOne) {
  FakeCluster cluster(2, [](std::size_t, const Asked& request) -> std::optional<std::string> {
    if (request.command == "l") return "error";
    return {};
  });
  Client client(patient(cluster.addresses()));
  EXPECT_EQ(client.acquire({.key = "k", .lease = kLease}).outcome, Outcome::refused);
  EXPECT_EQ(cluster.asked(0, "l"), 1);
}

TEST(Cluster, PlaceInLineIsLostWithItsLeaderAndAskedForAgain) {
  FakeCluster cluster(2);
  Client client(patient(cluster.addresses()));
  HeldLock holder = acquire(client, {.key = "k", .lease = 600s});
  auto place = client.enqueue({.key = "k", .lease = kLease});
  ASSERT_TRUE(place) << describe(place);
  EXPECT_FALSE(place->is_granted());
  cluster.kill(0);
  cluster.lead(1);
  EXPECT_TRUE(holder.release());
  const auto lock = place->wait(10s);
  ASSERT_TRUE(lock) << describe(lock);
  EXPECT_TRUE(lock->queued_again());
}

TEST(Cluster, PlaceThatWasGrantedIsHeldAtTheNextLeader) {
  FakeCluster cluster(2);
  Client client(patient(cluster.addresses()));
  auto place = client.enqueue({.key = "k", .lease = 60s});
  ASSERT_TRUE(place && place->is_granted());
  cluster.kill(0);
  cluster.lead(1);
  auto lock = place->wait(0s);
  ASSERT_TRUE(lock) << describe(lock);
  EXPECT_TRUE(eventually([&] { return cluster.asked(1, "n") > 0; }));
  EXPECT_EQ(lock->release().outcome, Outcome::ok);
}

}  // namespace
}  // namespace lockd::client
