// Locks over HTTP: acquire, renew, release and fence, with every refusal that a holder can meet.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// What a grant of `k` to `a` looks like.
std::string grant_for(std::int64_t ttl_ms) {
  return R"(200 {"key":"k","holder":"a","token":<token>,"ttl_ms":)" + std::to_string(ttl_ms) +
         R"(,"expires_in_ms":<ms>,"expires_at_unix_ms":<time>})";
}
const std::string kGrant = grant_for(33'000);

std::int64_t unix_ms_now() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

TEST(HttpReservations, ALockIsTakenKeptAndGivenBack) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply grant = client.post("/v1/acquire", hold_json("k", "a"));
  EXPECT_EQ(shown(grant), kGrant);
  EXPECT_EQ(grant.field("Content-Type"), "application/json");
  EXPECT_EQ(grant.field("Cache-Control"), "no-store");
  EXPECT_EQ(grant.field("Connection"), "");
  const std::int64_t token = grant.number("token");
  const HttpReply renewed = client.post("/v1/renew", hold_json("k", "a", token));
  EXPECT_EQ(shown(renewed), kGrant);
  EXPECT_EQ(renewed.number("token"), token);
  EXPECT_EQ(shown(client.post("/v1/release", hold_json("k", "a", token))),
            R"(200 {"key":"k","released":true})");
}

TEST(HttpReservations, AHeldKeyIsRefusedWithWhoHoldsIt) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply grant = client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":60000)"));
  for (const char* wait : {"", R"("wait_ms":0)"}) {
    const HttpReply held = client.post("/v1/acquire", hold_json("k", "b", wait));
    EXPECT_EQ(shown(held), R"(409 {"error":"held",)" + held_by("a", "exclusive") +
                               R"(,"holders":1,"waiters":0})");
    EXPECT_FALSE(held.text("detail").empty());
    const auto other = held.json().at("held_by").as_object();
    EXPECT_EQ(other.at("fence").as_int64(), grant.number("token"));
    const std::int64_t expires = other.at("expires_at_unix_ms").as_int64();
    EXPECT_NEAR(static_cast<double>(expires),
                static_cast<double>(grant.number("expires_at_unix_ms")), 10'000);
    EXPECT_NEAR(static_cast<double>(other.at("since_unix_ms").as_int64()),
                static_cast<double>(expires - 60'000), 2);
  }
}

TEST(HttpReservations, TheLeaseEndsWhenItSays) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::int64_t before = unix_ms_now();
  const HttpReply grant = client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":60000)"));
  const std::int64_t after = unix_ms_now();
  EXPECT_GE(grant.number("expires_at_unix_ms"), before + 60'000 - 1);
  EXPECT_LE(grant.number("expires_at_unix_ms"), after + 60'000);
  // For a client whose clock is off: no more than what was left when it was told.
  EXPECT_EQ(grant.number("ttl_ms"), 60'000);
  EXPECT_LE(grant.number("expires_in_ms"), 60'000);
  EXPECT_GE(grant.number("expires_in_ms"), 60'000 - (after - before) - 1);
}

TEST(HttpReservations, TheHolderGetsItsOwnGrantBack) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient other = server.browse();
  const HttpReply first = client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":20000)"));
  const HttpReply second = other.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":90000)"));
  EXPECT_EQ(shown(second), grant_for(90'000));
  EXPECT_EQ(second.number("token"), first.number("token"));
  EXPECT_GT(second.number("expires_at_unix_ms"), first.number("expires_at_unix_ms") + 60'000);
  // Its ttl is the new one, also for a renewal that names none.
  const HttpReply renewed = other.post("/v1/renew", hold_json("k", "a", first.number("token")));
  EXPECT_GE(renewed.number("expires_at_unix_ms"), second.number("expires_at_unix_ms") - 1);
}

TEST(HttpReservations, WhoHoldsNothingIsTold) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::int64_t first =
      client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":60000)")).number("token");
  for (const char* call : {"/v1/renew", "/v1/release"}) {
    SCOPED_TRACE(call);
    EXPECT_EQ(shown(client.post(call, hold_json("never", "a", 1))), R"(409 {"error":"expired"})");
    EXPECT_EQ(shown(client.post(call, hold_json("k", "b", first))),
              R"(409 {"error":"not_holder"})");
    EXPECT_EQ(shown(client.post(call, hold_json("k", "a", first + 1))),
              R"(409 {"error":"not_holder"})");
  }
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", first)).status, 200);
  for (const char* call : {"/v1/renew", "/v1/release"}) {
    EXPECT_EQ(shown(client.post(call, hold_json("k", "a", first))), R"(409 {"error":"expired"})");
  }
  const std::int64_t second = client.post("/v1/acquire", hold_json("k", "a")).number("token");
  EXPECT_GT(second, first);
  for (const char* call : {"/v1/renew", "/v1/release"}) {
    EXPECT_EQ(shown(client.post(call, hold_json("k", "a", first))),
              R"(409 {"error":"stale_token"})");
  }
  EXPECT_EQ(client.post("/v1/release", hold_json("k", "a", second)).status, 200);
}

TEST(HttpReservations, TheFenceIsThatOfTheGrantInForceOrTheLast) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::int64_t token = client.post("/v1/acquire", hold_json("k", "a")).number("token");
  const HttpReply held = client.get("/v1/fence?key=k");
  EXPECT_EQ(shown(held), R"(200 {"key":"k","held":true,"token":<token>})");
  EXPECT_EQ(held.number("token"), token);
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", token)).status, 200);
  const HttpReply released = client.get("/v1/fence?key=k");
  EXPECT_EQ(shown(released), R"(200 {"key":"k","held":false,"token":<token>})");
  EXPECT_GE(released.number("token"), token);
  const HttpReply never = client.get("/v1/fence?key=never");
  EXPECT_EQ(never.status, 200);
  EXPECT_EQ(never.text("key"), "never");
  EXPECT_NE(never.body.find(R"("held":false)"), std::string::npos);
  // Nothing larger can have been granted: the next grant is.
  EXPECT_GT(client.post("/v1/acquire", hold_json("never", "a")).number("token"),
            never.number("token"));
}

// An HTTP hold lives by its lease alone.
TEST(HttpReservations, AConnectionThatClosesReleasesNothing) {
  HttpServer server;
  HttpClient client = server.browse();
  {
    HttpClient gone = server.browse();
    ASSERT_EQ(gone.post("/v1/acquire", hold_json("k", "a")).status, 200);
    ASSERT_EQ(gone.post("/v1/acquire", hold_json("j", "a")).status, 200);
    gone.reset();
  }
  EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "b")).status, 409);
  EXPECT_EQ(client.post("/v1/acquire", hold_json("j", "b")).status, 409);
}

TEST(HttpReservations, AHoldOfALineClientIsOutOfReach) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  const std::string token = token_of(line.ask(request("l", "k", "0 60")));
  const HttpReply held = client.post("/v1/acquire", hold_json("k", "b"));
  EXPECT_EQ(shown(held), R"(409 {"error":"held",)" + held_by("tcp:<id>", "exclusive") +
                             R"(,"holders":1,"waiters":0})");
  const auto other = held.json().at("held_by").as_object();
  const std::int64_t fence = other.at("fence").as_int64();
  EXPECT_EQ(std::stoll(token.substr(0, 16), nullptr, 16), fence);
  EXPECT_EQ(held.body.find(token.substr(16)), std::string::npos);  // its secret
  const std::string holder(other.at("holder").as_string());
  for (const std::string& name : {holder, token, token.substr(16), std::string("b")}) {
    for (const char* call : {"/v1/renew", "/v1/release"}) {
      EXPECT_EQ(shown(client.post(call, hold_json("k", name, fence))),
                R"(409 {"error":"not_holder"})")
          << call << " " << name;
    }
    EXPECT_EQ(client.post("/v1/acquire", hold_json("k", name)).status, 409) << name;
  }
  EXPECT_EQ(line.ask(request("r", "k", token)), "ok");
}

TEST(HttpReservations, AHoldByNameIsOutOfReachOfLineClients) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  const std::int64_t token = client.post("/v1/acquire", hold_json("k", "a")).number("token");
  std::array<char, 17> fence{};
  std::snprintf(fence.data(), fence.size(), "%016llx", static_cast<unsigned long long>(token));
  for (const char* secret : {"0000000000000000", "0000000000000001", "ffffffffffffffff"}) {
    EXPECT_EQ(line.ask(request("r", "k", std::string(fence.data()) + secret)), "error");
    EXPECT_EQ(line.ask(request("n", "k", std::string(fence.data()) + secret)), "error");
  }
  EXPECT_EQ(line.ask(request("l", "k", "0")), "timeout");
  EXPECT_EQ(client.post("/v1/release", hold_json("k", "a", token)).status, 200);
}

}  // namespace
}  // namespace lockd
