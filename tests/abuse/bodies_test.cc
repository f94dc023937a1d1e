// Peers that have the server keep bytes for them, each within its own limits: together they have a
// budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/eventually.h"
#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMebi = std::size_t{1024} * 1024;

std::string post_of_a_mebibyte(const std::string& fields) {
  return "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n" + fields +
         "Content-Length: 1048576\r\n\r\n" + std::string(kMebi, ' ');
}

// Each sends `text` once, as fast as it is taken, until nothing moves for `pause`.
void offer_all(Swarm& swarm, std::string_view text, std::chrono::milliseconds pause) {
  std::vector<std::size_t> sent(swarm.size());
  auto last_progress = SteadyClock::now();
  while (SteadyClock::now() - last_progress < pause) {
    for (std::size_t i = 0; i < swarm.size(); ++i) {
      if (!swarm.is_open(i) || sent[i] == text.size()) continue;
      const std::size_t taken = swarm.offer(i, text.substr(sent[i]));
      sent[i] += taken;
      if (taken > 0) last_progress = SteadyClock::now();
    }
  }
}

// Each is told that it is not let in and closed, and what it sent is not kept.
TEST(Abuse, BodiesOfStrangers) {
  const ServerProcess server({"--threads", "2", "--http-addr", "127.0.0.1:0", "--auth-token",
                              kHonestToken, "--max-unauthenticated", "2000"});
  Swarm strangers(server.http_port());
  ASSERT_TRUE(strangers.connect(scaled(1000)));
  const std::size_t base_kib = server.memory_kib();
  {
    const HonestClients honest(
        server, {.attack = "bodies of strangers", .token = kHonestToken, .reads_metrics = true});
    offer_all(strangers, post_of_a_mebibyte(""), 300ms);
    std::size_t told = 0;
    std::size_t ended = 0;
    for (const auto end = SteadyClock::now() + 30s;
         ended < strangers.size() && SteadyClock::now() < end;) {
      const auto next = strangers.next(100ms);
      if (!next) continue;
      if (next->line.starts_with("HTTP/1.1 401 ")) ++told;
      if (next->line == kEnd || next->line == kReset) ++ended;
    }
    EXPECT_EQ(told, strangers.size());
    EXPECT_EQ(ended, strangers.size());
  }
  expect_grown_at_most(server, base_kib, 48 * 1024);
}

// Peers that know the token send `text` and go no further. The server closes those that have most.
void fill_the_budget(const char* attack, std::size_t peers, int receive_buffer,
                     std::string_view text) {
  const ServerProcess server({"--threads", "2", "--http-addr", "127.0.0.1:0", "--auth-token",
                              kHonestToken, "--max-buffer-memory", "16MiB", "--write-timeout",
                              "0"});
  Swarm swarm(server.http_port());
  ASSERT_TRUE(swarm.connect(peers, {}, receive_buffer));
  const std::size_t base_kib = server.memory_kib();
  {
    const HonestClients honest(server,
                               {.attack = attack, .token = kHonestToken, .reads_metrics = true});
    offer_all(swarm, text, 500ms);
    // A turn closes a bounded number of connections; the next ones close the rest.
    EXPECT_TRUE(
        eventually([&] { return metric(server, "lockd_buffer_memory_bytes") <= 16.0 * kMebi; }));
  }
  if (is_full_size()) {
    EXPECT_GT(metric(server, "lockd_connections_cut_for_memory_total"), 0);
  }
  expect_grown_at_most(server, base_kib, 96 * 1024);
}

TEST(Abuse, BodiesBeyondTheBudget) {
  std::string post = post_of_a_mebibyte("Authorization: Bearer " + kHonestToken + "\r\n");
  post.pop_back();  // none of them is ever whole
  fill_the_budget("bodies beyond the budget", scaled(400), 0, post);
}

TEST(Abuse, AnswersBeyondTheBudget) {
  const std::string get =
      "GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n"
      "Authorization: Bearer " +
      kHonestToken + "\r\n\r\n";
  fill_the_budget("answers beyond the budget", scaled(200), 4096, repeated(get, 500));
}

}  // namespace
}  // namespace lockd
