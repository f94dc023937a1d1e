#include "client/socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// A listener of this machine, as a Socket finds it.
SocketAddresses listen_on(int listener) {
  SocketAddresses all(1);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  all[0].size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener, raw, all[0].size), 0);
  EXPECT_EQ(::listen(listener, 1), 0);
  EXPECT_EQ(::getsockname(listener, raw, &all[0].size), 0);
  std::memcpy(&all[0].storage, &address, sizeof address);
  return all;
}

TEST(Socket, IsNotOpenBeforeTheSystemHasSaidSo) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto now = BootClock::now();
  Socket socket(*Endpoint::make({}, {}), listen_on(listener), now, now + 3600s);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);  // no poll() succeeds
  socket.advance(now);
  EXPECT_FALSE(socket.is_open());
  EXPECT_FALSE(socket.is_closed());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  pollfd ready = socket.interest();
  ASSERT_EQ(::poll(&ready, 1, 60'000), 1);
  socket.advance(now);
  EXPECT_TRUE(socket.is_open());
  ::close(listener);
}

}  // namespace
}  // namespace lockd::client
