// Who may call: bearer tokens, protected mode, and whose pages may.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/http/routes.h"
#include "support/http_client.h"
#include "support/outer_addresses.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

const std::vector<const char*> kHealthCalls = {"/livez", "/readyz", "/leader"};

Options secret_options() {
  Options options = http_options();
  options.secret = options.auth_token = "open sesame";
  return options;
}

HttpReply ask_with(HttpClient& client, const std::string& fields, std::string_view target) {
  client.fields = fields;
  return client.get(target);
}

TEST(HttpAuth, TheRightTokenOpens) {
  HttpServer server(secret_options());
  HttpClient client = server.browse();
  for (const char* scheme : {"Bearer", "bearer", "BEARER", "bEaReR"}) {
    const std::string fields = "Authorization: " + std::string(scheme) + " open sesame\r\n";
    EXPECT_EQ(ask_with(client, fields, "/v1/stats").status, 200) << scheme;
  }
  EXPECT_EQ(ask_with(client, "authorization:Bearer open sesame  \r\n", "/v1/stats").status, 200);
}

TEST(HttpAuth, AnythingElseIsRefused) {
  HttpServer server(secret_options());
  const char* const all[] = {
      "",
      "Authorization:\r\n",
      "Authorization: Bearer \r\n",
      "Authorization: Bearer wrong\r\n",
      "Authorization: Bearer open sesame!\r\n",
      "Authorization: Bearer open sesam\r\n",
      "Authorization: Bearer Open Sesame\r\n",
      "Authorization: open sesame\r\n",
      "Authorization: Basic open sesame\r\n",
      "Authorization: Beareropen sesame\r\n",
      "X-Authorization: Bearer open sesame\r\n",
      "Cookie: token=open sesame\r\n",
  };
  std::vector<HttpClient> clients;  // their pauses pass together
  for (const char* fields : all) {
    clients.push_back(server.browse());
    clients.back().fields = fields;
    clients.back().send(clients.back().written("GET", "/v1/stats"));
  }
  for (HttpClient& client : clients) {
    SCOPED_TRACE(client.fields);
    const HttpReply reply = client.read_reply();
    EXPECT_EQ(shown(reply), R"(401 {"error":"unauthorized"})");
    EXPECT_EQ(reply.field("WWW-Authenticate"), "Bearer");
    EXPECT_EQ(reply.body.find("sesame"), std::string::npos);
  }
}

// Everything but the health calls, and the page, which is what asks for the token. Each call comes
// from an address of its own: the pauses of one address would grow.
TEST(HttpAuth, EveryCallNeedsIt) {
  HttpServer server(secret_options());
  std::vector<std::pair<HttpClient, const Route*>> calls;
  for (const Route& route : kRoutes) {
    const std::string own_address = "127.0.0." + std::to_string(calls.size() + 2);
    calls.emplace_back(
        HttpClient({.port = server.http_port(), .tls = server.tls(), .from = own_address}), &route);
    HttpClient& client = calls.back().first;
    client.send(client.written(route.method == HttpMethod::post ? "POST" : "GET", route.path));
  }
  for (auto& [client, route] : calls) {
    const bool is_health = route->call == HttpCall::live || route->call == HttpCall::ready ||
                           route->call == HttpCall::leader;
    EXPECT_EQ(client.read_reply().status, is_health ? 200 : 401) << route->path;
  }
  HttpClient client = server.browse();
  EXPECT_EQ(client.get("/nowhere").status, 401);
  if (find_web_file("/") != nullptr) {
    EXPECT_EQ(client.get("/").status, 200);
  }
}

TEST(HttpAuth, ARefusedCallDoesNothing) {
  HttpServer server(secret_options());
  HttpClient client = server.browse();
  EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 401);
  HttpClient other = server.browse();
  other.fields = "Authorization: Bearer open sesame\r\n";
  EXPECT_EQ(other.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

const std::string kAcquireHead = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n";

// Nobody waits for the body of one who is not let in, nor is it told to send it.
TEST(HttpAuth, ARefusalComesBeforeTheBody) {
  HttpServer server(secret_options());
  for (const char* announced :
       {"Content-Length: 1000000\r\n\r\n", "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n"}) {
    SCOPED_TRACE(announced);
    HttpClient client = server.browse();
    client.send(kAcquireHead + announced);
    const HttpReply reply = client.read_reply();
    EXPECT_EQ(shown(reply), R"(401 {"error":"unauthorized"})");
    EXPECT_EQ(reply.field("Connection"), "close");
    EXPECT_EQ(client.read_end(), kEnd);
  }
}

// However much of the body has come by then.
TEST(HttpAuth, ARefusalIsHeardOverTheBody) {
  HttpServer server(secret_options());
  HttpClient client = server.browse();
  std::thread sender([&] {
    client.send(kAcquireHead + "Content-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'x'));
  });
  EXPECT_EQ(client.read_reply().status, 401);
  sender.join();
}

TEST(HttpAuth, WithoutABodyTheConnectionStays) {
  HttpServer server(secret_options());
  HttpClient client = server.browse();
  EXPECT_EQ(client.get("/v1/stats").status, 401);
  client.send(kAcquireHead + "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 401);
  EXPECT_EQ(ask_with(client, "Authorization: Bearer open sesame\r\n", "/v1/stats").status, 200);
}

// Health, the page and a browser's question are no attempts, and are not delayed.
TEST(HttpAuth, ARefusalComesAfterAPause) {
  HttpServer server(secret_options());
  HttpClient client = server.browse();
  EXPECT_EQ(client.ask("OPTIONS", "/v1/stats").status, 204);
  const auto asked = SteadyClock::now();
  client.send(client.written("GET", "/v1/stats") + client.written("GET", "/livez"));
  EXPECT_EQ(client.read_reply().status, 401);
  EXPECT_GE(SteadyClock::now(), asked + 100ms);
  EXPECT_EQ(client.read_reply().status, 200) << "what stood behind it is answered";
}

class HttpProtectedMode : public testing::Test {
 protected:
  static Options open_options() {
    Options options = http_options();
    options.http_addr->host = "";
    return options;
  }
  void SetUp() override {
    if (addresses_.empty()) GTEST_SKIP() << "this machine has no address but loopback";
  }
  const std::vector<std::string> addresses_ = outer_addresses();
};

TEST_F(HttpProtectedMode, OthersHearOfHealthAndNothingElse) {
  HttpServer server(open_options());
  HttpClient inside = server.browse();
  EXPECT_EQ(inside.get("/v1/stats").status, 200);
  for (const std::string& address : addresses_) {
    SCOPED_TRACE(address);
    HttpClient outside = server.browse(address);
    if (!outside.connected()) continue;  // of a family that the server does not listen on
    for (const char* path : kHealthCalls) EXPECT_EQ(outside.get(path).status, 200) << path;
    for (const char* path : {"/v1/stats", "/v1/locks", "/metrics", "/", "/nowhere", "/v1/events"}) {
      const HttpReply reply = outside.get(path);
      EXPECT_EQ(shown(reply), R"(403 {"error":"protected_mode"})") << path;
      EXPECT_NE(reply.text("detail").find("--http-addr"), std::string::npos);
    }
    EXPECT_EQ(outside.post("/v1/acquire", hold_json("k", "evil")).status, 403);
  }
  EXPECT_EQ(inside.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

TEST_F(HttpProtectedMode, AHostOrATokenEndsIt) {
  Options with_host = http_options();
  with_host.http_addr->host = "0.0.0.0";
  Options with_token = open_options();
  with_token.secret = with_token.auth_token = "sesame";
  for (const Options& options : {with_host, with_token}) {
    HttpServer server(options);
    for (const std::string& address : addresses_) {
      SCOPED_TRACE(address);
      HttpClient outside = server.browse(address);
      if (!outside.connected()) continue;
      outside.fields = "Authorization: Bearer sesame\r\n";
      EXPECT_EQ(outside.get("/v1/stats").status, 200);
    }
  }
}

// A page elsewhere may have its own name point here: the browser takes this server for that page's.
TEST(HttpHost, InProtectedModeItMustBeOurs) {
  Options options = http_options();
  options.http_addr->host = "";
  HttpServer server(options);
  HttpClient client = server.browse();
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:80", "[::1]:80",
                           "10.1.2.3", "my.localhost"}) {
    client.host = host;
    EXPECT_EQ(client.get("/v1/stats").status, 200) << host;
  }
  for (const char* host : {"example.com", "example.com:8080", "localhost.example.com", "a",
                           "127.0.0.1.example.com", "1.2.3.4.5"}) {
    client.host = host;
    EXPECT_EQ(shown(client.get("/v1/stats")), R"(403 {"error":"protected_mode"})") << host;
    EXPECT_EQ(client.get("/livez").status, 200) << host;
  }
  client.send("GET /v1/stats HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");  // which needs no host
  EXPECT_EQ(client.read_reply().status, 200);
}

// Naming loopback is no less safe than naming no host.
TEST(HttpHost, OverLoopbackItMustBeOurs) {
  Options everywhere = http_options();
  everywhere.http_addr->host = "0.0.0.0";
  for (const Options& options : {http_options(), everywhere}) {
    HttpServer server(options);
    HttpClient client = server.browse();
    for (const char* host : {"localhost", "127.0.0.1:80", "[::1]:80", "my.localhost:1"}) {
      client.host = host;
      EXPECT_EQ(client.get("/v1/stats").status, 200) << host;
    }
    for (const char* host : {"example.com", "localhost.example.com:8080"}) {
      client.host = host;
      const HttpReply reply = client.get("/v1/stats");
      EXPECT_EQ(shown(reply), R"(403 {"error":"foreign_host"})") << host;
      EXPECT_NE(reply.text("detail").find("--http-allow-host"), std::string::npos);
      EXPECT_EQ(client.ask("POST", "/v1/acquire").status, 403) << host;
      EXPECT_EQ(client.get("/").status, 403) << host;
      for (const char* path : kHealthCalls) EXPECT_EQ(client.get(path).status, 200) << path;
    }
  }
}

TEST(HttpHost, NamesThatWereGivenAreOurs) {
  Options options = http_options();
  options.http_allow_host = {"locks.example", "b.example"};
  HttpServer named(options);
  options.http_addr->host = "";
  HttpServer in_protected_mode(options);
  for (HttpServer* server : {&named, &in_protected_mode}) {
    HttpClient client = server->browse();
    for (const char* host : {"locks.example", "Locks.Example:443", "b.example", "localhost"}) {
      client.host = host;
      EXPECT_EQ(client.get("/v1/stats").status, 200) << host;
    }
    for (const char* host : {"example", "a.locks.example", "locks.example.evil"}) {
      client.host = host;
      EXPECT_EQ(client.get("/v1/stats").status, 403) << host;
    }
  }
  options.http_allow_host = {"*"};
  HttpServer any(options);
  HttpClient client = any.browse();
  client.host = "example.com";
  EXPECT_EQ(client.get("/v1/stats").status, 200);
}

TEST(HttpHost, WithATokenItMayBeAny) {
  HttpServer server(secret_options());
  HttpClient client = server.browse();
  client.host = "example.com";
  EXPECT_EQ(ask_with(client, "Authorization: Bearer open sesame\r\n", "/v1/stats").status, 200);
}

TEST(HttpHost, FromOtherMachinesItMayBeAny) {
  Options options = http_options();
  options.http_addr->host = "0.0.0.0";
  HttpServer server(options);
  for (const std::string& address : outer_addresses()) {
    HttpClient outside = server.browse(address);
    if (!outside.connected()) continue;  // of a family that the server does not listen on
    outside.host = "example.com";
    EXPECT_EQ(outside.get("/v1/stats").status, 200) << address;
  }
}

std::string own_origin() { return tests_use_tls() ? "https://localhost" : "http://localhost"; }

TEST(HttpOrigin, ThePagesOwnCallsAreServed) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply reply = ask_with(client, "Origin: " + own_origin() + "\r\n", "/v1/stats");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Access-Control-Allow-Origin"), "");
}

TEST(HttpOrigin, AForeignOneIsRefused) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const std::string& origin :
       {std::string("http://evil.example"), std::string("null"), std::string(), own_origin() + ":1",
        own_origin() + ".evil.example", own_origin() + "/",
        std::string(tests_use_tls() ? "http://localhost" : "https://localhost")}) {
    SCOPED_TRACE(origin);
    client.fields = "Origin: " + origin + "\r\n";
    HttpClient evil = server.browse();
    evil.fields = client.fields;
    const HttpReply reply = evil.post("/v1/acquire", hold_json("k", "evil"));
    EXPECT_EQ(shown(reply), R"(403 {"error":"foreign_origin"})");
    EXPECT_EQ(reply.field("Access-Control-Allow-Origin"), "");
    EXPECT_EQ(client.ask("OPTIONS", "/v1/acquire").status, 403);
    EXPECT_EQ(client.get("/livez").status, 200);
  }
  client.fields = "";
  EXPECT_EQ(client.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

// What a page elsewhere has a browser load, as an image or by a form, has no origin.
TEST(HttpOrigin, WhatAnotherSiteAsksIsRefused) {
  Options options = http_options();
  options.http_allow_origin = {"https://a.example"};
  HttpServer server(options);
  HttpClient client = server.browse();
  const std::string cross = "sec-fetch-site: Cross-Site\r\n";
  for (const char* target : {"/v1/stats", "/v1/events", "/metrics", "/nowhere"}) {
    EXPECT_EQ(shown(ask_with(client, cross, target)), R"(403 {"error":"foreign_origin"})")
        << target;
  }
  EXPECT_EQ(client.ask("POST", "/v1/acquire").status, 403);
  for (const char* path : kHealthCalls) EXPECT_EQ(client.get(path).status, 200) << path;
  EXPECT_EQ(ask_with(client, cross + "Origin: https://b.example\r\n", "/v1/stats").status, 403);
  EXPECT_EQ(ask_with(client, cross + "Origin: https://a.example\r\n", "/v1/stats").status, 200);
  // A link to the page is no call.
  if (find_web_file("/") != nullptr) {
    EXPECT_EQ(ask_with(client, cross, "/").status, 200);
  }
  for (const char* site : {"same-origin", "same-site", "none", ""}) {
    const std::string fields = "Sec-Fetch-Site: " + std::string(site) + "\r\n";
    EXPECT_EQ(ask_with(client, fields, "/v1/stats").status, 200) << site;
  }
}

TEST(HttpOrigin, OneThatWasNamedMayCall) {
  Options options = secret_options();
  options.http_allow_origin = {"https://a.example", "https://b.example:8443"};
  HttpServer server(options);
  HttpClient client = server.browse();
  for (const std::string origin : {"https://a.example", "https://b.example:8443"}) {
    SCOPED_TRACE(origin);
    // A browser asks for leave without the token.
    client.fields = "Origin: " + origin + "\r\nAccess-Control-Request-Method: POST\r\n";
    const HttpReply leave = client.ask("OPTIONS", "/v1/acquire");
    EXPECT_EQ(leave.status, 204);
    EXPECT_EQ(leave.field("Access-Control-Allow-Origin"), origin);
    EXPECT_EQ(leave.field("Access-Control-Allow-Methods"), "POST, OPTIONS");
    EXPECT_EQ(leave.field("Access-Control-Allow-Headers"), "Authorization, Content-Type");
    EXPECT_EQ(leave.field("Access-Control-Max-Age"), "600");
    EXPECT_EQ(leave.field("Access-Control-Allow-Credentials"), "");
    EXPECT_EQ(leave.field("Vary"), "Origin");
    // Also an error is for its eyes.
    const HttpReply refused = client.get("/v1/stats");
    EXPECT_EQ(refused.status, 401);
    EXPECT_EQ(refused.field("Access-Control-Allow-Origin"), origin);
    client.fields += "Authorization: Bearer open sesame\r\n";
    for (const char* target : {"/v1/stats", "/metrics", "/nowhere", "/v1/fence"}) {
      EXPECT_EQ(client.get(target).field("Access-Control-Allow-Origin"), origin) << target;
    }
    HttpClient stream = server.browse();
    stream.fields = client.fields;
    EXPECT_EQ(stream.open_stream("/v1/events").field("Access-Control-Allow-Origin"), origin);
  }
  EXPECT_EQ(ask_with(client, "Origin: https://c.example\r\n", "/v1/stats").status, 403);
}

TEST(HttpOrigin, AStarIsEverybody) {
  Options options = http_options();
  options.http_allow_origin = {"*"};
  HttpServer server(options);
  HttpClient client = server.browse();
  const HttpReply reply = ask_with(client, "Origin: https://any.example\r\n", "/v1/stats");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Access-Control-Allow-Origin"), "https://any.example");
}

}  // namespace
}  // namespace lockd
