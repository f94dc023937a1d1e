// How a server that stops takes leave of its HTTP clients.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "server/server.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

void expect_draining(HttpClient& client) {
  const HttpReply reply = client.read_reply();
  EXPECT_EQ(shown(reply), R"(503 {"error":"draining"})");
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_EQ(reply.field("Retry-After"), "1");
  EXPECT_EQ(client.read_end(), kEnd);
}

TEST(HttpDrain, WhoWaitsIsTold) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient waiter = server.browse();
  HttpClient pipelined = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  const std::string wait = R"("wait_ms":600000)";
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "b", wait)));
  ASSERT_TRUE(await_line(client, "k", 1));
  pipelined.send(pipelined.written("POST", "/v1/acquire", hold_json("k", "c", wait)) +
                 pipelined.written("GET", "/v1/stats"));
  ASSERT_TRUE(await_line(client, "k", 2));
  server.server().drain();
  expect_draining(waiter);
  expect_draining(pipelined);
}

TEST(HttpDrain, StreamsEndAndIdleConnectionsClose) {
  HttpServer server;
  HttpClient idle = server.browse();
  HttpClient never = server.browse();
  HttpClient listener = server.browse();
  HttpClient watcher = server.browse();
  HttpClient old = server.browse();
  ASSERT_EQ(listener.open_stream("/v1/signals?pattern=a").status, 200);
  ASSERT_EQ(watcher.open_stream("/v1/events").status, 200);
  old.send("GET /v1/events HTTP/1.0\r\n\r\n");
  ASSERT_EQ(old.read_head().status, 200);
  ASSERT_EQ(idle.get("/livez").status, 200);
  server.server().drain();
  for (HttpClient* client : {&listener, &watcher}) {
    EXPECT_EQ(client->read_event(), kEnd);  // the last chunk
    EXPECT_EQ(client->read_end(), kEnd);
  }
  for (HttpClient* client : {&idle, &never, &old}) EXPECT_EQ(client->read_end(), kEnd);
  const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
  while (server.server().connections() > 0 && HttpClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(server.server().connections(), 0U);
  EXPECT_TRUE(server.browse().connected());
  server.server().close_http();
  // The port is closed when the last worker has closed it.
  while (server.browse().connected() && HttpClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(server.browse().connected());
}

// On connections that begin meanwhile, one request each.
TEST(HttpDrain, WhoHoldsIsServedOn) {
  HttpServer server;
  HttpClient before = server.browse();
  const HttpReply lock = before.post("/v1/acquire", hold_json("k", "a"));
  const HttpReply permit =
      before.post("/v1/semaphores/acquire", hold_json("s", "a", R"("limit":2)"));
  ASSERT_EQ(lock.status, 200);
  ASSERT_EQ(permit.status, 200);
  const auto token_in = [](const HttpReply& grant) {
    return "\"token\":" + std::to_string(grant.json().at("token").as_int64());
  };
  const std::string held = hold_json("k", "a", token_in(lock));
  const std::string permitted = hold_json("s", "a", token_in(permit));
  server.server().drain();
  EXPECT_EQ(before.read_end(), kEnd);
  const auto ask = [&](std::string_view method, std::string_view target, std::string_view body) {
    HttpClient client = server.browse();
    const HttpReply reply = client.ask(method, target, body);
    EXPECT_EQ(reply.field("Connection"), "close") << target;
    EXPECT_EQ(client.read_end(), kEnd);
    return shown(reply);
  };
  const auto post = [&](std::string_view target, const std::string& body) {
    return ask("POST", target, body);
  };
  EXPECT_EQ(post("/v1/renew", held), shown(lock));
  EXPECT_EQ(post("/v1/semaphores/renew", permitted), shown(permit));
  EXPECT_EQ(post("/v1/renew", hold_json("k", "b", token_in(lock))),
            R"(409 {"error":"not_holder"})");
  const std::string draining = R"(503 {"error":"draining"})";
  EXPECT_EQ(post("/v1/acquire", hold_json("free", "a")), draining);
  EXPECT_EQ(post("/v1/acquire", hold_json("k", "a")), draining);
  EXPECT_EQ(post("/v1/semaphores/acquire", hold_json("s", "b", R"("limit":2)")), draining);
  EXPECT_EQ(ask("GET", "/v1/events", ""), draining);
  EXPECT_EQ(ask("GET", "/v1/signals?pattern=a", ""), draining);
  EXPECT_EQ(ask("GET", "/readyz", ""), R"(503 {"status":"draining"})");
  EXPECT_EQ(ask("GET", "/livez", ""), R"(200 {"status":"ok"})");
  EXPECT_EQ(ask("GET", "/v1/fence?key=k", ""), R"(200 {"key":"k","held":true,"token":<token>})");
  EXPECT_EQ(post("/v1/signals/a", R"({"payload":"x"})"), R"(200 {"delivered":0})");
  for (const std::string_view target : {"/v1/stats", "/v1/locks", "/v1/overview", "/metrics"}) {
    EXPECT_TRUE(ask("GET", target, "").starts_with("200 ")) << target;
  }
  EXPECT_EQ(post("/v1/release", held), R"(200 {"key":"k","released":true})");
  EXPECT_EQ(post("/v1/semaphores/release", permitted), R"(200 {"key":"s","released":true})");
}

// Those that had begun are answered.
TEST(HttpDrain, WhatIsHalfThereIsAnswered) {
  Options options = http_options();
  options.threads = 1;
  HttpServer server(options);
  HttpClient probe = server.browse();
  HttpClient live = server.browse();
  HttpClient call = server.browse();
  HttpClient observer = server.browse();
  const std::string begun = "GET /readyz HTTP/1.1\r\n";
  probe.send(begun);
  live.send("GET /livez HTTP/1.1\r\n");
  call.send("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 24\r\n\r\n{");
  // The one loop has read what came before it answers what came after.
  while (observer.get("/v1/overview").json().at("connections").as_int64() < 4) {
  }
  ASSERT_EQ(observer.get("/v1/overview").status, 200);
  server.server().drain();
  EXPECT_EQ(observer.read_end(), kEnd);
  probe.send("Host: a\r\n\r\n");
  const HttpReply ready = probe.read_reply();
  EXPECT_EQ(shown(ready), R"(503 {"status":"draining"})");
  EXPECT_EQ(ready.field("Connection"), "close");
  EXPECT_EQ(probe.read_end(), kEnd);
  live.send("Host: a\r\n\r\n");
  EXPECT_EQ(shown(live.read_reply()), R"(200 {"status":"ok"})");
  EXPECT_EQ(live.read_end(), kEnd);
  call.send(hold_json("k", "a").substr(1));
  expect_draining(call);
}

// However slowly it is taken.
TEST(HttpDrain, TheLastAnswerIsSentToItsEnd) {
  Options options = http_options();
  options.max_locks = 100'000;
  options.write_timeout = 0s;
  HttpServer server(options);
  take_many_keys(server);
  HttpClient slow({.port = server.http_port(), .receive_buffer = 4096, .tls = server.tls()});
  slow.fields = "Connection: close\r\n";
  slow.send(slow.written("GET", "/v1/stats"));
  const HttpReply head = slow.read_head();
  ASSERT_EQ(head.status, 200);
  server.server().drain();
  server.server().close_http();
  while (server.browse().connected()) std::this_thread::sleep_for(1ms);
  EXPECT_GT(server.server().connections(), 0U);
  std::string body;
  std::string more;
  while (!(more = slow.read_end()).starts_with('<')) body += more;
  EXPECT_EQ(more, kEnd);
  EXPECT_EQ(head.field("Transfer-Encoding"), "chunked");
  EXPECT_TRUE(body.ends_with("}\r\n1\r\n\n\r\n0\r\n\r\n")) << body.substr(body.size() - 50);
  slow.close();
  const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
  while (server.server().connections() > 0 && HttpClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(server.server().connections(), 0U);
}

// Neither those who say nothing nor those who say half of something are waited for.
TEST(HttpDrain, InTheEndNobodyIsWaitedFor) {
  HttpServer server;
  server.server().drain();
  HttpClient idle = server.browse();
  HttpClient half = server.browse();
  half.send("GET /readyz HTTP/1.1\r\n");
  HttpClient observer = server.browse();
  ASSERT_EQ(observer.get("/livez").status, 200);
  server.server().close_http();
  EXPECT_TRUE(idle.read_end().starts_with('<'));
  EXPECT_TRUE(half.read_end().starts_with('<'));
  for (HttpClient* client : {&idle, &half, &observer}) client->close();
  const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
  while (server.server().connections() > 0 && HttpClient::Clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(server.server().connections(), 0U);
}

TEST(HttpDrain, StopCutsTheRest) {
  HttpServer server;
  HttpClient half = server.browse();
  HttpClient observer = server.browse();
  half.send("GET /readyz HTTP/1.1\r\n");
  while (observer.get("/v1/overview").json().at("connections").as_int64() < 2) {
  }
  server.server().drain();
  server.server().stop();
  EXPECT_TRUE(half.read_end().starts_with('<'));
  EXPECT_FALSE(server.browse().connected());
}

}  // namespace
}  // namespace lockd
