// One cluster, several servers: the leader is found, redirects go to addresses that were given,
// and what is held is held on, never for longer than its lease.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/fake_cluster.h"
#include "lockd/client/client.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// Long enough for a slow machine to find another server in.
constexpr auto kLease = 8s;

ClientOptions patient(std::vector<Address> cluster) {
  return {.cluster = std::move(cluster),
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s},
          .release_timeout = 60s};
}

HeldLock acquire(Client& client, const LockRequest& request) {
  auto lock = client.acquire(request);
  EXPECT_TRUE(lock) << describe(lock);
  return std::move(*lock);
}

// Acquires with a lease that is short, and tells what becomes of it.
struct Owner {
  explicit Owner(Client& client)
      : lock(acquire(client, {.key = "k", .lease = kLease, .on_lost = [this](const Status& status) {
                                lost = status.outcome;
                              }})) {}

  // Whether it is certain for longer than now, before it is lost.
  bool is_renewed() const {
    const auto before = lock.expires_at();
    return eventually([&] { return lock.expires_at() > before || !lock.is_held(); }) &&
           lock.is_held();
  }

  std::atomic<Outcome> lost = Outcome::ok;
  HeldLock lock;
};

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
  options.connect.connect_timeout = 300ms;
  Client client(options);
  const auto before = BootClock::now();
  const auto lock = client.acquire({.key = "k", .wait = 3600s, .lease = kLease});
  EXPECT_EQ(lock.outcome, Outcome::not_leader);
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
  options.connect.connect_timeout = 300ms;
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
  options.connect.connect_timeout = 200ms;
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

TEST(Cluster, PlaceInLineIsLostWithItsLeader) {
  FakeCluster cluster(2);
  Client client(patient(cluster.addresses()));
  const HeldLock holder = acquire(client, {.key = "k", .lease = 600s});
  auto place = client.enqueue({.key = "k", .lease = kLease});
  ASSERT_TRUE(place) << describe(place);
  EXPECT_FALSE(place->is_granted());
  cluster.kill(0);
  cluster.lead(1);
  EXPECT_EQ(place->wait(10s).outcome, Outcome::disconnected);
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

// --- what is held ---

TEST(ClusterRenewal, HoldsOnWhenTheLeaderIsKilled) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  for (const std::size_t dead : {0U, 1U}) {
    cluster.kill(dead);
    cluster.lead(dead + 1);
    EXPECT_TRUE(owner.is_renewed());
    EXPECT_TRUE(eventually([&] { return client.server_of("k") == cluster.addresses()[dead + 1]; }));
  }
  EXPECT_TRUE(owner.is_renewed()) << "and again there";
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
  EXPECT_FALSE(cluster.is_held("k"));
  EXPECT_EQ(owner.lost, Outcome::ok);
}

// Names are looked up in the background; and the leader is named by an address that was not given.
TEST(ClusterRenewal, HoldsOnAtServersThatAreGivenByName) {
  FakeCluster cluster(3);
  std::vector<Address> names = cluster.addresses();
  for (Address& address : names) address.host = "localhost";
  Client client(patient(names));
  Owner owner(client);
  cluster.lead(2);
  cluster.kill(0);
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
}

TEST(ClusterRenewal, HoldsOnThroughAnElection) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  cluster.kill(0);
  ASSERT_TRUE(eventually([&] { return cluster.asked(1, "n") > 2 && cluster.asked(2, "n") > 2; }));
  EXPECT_TRUE(owner.lock.is_held());
  cluster.lead(2);
  EXPECT_TRUE(owner.is_renewed());
}

TEST(ClusterRenewal, HoldsOnWhenTheLeaderSaysThatItFollows) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  cluster.lead(2);
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_EQ(cluster.asked(1, "n"), 0) << "it was told who leads";
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
}

// To leave the first connection would be to release, and somebody else leads already.
TEST(ClusterRenewal, HoldsOnWhenTheLeaderHangsAndIsReplaced) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  cluster.hang(0);
  ASSERT_TRUE(eventually([&] { return cluster.asked(0, "n") > 0; }));
  cluster.lead(1);
  EXPECT_TRUE(owner.is_renewed());
  cluster.go_on(0);
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
  EXPECT_FALSE(cluster.is_held("k"));
}

// The others are asked meanwhile, in vain; the first connection is still there when it goes on.
TEST(ClusterRenewal, HoldsOnWhenTheLeaderHangsAndGoesOn) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  const auto first = owner.lock.expires_at();
  cluster.hang(0);
  ASSERT_TRUE(eventually([&] { return cluster.asked(1, "n") + cluster.asked(2, "n") > 1; }));
  EXPECT_EQ(owner.lock.expires_at(), first) << "nobody has confirmed anything";
  cluster.go_on(0);
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_TRUE(cluster.is_held("k")) << "it was not released by leaving";
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
}

TEST(ClusterRenewal, IsLostWhenTheNextLeaderSaysSo) {
  FakeCluster cluster(2, [](std::size_t server, const Asked& asked) -> std::optional<std::string> {
    if (server == 1 && asked.command == "n") return "error";
    return {};
  });
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  cluster.kill(0);
  ASSERT_TRUE(eventually([&] { return owner.lost != Outcome::ok; }));
  EXPECT_EQ(owner.lost, Outcome::lost);
  EXPECT_FALSE(owner.lock.is_held());
}

// Neither for longer than the lease, counted from the sending, nor for less.
TEST(ClusterRenewal, IsBelievedUntilItsLeaseIsOverAndNoLonger) {
  FakeCluster cluster(3, [](std::size_t, const Asked& asked) -> std::optional<std::string> {
    if (asked.command == "n") return "error_not_leader -";
    return {};
  });
  Client client(patient(cluster.addresses()));
  const auto before = BootClock::now();
  std::atomic<Outcome> lost = Outcome::ok;
  std::atomic<BootClock::time_point> told{};
  const HeldLock lock = acquire(client, {.key = "k", .lease = 2s, .on_lost = [&](const Status& s) {
                                           told = BootClock::now();
                                           lost = s.outcome;
                                         }});
  const auto after = BootClock::now();
  EXPECT_GE(lock.expires_at(), before + 2s);
  EXPECT_LE(lock.expires_at(), after + 2s);
  const auto until = lock.expires_at();
  while (lock.is_held()) std::this_thread::sleep_for(1ms);
  EXPECT_GE(BootClock::now(), until);
  EXPECT_EQ(lock.expires_at(), until) << "nobody has confirmed anything";
  ASSERT_TRUE(eventually([&] { return lost != Outcome::ok; }));
  EXPECT_EQ(lost, Outcome::unsure);
  EXPECT_GE(told.load(), until);
}

// What was asked before, and is answered late, does not count from when it is answered.
TEST(ClusterRenewal, CountsFromTheSendingAtTheNextLeaderToo) {
  std::atomic<BootClock::time_point> asked_at{};
  FakeCluster cluster(2, [&](std::size_t server, const Asked& asked) -> std::optional<std::string> {
    if (server == 1 && asked.command == "n") {
      if (asked_at.load() == BootClock::time_point{}) asked_at = asked.at;
      std::this_thread::sleep_for(300ms);
    }
    return {};
  });
  Client client(patient(cluster.addresses()));
  Owner owner(client);
  const auto first = owner.lock.expires_at();
  cluster.lead(1);
  cluster.kill(0);
  ASSERT_TRUE(eventually([&] { return owner.lock.expires_at() != first; }));
  EXPECT_LE(owner.lock.expires_at(), asked_at.load() + kLease);
}

TEST(ClusterRelease, GoesToTheNextLeader) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  HeldLock lock = acquire(client, {.key = "k", .lease = 600s});
  cluster.kill(0);
  auto released = std::async(std::launch::async, [&] { return lock.release(); });
  ASSERT_TRUE(eventually([&] { return cluster.asked(2, "r") > 1; }));
  cluster.lead(1);
  EXPECT_EQ(released.get().outcome, Outcome::ok);
  EXPECT_FALSE(cluster.is_held("k"));
}

TEST(ClusterRelease, IsRepeatedWhenItsAnswerIsLost) {
  std::atomic<int> asked = 0;
  FakeCluster cluster(2, [&](std::size_t, const Asked& request) -> std::optional<std::string> {
    if (request.command != "r" || asked++ > 0) return {};
    return "cut";
  });
  Client client(patient(cluster.addresses()));
  HeldLock lock = acquire(client, {.key = "k", .lease = 600s});
  // The server has released it with the connection, so that it is not held by the time of the
  // second: who released it nobody can tell, as on a server that stands alone.
  EXPECT_EQ(lock.release().outcome, Outcome::lost);
  EXPECT_FALSE(cluster.is_held("k"));
}

TEST(ClusterRelease, DoesNotWaitForEverForALeaderThatHangs) {
  FakeCluster cluster(2);
  ClientOptions options = patient(cluster.addresses());
  options.release_timeout = 4s;
  Client client(options);
  HeldLock lock = acquire(client, {.key = "k", .lease = 600s});
  cluster.hang(0);
  cluster.lead(1);
  EXPECT_EQ(lock.release().outcome, Outcome::ok);
  EXPECT_FALSE(cluster.is_held("k"));
}

TEST(ClusterConnection, IsToTheLeader) {
  FakeCluster cluster(3);
  cluster.lead(1);
  Client client(patient(cluster.addresses()));
  auto connection = client.connect("k");
  ASSERT_TRUE(connection) << describe(connection);
  EXPECT_TRUE(connection->barrier());
  EXPECT_TRUE(connection->acquire({.key = "k", .lease = kLease}));
}

}  // namespace
}  // namespace lockd::client
