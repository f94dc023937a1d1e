#include "client/renewal.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kNobody = 1;  // a port at which nobody listens

SocketAddresses on_loopback(std::uint16_t port) {
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SocketAddresses all(1);
  all[0].size = sizeof address;
  std::memcpy(&all[0].storage, &address, sizeof address);
  return all;
}

bool has_port(const SocketAddresses& addresses, std::uint16_t port) {
  // IPv4 and IPv6 have it at the same place.
  const auto is_port = [port](const SocketAddress& one) {
    return reinterpret_cast<const sockaddr_in*>(one.get())->sin_port == htons(port);
  };
  return std::all_of(addresses.begin(), addresses.end(), is_port);
}

// As after a restart elsewhere, with the journal.
TEST(Renewal, LooksALoneServerUpAgainThatIsNotWhereItWas) {
  const Address address{"localhost", 2};
  const auto made = Cluster::make({&address, 1}, {});
  ASSERT_TRUE(made);
  Cluster& cluster = **made;
  const auto now = BootClock::now();
  cluster.learn(0, on_loopback(kNobody));
  const auto hold = std::make_shared<Hold>(
      Hold::Terms{.cluster = *made, .claim = std::make_shared<KeyClaim>("k")},
      LineGrant{.token = "t", .lease = std::chrono::seconds(3600), .sent_at = now});
  Renewal renewal(hold, std::make_unique<LineConnection>(cluster.member(0), on_loopback(kNobody),
                                                         now, now + 60s));
  while (!has_port(*cluster.addresses_of(0), address.port) && BootClock::now() < now + 60s) {
    EXPECT_FALSE(renewal.advance(BootClock::now()));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(has_port(*cluster.addresses_of(0), address.port));
}

}  // namespace
}  // namespace lockd::client
