// A peer that is gone without a word is found by its silence, within a minute or so.
//
// That takes a network that swallows packets and a minute of waiting; what is looked at here is
// that the server has asked its system for it, on every connection.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstddef>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

constexpr int kDescriptorsLookedAt = 1024;

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(socket, level, name, &value, &size);
  return value;
}

// This process' ends of connections to `port` on its own side: those of the server within it.
std::vector<int> accepted_sockets(std::uint16_t port) {
  std::vector<int> sockets;
  for (int descriptor = 0; descriptor < kDescriptorsLookedAt; ++descriptor) {
    sockaddr_in local{};
    sockaddr_in peer{};
    socklen_t size = sizeof local;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &size) != 0) continue;
    size = sizeof peer;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (local.sin_family == AF_INET && ntohs(local.sin_port) == port) sockets.push_back(descriptor);
  }
  return sockets;
}

TEST(DeadPeers, AreLookedForOnEveryConnection) {
  LineServer server;
  std::vector<LineClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(server.connect());
    ASSERT_EQ(clients.back().ask(request("ping", "", "")), "ok");
  }
  const std::vector<int> sockets = accepted_sockets(server.port());
  ASSERT_EQ(sockets.size(), clients.size());
  for (const int socket : sockets) {
    EXPECT_EQ(option(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
    const int silence_s =
        option(socket, IPPROTO_TCP, TCP_KEEPIDLE) +
        option(socket, IPPROTO_TCP, TCP_KEEPINTVL) * option(socket, IPPROTO_TCP, TCP_KEEPCNT);
    EXPECT_LE(silence_s, 60);
    // With something unacknowledged there are no probes: then this counts.
    const int unacknowledged_ms = option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT);
    EXPECT_GT(unacknowledged_ms, 0);
    EXPECT_LE(unacknowledged_ms, 60'000);
  }
}

}  // namespace
}  // namespace lockd
