// The calls of the API by the line protocol's command `api`.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

std::string api(std::string_view call, std::string_view json = "") {
  return request("api", call, json);
}

std::string ask_api(LineClient& client, std::string_view call, std::string_view json = "") {
  return client.ask(api(call, json));
}

bool has(const std::string& line, std::string_view part) {
  return line.find(part) != std::string::npos;
}

// The number behind "token": in a grant.
std::string fence_in(const std::string& grant) {
  const std::size_t at = grant.find("\"token\":") + 8;
  return grant.substr(at, grant.find_first_of(",}", at) - at);
}

TEST(LineApi, AHoldLivesByItsLeaseAndNotByTheConnection) {
  LineServer server;
  LineClient other = server.connect();
  std::string grant;
  {
    LineClient client = server.connect();
    grant = ask_api(client, "POST /v1/acquire", R"({"key":"a b","holder":"ann","ttl_ms":60000})");
    EXPECT_TRUE(grant.starts_with(R"(ok 200 {"key":"a b","holder":"ann","token":)")) << grant;
  }
  EXPECT_EQ(other.ask(request("l", "a b", "0")), "timeout");
  const std::string held = ask_api(other, "POST /v1/acquire", R"({"key":"a b","holder":"bob"})");
  EXPECT_TRUE(held.starts_with(R"(ok 409 {"error":"held")")) << held;
  EXPECT_TRUE(has(held, R"("holder":"ann")")) << held;
  const std::string hold = R"({"key":"a b","holder":"ann","token":)" + fence_in(grant) + "}";
  EXPECT_TRUE(ask_api(other, "POST /v1/renew", hold).starts_with("ok 200 "));
  EXPECT_EQ(ask_api(other, "POST /v1/release", hold), R"(ok 200 {"key":"a b","released":true})");
  EXPECT_EQ(masked(other.ask(request("l", "a b", "0"))), "ok <token> 33");
}

TEST(LineApi, AWaitBlocksTheConnectionAndIsGrantedInTurn) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  const std::string token = holder.ask(request("l", "k", "0")).substr(3, 32);
  waiter.send(api("POST /v1/acquire", R"({"key":"k","holder":"w","wait_ms":60000})") +
              request("ping", "", ""));
  EXPECT_EQ(waiter.read_line(200ms), kSilence);
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_TRUE(waiter.read_line().starts_with(R"(ok 200 {"key":"k","holder":"w")"));
  EXPECT_EQ(waiter.read_line(), "ok");
}

TEST(LineApi, WhoLeavesTheQueueLeavesNothingBehind) {
  LineServer server;
  LineClient holder = server.connect();
  const std::string token = holder.ask(request("l", "k", "0")).substr(3, 32);
  {
    LineClient waiter = server.connect();
    waiter.send(api("POST /v1/acquire", R"({"key":"k","holder":"w","wait_ms":60000})"));
    while (!has(ask_api(holder, "GET /v1/locks", R"({"key":"k"})"), R"("waiters":1)")) {
    }
  }
  while (!has(ask_api(holder, "GET /v1/locks", R"({"key":"k"})"), R"("waiters":0)")) {
  }
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
}

TEST(LineApi, ParametersOfAQueryAreMembers) {
  LineServer server;
  LineClient client = server.connect();
  for (const char* key : {"a/1", "a/2", "b/1"}) client.ask(request("l", key, "0"));
  const std::string page = ask_api(client, "GET /v1/locks", R"({"prefix":"a/","limit":1})");
  EXPECT_TRUE(page.starts_with(R"(ok 200 {"locks":[{"kind":"lock","key":"a/)")) << page;
  EXPECT_TRUE(has(page, R"("next":")")) << page;
  EXPECT_FALSE(has(page, "b/1")) << page;
  const std::string all = ask_api(client, "GET /v1/locks");
  EXPECT_TRUE(has(all, "b/1") && has(all, "a/2")) << all;
}

TEST(LineApi, WhatCannotBeDoneHasTheStatusOfHttp) {
  struct Case {
    const char *call, *json, *reply;
  };
  const Case cases[] = {
      {"GET /v1/nothing", "", R"(ok 404 {"error":"not_found")"},
      {"GET /v1/acquire", "", R"(ok 405 {"error":"method_not_allowed","detail":"allowed: POST")"},
      {"DELETE /v1/locks", "", R"(ok 405 {"error":"method_not_allowed","detail":"allowed: GET")"},
      {"GET /metrics", "", R"(ok 406 {"error":"not_acceptable")"},
      {"GET /", "", R"(ok 406 {"error":"not_acceptable")"},
      {"GET", "", R"(ok 400 {"error":"bad_request")"},
      {"GET /v1/locks?limit=1", "", R"(ok 400 {"error":"bad_request")"},
      {"GET /v1/lo%zzcks", "", R"(ok 400 {"error":"bad_request")"},
      {"GET /v1/locks", "[]", R"(ok 400 {"error":"bad_request")"},
      {"GET /v1/locks", R"({"limit":0})", R"(ok 400 {"error":"bad_request","detail":"limit)"},
      {"GET /v1/locks", R"({"limits":1})", R"(ok 400 {"error":"bad_request")"},
      {"POST /v1/acquire", "", R"(ok 400 {"error":"bad_request","detail":"key)"},
      {"POST /v1/acquire", "{", R"(ok 400 {"error":"bad_request")"},
      {"POST /v1/release", R"({"key":"k","holder":"h","token":1})", R"(ok 409 {"error":"expired")"},
  };
  LineServer server;
  LineClient client = server.connect();
  for (const Case& c : cases) {
    const std::string reply = ask_api(client, c.call, c.json);
    EXPECT_TRUE(reply.starts_with(c.reply)) << c.call << " " << c.json << ": " << reply;
  }
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

TEST(LineApi, AnswersAreOneLine) {
  LineServer server;
  LineClient client = server.connect();
  const std::string api_page = ask_api(client, "GET /v1/openapi.json");
  EXPECT_TRUE(api_page.starts_with("ok 200 {") && api_page.ends_with("}"));
  EXPECT_EQ(ask_api(client, "GET /readyz"), R"(ok 200 {"status":"ok"})");
  EXPECT_TRUE(ask_api(client, "GET /v1/overview").starts_with(R"(ok 200 {"version":)"));
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

TEST(LineApi, AnAnswerThatIsTooLongIsRefused) {
  Options options = line_options();
  options.max_locks = 100'000;
  LineServer server(options);
  LineClient client = server.connect();
  std::string many;
  constexpr std::size_t kKeys = 20'000;  // the stats document has some 60 bytes for each
  for (std::size_t i = 0; i < kKeys; ++i) {
    many += request("l", "a key that is quite long/" + std::to_string(i), "0");
  }
  client.send(many);
  client.read_lines(kKeys);
  EXPECT_TRUE(ask_api(client, "GET /v1/stats").starts_with(R"(ok 413 {"error":"too_large")"));
  EXPECT_TRUE(ask_api(client, "GET /v1/locks").starts_with(R"(ok 200 {"locks":[)"));
}

TEST(LineApi, EventsArePushedBetweenLines) {
  LineServer server;
  LineClient watcher = server.connect();
  LineClient client = server.connect();
  EXPECT_EQ(ask_api(watcher, "GET /v1/events", R"({"prefix":"w/"})"), "ok 200 {}");
  client.ask(request("l", "other", "0"));
  client.ask(request("l", "w/1", "0"));
  const std::string event = watcher.read_line();
  EXPECT_TRUE(event.starts_with(R"(event {"event":"granted","at_unix_ms":)")) << event;
  EXPECT_TRUE(has(event, R"("key":"w/1")")) << event;
  EXPECT_EQ(watcher.ask(request("ping", "", "")), "ok");
  EXPECT_TRUE(ask_api(watcher, "GET /v1/events").starts_with(R"(ok 409 {"error":)"));
  EXPECT_TRUE(ask_api(watcher, "GET /v1/signals", R"({"pattern":"a"})").starts_with("ok 409 "));
}

TEST(LineApi, SignalsArePushedAsEvents) {
  LineServer server;
  LineClient listener = server.connect();
  LineClient publisher = server.connect();
  EXPECT_EQ(ask_api(listener, "GET /v1/signals", R"({"pattern":"a.*"})"), "ok 200 {}");
  EXPECT_EQ(listener.ask(request("listen", "b", "")), "error");
  EXPECT_EQ(ask_api(publisher, "POST /v1/signals/a.b", R"({"payload":"hello"})"),
            R"(ok 200 {"delivered":1})");
  EXPECT_EQ(listener.read_line(), R"(event {"event":"sig","channel":"a.b","payload":"hello"})");
  EXPECT_EQ(publisher.ask(request("listen", "c", "")), "ok");
  EXPECT_TRUE(ask_api(publisher, "GET /v1/signals", R"({"pattern":"a"})").starts_with("ok 409 "));
}

TEST(LineApi, TheKeyLineIsANameAndTheArgumentMayBeLong) {
  LineServer server;
  EXPECT_EQ(server.connect().ask(api("")), "error");
  LineClient client = server.connect();
  const std::string fits = "{" + std::string(65'534, ' ') + "}";
  EXPECT_TRUE(ask_api(client, "GET /v1/locks", fits).starts_with("ok 200 "));
  EXPECT_EQ(ask_api(client, "GET /v1/locks", fits + " "), "error");
}

}  // namespace
}  // namespace lockd
