// What is held in a cluster is held on through the loss of its leader, and never for longer than
// its lease.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/cluster_client.h"
#include "lockd/client/client.h"
#include "support/fake_cluster.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// Where it matters who is silent: whoever is for a quarter of the lease is taken to hang.
constexpr auto kLongLease = 2 * kLease;

// Acquires with a lease that is short, and tells what becomes of it.
struct Owner {
  explicit Owner(Client& client, std::chrono::seconds lease = kLease)
      : lock(acquire(client, {.key = "k", .lease = lease, .on_lost = [this](const Status& status) {
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
  Owner owner(client, kLongLease);
  cluster.lead(2);
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_EQ(cluster.asked(1, "n"), 0) << "it was told who leads";
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
}

// To leave the first connection would be to release, and somebody else leads already.
TEST(ClusterRenewal, HoldsOnWhenTheLeaderHangsAndIsReplaced) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  Owner owner(client, kLongLease);
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
  Owner owner(client, kLongLease);
  const auto first = owner.lock.expires_at();
  cluster.hang(0);
  ASSERT_TRUE(eventually([&] { return cluster.asked(1, "n") + cluster.asked(2, "n") > 1; }));
  EXPECT_EQ(owner.lock.expires_at(), first) << "nobody has confirmed anything";
  cluster.go_on(0);
  EXPECT_TRUE(owner.is_renewed());
  EXPECT_TRUE(cluster.is_held("k")) << "it was not released by leaving";
  EXPECT_EQ(owner.lock.release().outcome, Outcome::ok);
}

// Its connection breaks while it is renewed, which it is before it is handed out.
TEST(ClusterRenewal, HoldsOnToAGrantThatComesLate) {
  FakeCluster* all = nullptr;
  FakeCluster cluster(2, [&](std::size_t server, const Asked& asked) -> std::optional<std::string> {
    if (server != 0) return {};
    if (asked.command == "l") std::this_thread::sleep_for(600ms);
    if (asked.command != "n") return {};
    all->lead(1);
    return "cut";
  });
  all = &cluster;
  Client client(patient(cluster.addresses()));
  const auto lock = client.acquire({.key = "k", .lease = 1s});
  EXPECT_TRUE(lock) << describe(lock);
  EXPECT_EQ(cluster.asked(1, "l"), 0) << "it would stand behind itself";
}

TEST(ClusterRenewal, HoldsOnToAPlaceThatWasGranted) {
  FakeCluster cluster(3);
  Client client(patient(cluster.addresses()));
  auto place = client.enqueue({.key = "k", .lease = 1s});
  ASSERT_TRUE(place && place->is_granted()) << describe(place);
  const auto lease_over = BootClock::now() + 1s;
  cluster.kill(0);
  cluster.lead(2);
  ASSERT_TRUE(eventually([&] { return BootClock::now() >= lease_over; }));
  const auto lock = place->wait(0s);
  EXPECT_TRUE(lock) << describe(lock);
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
  const HeldLock lock =
      acquire(client, {.key = "k", .lease = kLease, .on_lost = [&](const Status& s) {
                         told = BootClock::now();
                         lost = s.outcome;
                       }});
  const auto after = BootClock::now();
  EXPECT_GE(lock.expires_at(), before + kLease);
  EXPECT_LE(lock.expires_at(), after + kLease);
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
      asked_at = std::max(asked_at.load(), asked.at);
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
  // The server has released it with the connection, so that the second finds nothing. It was
  // certain when the first was sent, which may have been what released it.
  EXPECT_EQ(lock.release().outcome, Outcome::ok);
  EXPECT_FALSE(cluster.is_held("k"));
}

TEST(ClusterRelease, DoesNotWaitForEverForALeaderThatHangs) {
  FakeCluster cluster(2);
  ClientOptions options = patient(cluster.addresses());
  options.release_timeout = 10s;
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
