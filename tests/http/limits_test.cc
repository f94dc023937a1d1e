// Limits, and the answer at each.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(HttpLimits, MaxLocksCountsBothNamespacesAndTransports) {
  Options options = http_options();
  options.max_locks = 3;
  HttpServer server(options);
  HttpClient client = server.browse();
  LineClient line = server.connect();
  const std::int64_t token = client.post("/v1/acquire", hold_json("a", "x")).number("token");
  ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("a", "x", R"("limit":1)")).status, 200);
  ASSERT_EQ(masked(line.ask(request("l", "c", "0"))), "ok <token> 33");
  for (const char* more : {"", R"("wait_ms":60000)"}) {
    EXPECT_EQ(shown(client.post("/v1/acquire", hold_json("b", "x", more))),
              R"(429 {"error":"max_locks"})");
  }
  EXPECT_EQ(shown(client.post("/v1/semaphores/acquire", hold_json("b", "x", R"("limit":1)"))),
            R"(429 {"error":"max_locks"})");
  EXPECT_NE(client.post("/v1/acquire", hold_json("b", "x")).text("detail").find("--max-locks"),
            std::string::npos);
  EXPECT_EQ(line.ask(request("l", "b", "0")), "error_max_locks");
  // What asks creates no key, and what is idle gives way.
  EXPECT_EQ(client.get("/v1/fence?key=b").status, 200);
  EXPECT_EQ(client.post("/v1/renew", hold_json("b", "x", 1)).status, 409);
  EXPECT_EQ(client.post("/v1/release", hold_json("a", "x", token)).status, 200);
  EXPECT_EQ(client.post("/v1/acquire", hold_json("b", "x")).status, 200);
}

TEST(HttpLimits, MaxWaitersIsPerKey) {
  Options options = http_options();
  options.max_waiters = 1;
  HttpServer server(options);
  HttpClient client = server.browse();
  HttpClient waiter = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "b", R"("wait_ms":60000)")));
  ASSERT_TRUE(await_line(client, "k", 1));
  const HttpReply refused = client.post("/v1/acquire", hold_json("k", "c", R"("wait_ms":60000)"));
  EXPECT_EQ(shown(refused), R"(429 {"error":"max_waiters"})");
  EXPECT_NE(refused.text("detail").find("--max-waiters"), std::string::npos);
  EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "c")).status, 409);  // it does not wait
  EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "a", R"("wait_ms":60000)")).status, 200);
}

TEST(HttpLimits, TheLetterOfDflockdRefusesTriesAtFullQueuesAndKeepsIdleLimits) {
  Options options = http_options();
  options.max_waiters = 1;
  options.dflockd_letter = true;
  HttpServer server(options);
  HttpClient client = server.browse();
  HttpClient waiter = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "b", R"("wait_ms":60000)")));
  ASSERT_TRUE(await_line(client, "k", 1));
  EXPECT_EQ(shown(client.post("/v1/acquire", hold_json("k", "c"))),
            R"(429 {"error":"max_waiters"})");

  const auto acquire = [&](const char* limit) {
    return client.post("/v1/semaphores/acquire", hold_json("pool", "a", limit));
  };
  const HttpReply granted = acquire(R"("limit":3)");
  ASSERT_EQ(granted.status, 200);
  const std::int64_t token = granted.json().at("token").as_int64();
  ASSERT_EQ(client.post("/v1/semaphores/release", hold_json("pool", "a", token)).status, 200);
  EXPECT_EQ(shown(acquire(R"("limit":5)")), R"(409 {"error":"limit_mismatch","limit":3})");
  const HttpReply set = client.post(
      "/v1/acquire", R"({"items":[{"key":"free"},{"key":"pool","kind":"semaphore","limit":5}],)"
                     R"("holder":"a","ttl_ms":60000})");
  EXPECT_EQ(set.status, 409);
  EXPECT_EQ(set.text("error"), "limit_mismatch");
  EXPECT_EQ(acquire(R"("limit":3)").status, 200);
}

TEST(HttpLimits, MaxHoldsNamesTheSettingThatIsInTheWay) {
  Options options = http_options();
  options.max_holds = 3;
  options.max_holds_per_client = 2;
  HttpServer server(options);
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("1", "a")).status, 200);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("2", "a")).status, 200);
  const auto of_client = client.post("/v1/acquire", hold_json("3", "a"));
  EXPECT_EQ(shown(of_client), R"(429 {"error":"max_holds"})");
  EXPECT_NE(of_client.body.find("--max-holds-per-client"), std::string::npos) << of_client.body;
  EXPECT_EQ(client.post("/v1/acquire", hold_json("2", "a")).status, 200);  // its own again
  ASSERT_EQ(client.post("/v1/acquire", hold_json("3", "b")).status, 200);
  const auto of_all = client.post("/v1/acquire", hold_json("1", "b", R"("wait_ms":60000)"));
  EXPECT_EQ(shown(of_all), R"(429 {"error":"max_holds"})");
  EXPECT_NE(of_all.body.find("--max-holds\""), std::string::npos) << of_all.body;
  EXPECT_EQ(client.post("/v1/acquire", hold_json("1", "b")).status, 409);  // it wants no place
  EXPECT_NE(client.get("/metrics").body.find(R"(refusals_total{reason="max_holds"} 2)"),
            std::string::npos);
}

TEST(HttpLimits, MaxLeaseTtlIsToldInExpiresAt) {
  Options options = http_options();
  options.max_lease_ttl = 20s;
  HttpServer server(options);
  HttpClient client = server.browse();
  const auto left_ms = [](const HttpReply& reply) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return reply.number("expires_at_unix_ms") -
           std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  };
  const auto granted = client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":9223372036000)"));
  EXPECT_LE(left_ms(granted), 20'000);
  EXPECT_GT(left_ms(granted), 0);
  const auto renewed =
      client.post("/v1/renew", hold_json("k", "a", granted.number("token"), R"("ttl_ms":600000)"));
  EXPECT_LE(left_ms(renewed), 20'000);
}

TEST(HttpLimits, MaxConnectionsCountsBothPorts) {
  Options options = http_options();
  options.max_connections = 2;
  HttpServer server(options);
  LineClient line = server.connect();
  HttpClient client = server.browse();
  ASSERT_EQ(line.ask(request("ping", "", "")), "ok");
  ASSERT_EQ(client.get("/livez").status, 200);
  // It says nothing: what it said would be answered by a reset.
  HttpClient refused({.port = server.http_port(), .tls = false});
  EXPECT_EQ(refused.read_end(), kEnd);
  EXPECT_EQ(client.get("/livez").status, 200);
}

// A short request may have a long answer. Of one that does not read they are not piled up: the last
// request is executed when there is room for its answer, and sees what happened meanwhile.
TEST(HttpLimits, AnswersAreNotPiledUp) {
  Options options = http_options();
  options.write_timeout = std::chrono::seconds(0);
  HttpServer server(options);
  HttpClient client = server.browse();
  HttpClient slow({.port = server.http_port(), .receive_buffer = 4096, .tls = server.tls()});
  constexpr int kPages = 1000;  // in one read, mostly
  ASSERT_TRUE(slow.send(repeated("GET / HTTP/1.1\r\nHost:localhost\r\n\r\n", kPages) +
                        slow.written("GET", "/v1/fence?key=k")));
  ASSERT_EQ(slow.read_reply().status, 200);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  for (int i = 1; i < kPages; ++i) ASSERT_EQ(slow.read_reply().status, 200) << i;
  EXPECT_EQ(shown(slow.read_reply()), R"(200 {"key":"k","held":true,"token":<token>})");
}

// Over the budget a new body is refused by its head; what has none, or a small one, is served.
TEST(HttpLimits, BodiesHaveABudget) {
  Options options = http_options();
  options.max_buffer_memory = 20'000;  // of which nobody is closed for less than 1 KiB
  HttpServer server(options);
  HttpClient client = server.browse();
  std::vector<HttpClient> hoarders;
  for (int i = 0; i < 80; ++i) {
    hoarders.push_back(server.browse());
    hoarders.back().send(
        "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Length: 100000\r\n\r\n" +
        std::string(500, ' '));
  }
  const std::string head =
      "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n";
  const auto is_busy = [&] {
    HttpClient late = server.browse();
    late.send(head);
    const HttpReply reply = late.read_reply(false, std::chrono::milliseconds(200));
    if (reply.status == 0) return false;  // there was still room: it is waited for
    EXPECT_EQ(shown(reply), R"(503 {"error":"busy"})");
    EXPECT_EQ(reply.field("Retry-After"), "1");
    EXPECT_EQ(reply.field("Connection"), "close");
    EXPECT_EQ(late.read_end(), kEnd);
    return true;
  };
  bool busy = false;
  for (int i = 0; i < 100 && !busy; ++i) busy = is_busy();
  EXPECT_TRUE(busy);
  EXPECT_EQ(client.get("/livez").status, 200);
  EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200) << "it is small";
  hoarders.clear();
  for (int i = 0; i < 100 && busy; ++i) busy = is_busy();
  EXPECT_FALSE(busy) << "what they had is given back";
}

// What it was answered takes memory, and its socket a descriptor, until they are gone.
TEST(HttpLimits, MaxConnectionsCountsWhoHasNotTakenTheLastAnswer) {
  Options options = http_options();
  options.max_connections = 1;
  options.read_timeout = std::chrono::hours(1);
  options.max_locks = 100'000;
  options.write_timeout = std::chrono::seconds(0);
  HttpServer server(options);
  take_many_keys(server);
  HttpClient slow({.port = server.http_port(), .receive_buffer = 4096, .tls = server.tls()});
  slow.fields = "Connection: close\r\n";
  slow.send(slow.written("GET", "/v1/stats"));
  ASSERT_EQ(slow.read_head().status, 200);
  HttpClient refused({.port = server.http_port(), .tls = false});
  EXPECT_EQ(refused.read_end(), kEnd);
}

// A stream has one subscription.
TEST(HttpLimits, StreamsAreLimitedByConnectionsAlone) {
  Options options = http_options();
  options.max_subscriptions = 1;
  HttpServer server(options);
  std::vector<HttpClient> listeners;
  for (int i = 0; i < 5; ++i) {
    listeners.push_back(server.browse());
    EXPECT_EQ(listeners.back().open_stream("/v1/signals?pattern=a").status, 200);
  }
}

TEST(HttpLimits, WatchersOfEvents) {
  Options options = http_options();
  options.max_watchers = 2;
  HttpServer server(options);
  HttpClient first = server.browse();
  HttpClient second = server.browse();
  ASSERT_EQ(first.open_stream("/v1/events").status, 200);
  ASSERT_EQ(second.open_stream("/v1/events?prefix=a").status, 200);
  HttpClient third = server.browse();
  const HttpReply refused = third.get("/v1/events");
  EXPECT_EQ(shown(refused), R"(429 {"error":"max_watchers"})");
  EXPECT_NE(refused.text("detail").find("--max-watchers"), std::string::npos);
  third.send(third.written("HEAD", "/v1/events"));
  EXPECT_EQ(third.read_reply(true).status, 200) << "which watches nothing";
  first = server.browse();
  const auto deadline = SteadyClock::now() + HttpClient::kPatience;
  while (third = server.browse(), third.open_stream("/v1/events").status != 200) {
    ASSERT_LT(SteadyClock::now(), deadline) << "the first has left";
  }
}

}  // namespace
}  // namespace lockd
