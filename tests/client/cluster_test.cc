// A cluster given by name, and what only this client's callers see of clusters. The rest of what
// clients do when the leader changes is in clients/conformance.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockd/client/client.h"
#include "support/fake_cluster.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// Long enough for a slow machine to find another server in.
constexpr std::chrono::seconds kClusterLease{8};

ClientOptions options_of(std::vector<Address> cluster) {
  return {.cluster = std::move(cluster),
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s},
          .release_timeout = 60s};
}

HeldLock acquire_for(Client& client, std::chrono::seconds lease) {
  auto lock = client.acquire({.keys = "k", .lease = lease});
  EXPECT_TRUE(lock) << describe(lock);
  return std::move(*lock);
}

TEST(Cluster, ThatCannotBeIsInvalid) {
  Client client({.cluster = {{"a", 1}, {"a", 1}}});
  EXPECT_EQ(client.acquire({.keys = "k"}).outcome, Outcome::invalid);
  EXPECT_EQ(client.server_of("k"), (Address{"a", 1}));
}

// Names are looked up in the background; and the leader is named by an address that was not given.
TEST(Cluster, HeldLockIsRenewedAtServersThatAreGivenByName) {
  FakeCluster cluster(3);
  std::vector<Address> names = cluster.addresses();
  for (Address& address : names) address.host = "localhost";
  Client client(options_of(names));
  HeldLock lock = acquire_for(client, kClusterLease);
  const auto before = lock.expires_at();
  cluster.lead(2);
  cluster.kill(0);
  EXPECT_TRUE(eventually([&] { return lock.expires_at() > before || !lock.is_held(); }));
  EXPECT_EQ(lock.release().outcome, Outcome::ok);
}

// What was asked before, and is answered late, does not count from when it is answered.
TEST(Cluster, CertaintyCountsFromTheSendingAtTheNextLeaderToo) {
  std::atomic<BootClock::time_point> asked_at{};
  FakeCluster cluster(2, [&](std::size_t server, const Asked& asked) -> std::optional<std::string> {
    if (server == 1 && asked.command == "n") {
      asked_at = std::max(asked_at.load(), asked.at);
      std::this_thread::sleep_for(300ms);
    }
    return {};
  });
  Client client(options_of(cluster.addresses()));
  const HeldLock lock = acquire_for(client, kClusterLease);
  const auto first = lock.expires_at();
  cluster.lead(1);
  cluster.kill(0);
  ASSERT_TRUE(eventually([&] { return lock.expires_at() != first; }));
  EXPECT_LE(lock.expires_at(), asked_at.load() + kClusterLease);
}

TEST(Cluster, ConnectionIsToTheLeader) {
  FakeCluster cluster(3);
  cluster.lead(1);
  Client client(options_of(cluster.addresses()));
  auto connection = client.connect("k");
  ASSERT_TRUE(connection) << describe(connection);
  EXPECT_TRUE(connection->barrier());
  EXPECT_TRUE(connection->acquire({.key = "k", .lease = kClusterLease}));
}

}  // namespace
}  // namespace lockd::client
