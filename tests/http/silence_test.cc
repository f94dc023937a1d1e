// The read timeout: a request has so long as a whole, and so has the time between two.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr auto kReadTimeout = 600ms;
const std::string kTimeout = R"(408 {"error":"request_timeout"})";

Options impatient_options() {
  Options options = http_options();
  options.read_timeout = kReadTimeout;
  return options;
}

// A client that has connected and done what `begin` does well within the read timeout: on a machine
// that stalls not always the first that tries.
template <typename Begin>
HttpClient begin_in_time(HttpServer& server, Begin begin) {
  const auto deadline = SteadyClock::now() + HttpClient::kPatience;
  for (;;) {
    const auto began = SteadyClock::now();
    HttpClient client = server.browse();
    begin(client);
    const auto now = SteadyClock::now();
    if (now - began < kReadTimeout / 2 || now > deadline) return client;
  }
}

void expect_408(HttpClient& client, SteadyClock::time_point since) {
  const HttpReply reply = client.read_reply();
  EXPECT_EQ(shown(reply), kTimeout);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_GE(SteadyClock::now(), since + kReadTimeout);
  EXPECT_EQ(client.read_end(), kEnd);
}

TEST(HttpSilence, AnIdleConnectionIsClosedWithoutAWord) {
  HttpServer server(impatient_options());
  HttpClient never = server.browse();
  const auto asked = SteadyClock::now();
  HttpReply reply;
  HttpClient client =
      begin_in_time(server, [&](HttpClient& begun) { reply = begun.get("/healthz"); });
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(client.read_end(), kEnd);
  EXPECT_GE(SteadyClock::now(), asked + kReadTimeout);
  EXPECT_EQ(never.read_end(), kEnd);
}

TEST(HttpSilence, HalfARequestIsToldSo) {
  HttpServer server(impatient_options());
  for (const char* half :
       {"G", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\n",
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
        "chunked\r\n\r\n5\r\n"}) {
    SCOPED_TRACE(half);
    const auto asked = SteadyClock::now();
    HttpClient client = begin_in_time(server, [&](HttpClient& begun) { begun.send(half); });
    expect_408(client, asked);
  }
}

// A byte now and then does not prolong it.
TEST(HttpSilence, ASlowRequestHasTheTimeAsAWhole) {
  HttpServer server(impatient_options());
  HttpClient neighbour = server.browse();
  for (const std::string& begin :
       {std::string("GET /healthz HTTP/1.1\r\nHost: a\r\nX: "),
        std::string(
            "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")}) {
    const auto asked = SteadyClock::now();
    HttpClient client = begin_in_time(server, [&](HttpClient& begun) { begun.send(begin); });
    std::atomic<bool> over{false};
    std::thread trickle([&] {
      while (!over && client.send("x")) std::this_thread::sleep_for(20ms);
    });
    const HttpReply reply = client.read_reply();
    over = true;
    trickle.join();
    EXPECT_EQ(shown(reply), kTimeout);
    EXPECT_GE(SteadyClock::now(), asked + kReadTimeout);
  }
  HttpReply reply;
  begin_in_time(server, [&](HttpClient& other) { reply = other.get("/healthz"); });
  EXPECT_EQ(reply.status, 200);
}

// The time of each request begins with its first byte, however long the connection has been open.
TEST(HttpSilence, ABusyConnectionStays) {
  HttpServer server(impatient_options());
  const auto since = SteadyClock::now();
  HttpClient client = server.browse();
  auto last = since;  // the server has heard from it since then
  while (SteadyClock::now() < since + 3 * kReadTimeout) {
    const auto asked = SteadyClock::now();
    const HttpReply reply = client.get("/healthz");
    if (reply.status == 0 && SteadyClock::now() - last > kReadTimeout / 2) {
      GTEST_SKIP() << "the machine is too slow to tell";
    }
    ASSERT_EQ(reply.status, 200);
    last = asked;
    std::this_thread::sleep_for(20ms);
  }
}

TEST(HttpSilence, AStreamMayBeSilent) {
  HttpServer server(impatient_options());
  HttpReply reply;
  HttpClient listener = begin_in_time(
      server, [&](HttpClient& begun) { reply = begun.open_stream("/v1/signals?pattern=a"); });
  ASSERT_EQ(reply.status, 200);
  HttpClient watcher =
      begin_in_time(server, [&](HttpClient& begun) { reply = begun.open_stream("/v1/events"); });
  ASSERT_EQ(reply.status, 200);
  std::this_thread::sleep_for(3 * kReadTimeout);
  begin_in_time(server, [&](HttpClient& client) {
    reply = client.post("/v1/signals/a", R"({"payload":"x"})");
  });
  EXPECT_EQ(shown(reply), R"(200 {"delivered":1})");
  EXPECT_EQ(listener.read_event(), R"(sig {"channel":"a","payload":"x"})");
  begin_in_time(
      server, [&](HttpClient& client) { reply = client.post("/v1/acquire", hold_json("k", "a")); });
  ASSERT_EQ(reply.status, 200);
  EXPECT_TRUE(watcher.read_event().starts_with("granted "));
}

}  // namespace
}  // namespace lockd
