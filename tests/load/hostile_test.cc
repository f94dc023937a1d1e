// Peers that misbehave, many at once, beside one that does not: it must not notice.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <random>
#include <string>
#include <thread>

#include "load/bystander.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// The observer and the bystander.
const std::string kOthersLeft = "{\"connections\":2,";

void expect_others_left(LineClient& observer) {
  const std::string stats = await_stats(observer, kOthersLeft);
  EXPECT_TRUE(stats.starts_with("ok " + kOthersLeft)) << stats.substr(0, 1000);
}

TEST(Hostile, PortScanners) {
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  const Bystander bystander(server);
  expect_others_left(observer);
  const std::size_t descriptors = server.descriptors();
  for (std::size_t i = 0; i < scaled(2000); ++i) {
    LineClient knocks = server.connect();
    LineClient kicks = server.connect();
    knocks.close();
    kicks.reset();
  }
  expect_others_left(observer);
  bystander.await_rounds(10);
  EXPECT_LE(server.await_descriptors(descriptors), descriptors);
}

TEST(Hostile, Garbage) {
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  const Bystander bystander(server);
  std::minstd_rand random(20'250'301);
  std::string garbage(64 * 1024, '\0');
  Swarm vandals(server.port());
  ASSERT_TRUE(vandals.connect(scaled(200)));
  for (std::size_t i = 0; i < vandals.size(); ++i) {
    for (char& c : garbage) c = static_cast<char>(random() >> 8);
    vandals.send(i, garbage);  // the server need not take all of it
  }
  for (std::size_t i = 0; i < vandals.size(); ++i) {
    ASSERT_EQ(vandals.read_line(i), "error") << i;
    ASSERT_EQ(vandals.read_line(i), kEnd) << i;
  }
  expect_others_left(observer);
  bystander.await_rounds(10);
}

TEST(Hostile, AnotherProtocol) {
  const ServerProcess server;
  const Bystander bystander(server);
  LineClient browser = server.connect();
  browser.send("GET /v1/locks HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
  EXPECT_EQ(browser.read_line(), "error");
  EXPECT_EQ(browser.read_line(), kEnd);
  LineClient mailer = server.connect();
  mailer.send("EHLO example.org\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.org>\r\n");
  EXPECT_EQ(mailer.read_line(), "error");
  EXPECT_EQ(mailer.read_line(), kEnd);
  bystander.await_rounds(10);
}

// A request has the read timeout from its first byte to its last: who is slow is served, and who is
// too slow is not waited for.
TEST(Hostile, SlowWriters) {
  constexpr auto kReadTimeout = 6s;  // the bystander must not be held up for as long
  const ServerProcess server({"--threads", "4", "--read-timeout", "6"});
  const Bystander bystander(server);
  Swarm slow(server.port());
  const auto began = SteadyClock::now();
  ASSERT_TRUE(slow.connect(scaled(200)));
  const std::string padding(60, 'p');
  const auto first = [&](std::size_t i) {
    return request("l", padding + std::to_string(1000 + i), "0 1000");
  };
  const auto write = [&](const auto& text) {
    for (std::size_t byte = 0; byte < text(0).size(); ++byte) {
      std::this_thread::sleep_for(50ms);
      for (std::size_t i = 0; i < slow.size(); ++i) slow.offer(i, text(i).substr(byte, 1));
    }
  };
  write(first);
  const auto second_began = SteadyClock::now();
  if (second_began - began > kReadTimeout - 1s) GTEST_SKIP() << "the machine is too slow to tell";
  write([&](std::size_t) { return "r\n" + padding; });
  EXPECT_GT(SteadyClock::now() - began, kReadTimeout);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    ASSERT_EQ(masked(slow.read_line(i)), "ok <token> 1000") << i;
  }
  for (std::size_t i = 0; i < slow.size(); ++i) {
    ASSERT_EQ(slow.read_line(i), "error") << i;
    ASSERT_GE(SteadyClock::now(), second_began + kReadTimeout);
    ASSERT_EQ(slow.read_line(i), kEnd) << i;
  }
  LineClient observer = server.connect();
  expect_others_left(observer);
}

}  // namespace
}  // namespace lockd
