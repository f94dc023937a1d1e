// Streams of events: as many as there may be, which concern nobody, or which nobody reads.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWatchersMax = 1000;  // by default

HttpClient watch(const ServerProcess& server, const std::string& prefix) {
  HttpClient watcher({.port = server.http_port(), .receive_buffer = 4096});
  EXPECT_EQ(watcher.open_stream("/v1/events?prefix=" + prefix).status, 200);
  return watcher;
}

// Takes and releases a hundred locks at a time, as fast as it is answered.
void cause_events(const ServerProcess& server, std::chrono::milliseconds time) {
  LineClient client = server.connect();
  std::string taken;
  for (int i = 0; i < 100; ++i) taken += request("l", "busy/" + std::to_string(i), "0 600");
  for (const auto end = SteadyClock::now() + time; SteadyClock::now() < end;) {
    client.send(taken);
    std::string released;
    for (int i = 0; i < 100; ++i) {
      released += request("r", "busy/" + std::to_string(i), token_of(client.read_line()));
    }
    client.send(released);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(client.read_line(), "ok");
  }
}

// Every length of a prefix is there, and none of them is the beginning of a key.
TEST(Abuse, StreamsThatConcernNobody) {
  const ServerProcess server({"--threads", "2", "--http-addr", "127.0.0.1:0"});
  connections_possible(kWatchersMax + 100);
  std::vector<HttpClient> watchers;
  for (std::size_t i = 0; i < kWatchersMax; ++i) {
    watchers.push_back(watch(server, std::string(i % 256, 'b') + "x"));
  }
  HttpClient one_more({.port = server.http_port()});
  const HttpReply refused = one_more.get("/v1/events");
  EXPECT_EQ(shown(refused), R"(429 {"error":"max_watchers"})");
  EXPECT_NE(refused.body.find("--max-watchers"), std::string::npos);
  {
    const HonestClients honest(
        server, {.attack = "streams that concern nobody", .token = {}, .reads_metrics = true});
    cause_events(server, scaled(4s));
  }
  watchers.pop_back();
  const auto deadline = SteadyClock::now() + HttpClient::kPatience;
  while (one_more.open_stream("/v1/events").status != 200) {
    ASSERT_LT(SteadyClock::now(), deadline);
    one_more = HttpClient({.port = server.http_port()});
  }
  cause_events(server, 1ms);
  EXPECT_TRUE(one_more.read_event().starts_with("granted "));
}

// They are told that they missed some, once they read.
TEST(Abuse, StreamsThatNobodyReads) {
  const ServerProcess server(
      {"--threads", "2", "--http-addr", "127.0.0.1:0", "--write-timeout", "0"});
  const std::size_t count = scaled(500U);
  connections_possible(count + 100);
  std::vector<HttpClient> watchers;
  for (std::size_t i = 0; i < count; ++i) watchers.push_back(watch(server, ""));
  {
    const HonestClients honest(
        server, {.attack = "streams that nobody reads", .token = {}, .reads_metrics = true});
    cause_events(server, scaled(4s));
  }
  expect_grown_at_most(server, 0, count * 512 + 64 * 1024);  // 256 KiB each, as it grows
  const std::string first = watchers.front().read_event();
  EXPECT_TRUE(first.starts_with("granted ") || first.starts_with("missed ")) << first;
}

}  // namespace
}  // namespace lockd
