#include "lockctl/api/http_client.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "lockctl/output/failure.h"

using namespace std::chrono_literals;

namespace {

constexpr const char* kSlowName = "slow.invalid";

// Its server does not answer.
std::atomic<bool> is_silent = false;

}  // namespace

// The system's, but for one name.
extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  const bool by_name = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (by_name && host != nullptr && std::strcmp(host, kSlowName) == 0) {
    while (is_silent) std::this_thread::sleep_for(1ms);
    return EAI_AGAIN;
  }
  static const auto system =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return system(host, service, hints, found);
}

namespace lockd::cli {
namespace {

TEST(HttpClient, DoesNotWaitForEverForANameServer) {
  is_silent = true;
  HttpClient client({.address = {kSlowName, 1}}, {});
  try {
    client.get_within(100ms, "/");
    FAIL() << "there is no such server";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), kExitUnavailable);
    EXPECT_NE(std::string(failure.what()).find("in time"), std::string::npos) << failure.what();
  }
  is_silent = false;
}

// The descriptor of this process that is connected to a port.
int connected_to(in_port_t port) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const bool has_peer = ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (has_peer && peer.sin_family == AF_INET && peer.sin_port == port) return fd;
  }
  return -1;
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  ::getsockopt(socket, IPPROTO_TCP, option, &value, &size);
  return value;
}

// A wait that has no end must not outlast its server by hours.
TEST(HttpClient, NoticesAServerThatVanishes) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener, raw, size), 0);
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::getsockname(listener, raw, &size), 0);

  HttpClient client({.address = {"127.0.0.1", ntohs(address.sin_port)}},
                    {.connect_timeout = 60s, .reply_timeout = 60s});
  auto asked = std::async(std::launch::async, [&] { client.get("/"); });
  const int server = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  std::array<char, 1> byte{};
  ASSERT_EQ(::recv(server, byte.data(), byte.size(), 0), 1) << "it has connected, and asks";
  const int socket = connected_to(address.sin_port);
  EXPECT_EQ(option_of(socket, TCP_KEEPIDLE), 15);
  EXPECT_EQ(option_of(socket, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option_of(socket, TCP_KEEPCNT), 3);
  ::close(server);
  ::close(listener);
  EXPECT_THROW(asked.get(), Failure);
}

std::vector<std::string> events(const std::vector<std::string>& pieces) {
  EventStreamParser parser;
  std::vector<std::string> all;
  for (const std::string& piece : pieces) {
    EXPECT_TRUE(parser.feed(
        piece, [&](const StreamEvent& event) { all.push_back(event.name + '=' + event.data); }));
  }
  return all;
}

TEST(EventStream, IsTheSameHoweverItIsCut) {
  const std::string stream =
      ": ping\n\nevent: granted\ndata: {\"a\":1}\n\n"
      "event: released\r\ndata: x\r\ndata:y\r\n\r\nid: 7\ndata\n\nevent: never\n\n";
  const std::vector<std::string> expected{"granted={\"a\":1}", "released=x\ny", "="};
  EXPECT_EQ(events({stream}), expected);
  for (std::size_t at = 0; at < stream.size(); ++at) {
    EXPECT_EQ(events({stream.substr(0, at), stream.substr(at)}), expected) << at;
  }
}

TEST(EventStream, HasALimit) {
  EventStreamParser parser;
  const std::string much(1 << 16, 'x');
  bool fine = true;
  for (int i = 0; i < 17; ++i) fine = parser.feed(much, [](const StreamEvent&) {});
  EXPECT_FALSE(fine);
}

}  // namespace
}  // namespace lockd::cli
