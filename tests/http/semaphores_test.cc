// Semaphores over HTTP.
#include <gtest/gtest.h>

#include <string>

#include "support/http_client.h"

namespace lockd {
namespace {

HttpReply take(HttpClient& client, std::string_view holder, std::string_view more = {}) {
  const std::string members = R"("limit":2)" + (more.empty() ? "" : "," + std::string(more));
  return client.post("/v1/semaphores/acquire", hold_json("s", holder, members));
}

TEST(HttpSemaphores, APermitIsTakenKeptAndGivenBack) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply a = take(client, "a");
  EXPECT_EQ(shown(a), R"(200 {"key":"s","holder":"a","token":<token>,"ttl_ms":33000,)"
                      R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  const HttpReply b = take(client, "b");
  EXPECT_GT(b.number("token"), a.number("token"));
  const HttpReply renewed = client.post(
      "/v1/semaphores/renew", hold_json("s", "a", a.number("token"), R"("ttl_ms":9000000)"));
  EXPECT_EQ(renewed.number("token"), a.number("token"));
  EXPECT_GT(renewed.number("expires_at_unix_ms"), a.number("expires_at_unix_ms") + 8'000'000);
  EXPECT_EQ(shown(client.post("/v1/semaphores/release", hold_json("s", "b", b.number("token")))),
            R"(200 {"key":"s","released":true})");
  EXPECT_GT(take(client, "c").number("token"), b.number("token"));
}

TEST(HttpSemaphores, WhenAllPermitsAreTakenTheRefusalCounts) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(take(client, "a").status, 200);
  ASSERT_EQ(take(client, "b").status, 200);
  EXPECT_EQ(shown(take(client, "c")), R"(409 {"error":"held",)" + held_by("b") +
                                          R"(,"limit":2,"permits":2,"holders":2,"waiters":0})");
  EXPECT_EQ(shown(take(client, "c", R"("wait_ms":1)")),
            R"(409 {"error":"wait_timeout",)" + held_by("b") +
                R"(,"limit":2,"permits":2,"holders":2,"waiters":0})");
}

TEST(HttpSemaphores, TheLimitIsThatOfTheFirst) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply a = take(client, "a");
  for (const char* limit : {R"("limit":1)", R"("limit":3)", R"("limit":2147483647)"}) {
    EXPECT_EQ(shown(client.post("/v1/semaphores/acquire", hold_json("s", "b", limit))),
              R"(409 {"error":"limit_mismatch",)" + held_by("a") + R"(,"limit":2})");
  }
  LineClient line = server.connect();
  EXPECT_EQ(line.ask(request("sl", "s", "0 3")), "error_limit_mismatch");
  EXPECT_EQ(masked(line.ask(request("sl", "s", "0 2"))), "ok <token> 33");
}

TEST(HttpSemaphores, APermitOfALineClientIsOutOfReach) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  const std::string token = token_of(line.ask(request("sl", "s", "0 2")));
  const std::int64_t fence = std::stoll(token.substr(0, 16), nullptr, 16);
  for (const char* call : {"/v1/semaphores/renew", "/v1/semaphores/release"}) {
    EXPECT_EQ(shown(client.post(call, hold_json("s", "a", fence))),
              R"(409 {"error":"not_holder"})");
  }
  const std::int64_t named = take(client, "a").number("token");
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(named));
  EXPECT_EQ(line.ask(request("sr", "s", std::string(text.data()) + "0000000000000000")), "error");
  EXPECT_EQ(line.ask(request("sr", "s", token)), "ok");
}

TEST(HttpSemaphores, AWaitingCallIsGranted) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient waiter = server.browse();
  const std::int64_t a = take(client, "a").number("token");
  ASSERT_EQ(take(client, "b").status, 200);
  waiter.send(waiter.written("POST", "/v1/semaphores/acquire",
                             hold_json("s", "c", R"("limit":2,"wait_ms":60000)")));
  ASSERT_TRUE(await_line(client, "s", 1));
  EXPECT_EQ(shown(take(client, "d")), R"(409 {"error":"held",)" + held_by("b") +
                                          R"(,"limit":2,"permits":2,"holders":2,"waiters":1})");
  ASSERT_EQ(client.post("/v1/semaphores/release", hold_json("s", "a", a)).status, 200);
  const HttpReply grant = waiter.read_reply();
  EXPECT_EQ(shown(grant), R"(200 {"key":"s","holder":"c","token":<token>,"ttl_ms":33000,)"
                          R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  EXPECT_GT(grant.number("token"), a);
}

}  // namespace
}  // namespace lockd
