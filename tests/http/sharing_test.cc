// Shared locks and several permits over HTTP: who fits beside whom, and where it is shown.
#include <gtest/gtest.h>

#include <string>

#include "support/http_client.h"

namespace lockd {
namespace {

constexpr std::string_view kShared = R"("mode":"shared")";

HttpReply take_lock(HttpClient& client, std::string_view holder, std::string_view more = {}) {
  return client.post("/v1/acquire", hold_json("k", holder, more));
}

HttpReply take_permits(HttpClient& client, std::string_view holder, int count,
                       std::string_view more = {}) {
  std::string members = R"("limit":5,"permits":)" + std::to_string(count);
  if (!more.empty()) members += "," + std::string(more);
  return client.post("/v1/semaphores/acquire", hold_json("s", holder, members));
}

void begin_wait(HttpClient& waiter, std::string_view path, std::string_view body) {
  waiter.send(waiter.written("POST", path, body));
}

TEST(HttpSharing, WhoSharesHoldsTogetherAndARefusalSaysHowManyThereAre) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply a = take_lock(client, "a", kShared);
  EXPECT_EQ(shown(a), R"(200 {"key":"k","holder":"a","token":<token>,"ttl_ms":33000,)"
                      R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  const HttpReply b = take_lock(client, "b", kShared);
  EXPECT_GT(b.number("token"), a.number("token"));
  EXPECT_EQ(shown(take_lock(client, "c")),
            R"(409 {"error":"held",)" + held_by("b", "shared") + R"(,"holders":2,"waiters":0})");
  EXPECT_EQ(
      shown(take_lock(client, "c", R"("wait_ms":1)")),
      R"(409 {"error":"wait_timeout",)" + held_by("b", "shared") + R"(,"holders":2,"waiters":0})");
  ASSERT_EQ(take_lock(client, "a", R"("mode":"shared","ttl_ms":60000)").status, 200);
  EXPECT_EQ(shown(take_lock(client, "c")),
            R"(409 {"error":"held",)" + held_by("a", "shared") + R"(,"holders":2,"waiters":0})")
      << "the lease of a ends last";
  EXPECT_EQ(shown(take_lock(client, "b")),
            R"(409 {"error":"mode_mismatch",)" + held_by("a", "shared") + "}");
  EXPECT_EQ(client.get("/v1/fence?key=k").number("token"), b.number("token"));
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "b", b.number("token"))).status, 200);
  EXPECT_EQ(client.get("/v1/fence?key=k").number("token"), b.number("token"));
  ASSERT_EQ(client.post("/v1/renew", hold_json("k", "a", a.number("token"))).status, 200);
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", a.number("token"))).status, 200);
  EXPECT_EQ(take_lock(client, "c", R"("mode":"exclusive")").status, 200);
}

TEST(HttpSharing, PermitsAreTakenTogetherAndARefusalSaysHowManyAreInUse) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply a = take_permits(client, "a", 3);
  EXPECT_EQ(shown(a), R"(200 {"key":"s","holder":"a","token":<token>,"ttl_ms":33000,)"
                      R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  EXPECT_EQ(shown(take_permits(client, "b", 3)),
            R"(409 {"error":"held",)" + held_by("a") +
                R"(,"limit":5,"permits":3,"holders":1,"waiters":0})");
  EXPECT_EQ(take_permits(client, "b", 2).status, 200);
  EXPECT_EQ(shown(take_permits(client, "c", 1, R"("wait_ms":1)")),
            R"(409 {"error":"wait_timeout",)" + held_by("b") +
                R"(,"limit":5,"permits":5,"holders":2,"waiters":0})");
  EXPECT_EQ(take_permits(client, "a", 3).number("token"), a.number("token"));
  const std::string mismatch = R"(409 {"error":"permits_mismatch",)" + held_by("a") + "}";
  EXPECT_EQ(shown(take_permits(client, "a", 2)), mismatch);
  EXPECT_EQ(shown(take_permits(client, "a", 4, R"("wait_ms":60000)")), mismatch);
  ASSERT_EQ(client.post("/v1/semaphores/release", hold_json("s", "a", a.number("token"))).status,
            200);
  EXPECT_EQ(take_permits(client, "c", 3).status, 200);
}

TEST(HttpSharing, WhatIsNoModeOrNoNumberOfPermitsIsRefused) {
  HttpServer server;
  HttpClient client = server.browse();
  const auto expect = [](const HttpReply& reply, std::string_view detail) {
    EXPECT_EQ(shown(reply), R"(400 {"error":"bad_request"})");
    EXPECT_NE(reply.text("detail").find(detail), std::string::npos) << reply.body;
  };
  for (const char* mode : {R"("Shared")", R"("")", R"("write")"}) {
    expect(take_lock(client, "a", R"("mode":)" + std::string(mode)),
           "mode must be exclusive or shared");
  }
  expect(take_lock(client, "a", R"("mode":1)"), "mode must be a text");
  expect(take_lock(client, "a", R"("permits":1)"), "unknown member: permits");
  for (const int count : {-1, 0, 6}) {
    expect(take_permits(client, "a", count), "permits must be a whole number from 1 to 5");
  }
  expect(take_permits(client, "a", 1, kShared), "unknown member: mode");
  EXPECT_EQ(client.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

// What is usual is left out: a lock held alone, one permit.
TEST(HttpSharing, ListsShowModeAndPermitsOfHoldsAndPlaces) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient waiter = server.browse();
  LineClient line = server.connect();
  ASSERT_EQ(take_lock(client, "a", R"("mode":"shared","ttl_ms":60000)").status, 200);
  ASSERT_EQ(line.ask(request("e", "k", "")), "queued");
  begin_wait(waiter, "/v1/acquire", hold_json("k", "b", R"("mode":"shared","wait_ms":60000)"));
  ASSERT_TRUE(await_line(client, "k", 2));
  EXPECT_EQ(shown(client.get("/v1/locks?key=k")),
            R"(200 {"locks":[{"kind":"lock","key":"k","limit":1,"holders":1,"waiters":2,)"
            R"("token":<token>,"holds":[{"holder":"a","token":<token>,"mode":"shared",)"
            R"("held_ms":<ms>,"ttl_ms":60000,"expires_in_ms":<ms>,"expires_at_unix_ms":<time>}],)"
            R"("queue":[{"holder":"tcp:<id>","waited_ms":<ms>},)"
            R"({"holder":"b","mode":"shared","waited_ms":<ms>}]}]})");

  ASSERT_EQ(take_permits(client, "a", 3, R"("ttl_ms":60000)").status, 200);
  ASSERT_EQ(line.ask(request("se", "s", "5 60 4")), "queued");
  EXPECT_EQ(shown(client.get("/v1/locks?key=s")),
            R"(200 {"locks":[{"kind":"semaphore","key":"s","limit":5,"holders":1,"permits":3,)"
            R"("waiters":1,"token":<token>,"holds":[{"holder":"a","token":<token>,"permits":3,)"
            R"("held_ms":<ms>,"ttl_ms":60000,"expires_in_ms":<ms>,"expires_at_unix_ms":<time>}],)"
            R"("queue":[{"holder":"tcp:<id>","permits":4,"waited_ms":<ms>}]}]})");
}

TEST(HttpSharing, StatsShowThemOverBothProtocols) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  ASSERT_EQ(take_lock(client, "a", kShared).status, 200);
  ASSERT_EQ(take_lock(client, "b", kShared).status, 200);
  ASSERT_EQ(take_permits(client, "a", 3).status, 200);
  ASSERT_EQ(take_permits(client, "b", 1).status, 200);
  for (const std::string& stats :
       {client.get("/v1/stats").body, line.ask(request("stats", "", ""))}) {
    EXPECT_NE(stats.find(R"("waiters":0,"mode":"shared","holders":2)"), std::string::npos) << stats;
    EXPECT_NE(stats.find(R"({"key":"s","limit":5,"holders":2,"waiters":0,"permits":4})"),
              std::string::npos)
        << stats;
  }
}

TEST(HttpSharing, EventsAndTheHistoryShowThem) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient watcher = server.browse();
  watcher.open_stream("/v1/events");
  const std::string granted =
      R"({"at_unix_ms":<time>,"kind":"lock","key":"k","holder":"a","token":<token>,)"
      R"("mode":"shared","limit":1,"holders":1,"waiters":0,"ttl_ms":33000,"waited_ms":<ms>})";
  ASSERT_EQ(take_lock(client, "a", kShared).status, 200);
  EXPECT_EQ(shown(watcher.read_event()), "granted " + granted);
  EXPECT_EQ(shown(client.get("/v1/history?key=k")),
            R"(200 {"events":[{"event":"granted",)" + granted.substr(1) + "]}");

  const std::int64_t token = take_permits(client, "a", 3).number("token");
  EXPECT_NE(shown(watcher.read_event()).find(R"("token":<token>,"permits":3,"limit":5)"),
            std::string::npos);
  ASSERT_EQ(client.post("/v1/semaphores/release", hold_json("s", "a", token)).status, 200);
  const std::string released = client.get("/v1/history?key=s&limit=1").body;
  EXPECT_NE(released.find(R"("event":"released")"), std::string::npos) << released;
  EXPECT_NE(released.find(R"("permits":3)"), std::string::npos) << released;
}

TEST(HttpSharing, AnAdminSeesWhatWasReleased) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(take_lock(client, "a", kShared).status, 200);
  ASSERT_EQ(take_lock(client, "b", kShared).status, 200);
  EXPECT_EQ(shown(client.post("/v1/admin/release", R"({"key":"k","all":true,"reason":"r"})")),
            R"(200 {"key":"k","released":[)"
            R"({"holder":"a","token":<token>,"mode":"shared","held_ms":<ms>},)"
            R"({"holder":"b","token":<token>,"mode":"shared","held_ms":<ms>}]})");
}

}  // namespace
}  // namespace lockd
