// Peers that try to have the server keep things for them: what it keeps is bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "load/waiters.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMebibyte = 1024 * 1024;
constexpr std::size_t kFlood = 64 * kMebibyte;
// A mebibyte unread and another unsent, each in a buffer that may have twice the room, and one
// answer more.
constexpr std::size_t kept_kib(std::size_t peers) { return (peers * 5 + 4) * 1024; }

std::string repeated(const std::string& text, std::size_t size) {
  std::string all;
  while (all.size() < size) all += text;
  return all;
}

// Each sends `text` over and over, up to kFlood, until nobody gets rid of anything for a while.
void flood(Swarm& swarm, const std::vector<std::string>& texts) {
  std::vector<std::size_t> sent(swarm.size());
  auto last_progress = SteadyClock::now();
  while (SteadyClock::now() - last_progress < 500ms) {
    for (std::size_t i = 0; i < swarm.size(); ++i) {
      if (sent[i] >= kFlood) continue;
      const std::string& text = texts[i % texts.size()];
      const std::size_t taken =
          swarm.offer(i, std::string_view(text).substr(sent[i] % text.size()));
      sent[i] += taken;
      if (taken > 0) last_progress = SteadyClock::now();
    }
  }
}

// Keys enough for statistics of a hundred kilobytes.
void take_many_keys(LineClient& client) {
  const std::string tail(200, 'k');
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(masked(client.ask(request("l", std::to_string(i) + tail, "0 1000"))),
              "ok <token> 1000");
  }
}

TEST(BoundedMemory, WhoNeverReadsIsClosed) {
  const ServerProcess server({"--threads", "4", "--write-timeout", "1"});
  LineClient observer = server.connect();
  const HonestClients honest(server, {.attack = "peers that do not read"});
  ASSERT_NO_FATAL_FAILURE(take_many_keys(observer));
  const std::size_t base_kib = server.memory_kib();
  Swarm deaf(server.port());
  ASSERT_TRUE(deaf.connect(scaled(20), {}, 4096));
  flood(deaf, {repeated(request("stats", "", ""), 8 * 1024),
               repeated(request("ping", "", ""), 7 * 8 * 1024)});
  const std::string stats = await_stats(observer, "{\"connections\":3,");
  EXPECT_TRUE(stats.starts_with("ok {\"connections\":3,")) << stats.substr(0, 100);
  expect_grown_at_most(server, base_kib, kept_kib(deaf.size()));
  honest.await_rounds(10);
}

TEST(BoundedMemory, AListenerThatNeverReadsIsClosed) {
  const ServerProcess server({"--threads", "4", "--write-timeout", "0"});
  LineClient observer = server.connect();
  const HonestClients honest(server, {.attack = "peers that do not read"});
  const std::size_t base_kib = server.memory_kib();
  Swarm deaf(server.port());
  ASSERT_TRUE(deaf.connect(10, {}, 4096));
  for (std::size_t i = 0; i < deaf.size(); ++i) {
    ASSERT_EQ(deaf.ask(i, request("listen", "a.>", "")), "ok");
  }
  const std::string signal = request("signal", "a.b", std::string(60'000, 'x'));
  std::string reached;
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  while ((reached = observer.ask(signal)) != "ok 0" && SteadyClock::now() < deadline) {
    ASSERT_TRUE(reached.starts_with("ok ")) << reached;
  }
  EXPECT_EQ(reached, "ok 0");
  expect_grown_at_most(server, base_kib, kept_kib(deaf.size()));
  honest.await_rounds(10);
}

// Some that wait, and send on and on meanwhile.
class Flooders : public testing::Test {
 protected:
  const std::size_t count_ = scaled(8);

  Flooders() {
    token_ = token_of(holder_.ask(request("l", "k", "0 1000")));
    EXPECT_TRUE(flooders_.connect(count_));
    for (std::size_t i = 0; i < count_; ++i) flooders_.send(i, request("l", "k", "1000 1000"));
    await_waiters(holder_, "k", count_);
  }

  void flood_all() { flood(flooders_, {repeated(request("ping", "", ""), 7 * 8 * 1024)}); }

  ServerProcess server_{{"--threads", "4"}};
  LineClient holder_ = server_.connect();
  HonestClients honest_{server_, {.attack = "requests behind a wait"}};
  Swarm flooders_{server_.port()};
  std::string token_;
};

TEST_F(Flooders, AreNotListenedToForEver) {
  const std::size_t base_kib = server_.memory_kib();
  flood_all();
  expect_grown_at_most(server_, base_kib, kept_kib(count_));
  honest_.await_rounds(10);
}

TEST_F(Flooders, ThatAreResetAreMissedAtOnce) {
  flood_all();
  for (std::size_t i = 0; i < count_; ++i) flooders_.reset(i);
  await_waiters(holder_, "k", 0);
}

// More than the server keeps, and all of it arrived: the end behind it is noticed.
TEST_F(Flooders, ThatCloseAreMissedAtOnce) {
  const std::string much = repeated(request("ping", "", ""), kMebibyte + 16 * 1024);
  for (std::size_t i = 0; i < count_; ++i) ASSERT_TRUE(flooders_.send(i, much));
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  for (std::size_t i = 0; i < count_; ++i) {
    while (flooders_.unacknowledged(i) > 0 && SteadyClock::now() < deadline)
      std::this_thread::yield();
    ASSERT_EQ(flooders_.unacknowledged(i), 0U);
    flooders_.close(i);
  }
  await_waiters(holder_, "k", 0);
}

// An end that is stuck behind more than the server's system takes cannot be noticed before the
// line has moved: then it is, and the lock goes on to whoever is still there.
TEST_F(Flooders, ThatCloseBehindAFullWindowPassTheLockOn) {
  LineClient last = server_.connect();
  last.send(request("l", "k", "1000 1000"));
  await_waiters(holder_, "k", count_ + 1);
  flood_all();
  flooders_.close_all();
  ASSERT_EQ(holder_.ask(request("r", "k", token_)), "ok");
  EXPECT_EQ(masked(last.read_line()), "ok <token> 1000");
}

}  // namespace
}  // namespace lockd
