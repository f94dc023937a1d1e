// The read timeout: a request has so long as a whole, and so has the time between two.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "http/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Clock = HttpClient::Clock;

constexpr auto kReadTimeout = 600ms;
const std::string kTimeout = R"(408 {"error":"request_timeout"})";

Options impatient_options() {
  Options options = http_options();
  options.read_timeout = kReadTimeout;
  return options;
}

void expect_408(HttpClient& client, Clock::time_point since) {
  const HttpReply reply = client.read_reply();
  EXPECT_EQ(shown(reply), kTimeout);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_GE(Clock::now(), since + kReadTimeout);
  EXPECT_EQ(client.read_end(), kEnd);
}

TEST(HttpSilence, AnIdleConnectionIsClosedWithoutAWord) {
  HttpServer server(impatient_options());
  HttpClient never = server.browse();
  HttpClient client = server.browse();
  const auto asked = Clock::now();
  EXPECT_EQ(client.get("/healthz").status, 200);
  EXPECT_EQ(client.read_end(), kEnd);
  EXPECT_GE(Clock::now(), asked + kReadTimeout);
  EXPECT_EQ(never.read_end(), kEnd);
}

TEST(HttpSilence, HalfARequestIsToldSo) {
  HttpServer server(impatient_options());
  for (const char* half :
       {"G", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\n",
        "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
        "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"}) {
    SCOPED_TRACE(half);
    HttpClient client = server.browse();
    const auto asked = Clock::now();
    client.send(half);
    expect_408(client, asked);
  }
}

// A byte now and then does not prolong it.
TEST(HttpSilence, ASlowRequestHasTheTimeAsAWhole) {
  HttpServer server(impatient_options());
  HttpClient neighbour = server.browse();
  for (const std::string& begin :
       {std::string("GET /healthz HTTP/1.1\r\nHost: a\r\nX: "),
        std::string("POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")}) {
    HttpClient client = server.browse();
    const auto asked = Clock::now();
    std::atomic<bool> over{false};
    std::thread trickle([&] {
      client.send(begin);
      while (!over && client.send("x")) std::this_thread::sleep_for(20ms);
    });
    const HttpReply reply = client.read_reply();
    over = true;
    trickle.join();
    EXPECT_EQ(shown(reply), kTimeout);
    EXPECT_GE(Clock::now(), asked + kReadTimeout);
  }
  HttpClient other = server.browse();
  EXPECT_EQ(other.get("/healthz").status, 200);
}

// The time of each request begins with its first byte, however long the connection has been open.
TEST(HttpSilence, ABusyConnectionStays) {
  HttpServer server(impatient_options());
  HttpClient client = server.browse();
  const auto since = Clock::now();
  while (Clock::now() < since + 3 * kReadTimeout) {
    const auto asked = Clock::now();
    const HttpReply reply = client.get("/healthz");
    if (reply.status == 0 && Clock::now() - asked > kReadTimeout / 2) {
      GTEST_SKIP() << "the machine is too slow to tell";
    }
    ASSERT_EQ(reply.status, 200);
    std::this_thread::sleep_for(20ms);
  }
}

TEST(HttpSilence, AStreamMayBeSilent) {
  HttpServer server(impatient_options());
  HttpClient listener = server.browse();
  HttpClient watcher = server.browse();
  ASSERT_EQ(listener.open_stream("/v1/signals?pattern=a").status, 200);
  ASSERT_EQ(watcher.open_stream("/v1/events").status, 200);
  std::this_thread::sleep_for(3 * kReadTimeout);
  HttpClient client = server.browse();
  EXPECT_EQ(shown(client.post("/v1/signals/a", R"({"payload":"x"})")), R"(200 {"delivered":1})");
  EXPECT_EQ(listener.read_event(), R"(sig {"channel":"a","payload":"x"})");
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  EXPECT_TRUE(watcher.read_event().starts_with("granted "));
}

}  // namespace
}  // namespace lockd
