// The proxy does what its faults are called, and nothing else.
#include "histories/chaos_proxy.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include "histories/recording.h"
#include "support/line_client.h"
#include "support/loopback.h"

namespace lockd::histories {
namespace {

// Takes one connection and sends back what it gets; after the end of that, "bye\n".
class Echo {
 public:
  Echo() : listener_(listen_on_loopback()), port_(port_of(listener_)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~Echo() {
    thread_.join();
    ::close(listener_);
  }
  std::uint16_t port() const { return port_; }

 private:
  void serve() {
    const int socket = ::accept(listener_, nullptr, nullptr);
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), 0);
      if (size <= 0) break;
      ::send(socket, bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
    }
    ::send(socket, "bye\n", 4, MSG_NOSIGNAL);
    ::close(socket);
  }

  const int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

class ChaosProxyTest : public testing::Test {
 protected:
  ChaosProxyTest() {
    port_ = proxy_.listen(0, [this] { return ChaosProxy::Upstream{echo_.port(), 1}; });
    proxy_.start();
  }

  LineClient connect() {
    LineClient client(port_, 0, false);
    EXPECT_EQ(client.ask("hello\n"), "hello");
    return client;
  }
  void inject(ChaosProxy::LinkFault fault, Instant lasting) { proxy_.inject(fault, 0, 1, lasting); }

  Echo echo_;
  ChaosProxy proxy_{1};
  std::uint16_t port_ = 0;
};

constexpr Instant kLong = 30 * kSecond;

TEST_F(ChaosProxyTest, PassesEverythingOn) {
  LineClient client = connect();
  const std::string line(100'000, 'x');
  EXPECT_EQ(client.ask(line + "\n"), line);
  client.half_close();
  EXPECT_EQ(client.read_line(), "bye");
  EXPECT_EQ(client.read_line(), kEnd);
}

TEST_F(ChaosProxyTest, SplitsAndDelaysWithoutLoss) {
  LineClient client = connect();
  inject(ChaosProxy::LinkFault::split, kLong);
  inject(ChaosProxy::LinkFault::delay, kLong);
  const std::string line(2000, 'x');
  EXPECT_EQ(client.ask(line + "\n"), line);
  client.close();
}

TEST_F(ChaosProxyTest, StallsOneWayForAWhile) {
  LineClient client = connect();
  for (const auto fault : {ChaosProxy::LinkFault::stall_up, ChaosProxy::LinkFault::stall_down}) {
    const Instant begun = now();
    inject(fault, kSecond / 10);
    EXPECT_EQ(client.ask("late\n"), "late");
    EXPECT_GE(now() - begun, kSecond / 10);
  }
  client.close();
}

TEST_F(ChaosProxyTest, Cuts) {
  LineClient client = connect();
  inject(ChaosProxy::LinkFault::cut, 0);
  EXPECT_EQ(client.read_line(), kReset);
}

TEST_F(ChaosProxyTest, CutsWithinAMessage) {
  LineClient client = connect();
  inject(ChaosProxy::LinkFault::truncate, 0);
  std::string end;
  while (!end.starts_with('<')) end = client.ask("a line of some length\n");
  EXPECT_TRUE(end.starts_with("<reset") || end.starts_with("<cut off") || end == kEnd) << end;
}

TEST_F(ChaosProxyTest, ClosesHalf) {
  LineClient client = connect();
  inject(ChaosProxy::LinkFault::half_close, 0);
  EXPECT_EQ(client.read_line(), "bye");
  EXPECT_EQ(client.read_line(), kEnd);
}

}  // namespace
}  // namespace lockd::histories
