// Signals by POST and by server-sent events, beside line clients.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

std::string delivered(int count) { return R"(200 {"delivered":)" + std::to_string(count) + "}"; }

HttpReply publish(HttpClient& client, const std::string& channel, const std::string& payload) {
  return client.post("/v1/signals/" + channel, R"({"payload":")" + payload + R"("})");
}

// Until the server has noticed that a listener has gone.
void await_listeners(HttpClient& client, int count) {
  const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
  const std::string part = R"("signals":{"listeners":)" + std::to_string(count) + ",";
  while (client.get("/v1/overview").body.find(part) == std::string::npos) {
    ASSERT_LT(HttpClient::Clock::now(), deadline);
    std::this_thread::sleep_for(1ms);
  }
}

TEST(HttpSignals, ReachLineAndHttpListeners) {
  HttpServer server;
  HttpClient client = server.browse();
  EXPECT_EQ(shown(publish(client, "orders.eu", "1")), delivered(0));
  LineClient line = server.connect();
  ASSERT_EQ(line.ask(request("listen", "orders.*", "")), "ok");
  HttpClient exact = server.browse();
  const HttpReply head = exact.open_stream("/v1/signals?pattern=orders.eu");
  ASSERT_EQ(head.status, 200);
  EXPECT_EQ(head.field("Content-Type"), "text/event-stream");
  EXPECT_EQ(head.field("Cache-Control"), "no-store");
  EXPECT_EQ(head.field("Transfer-Encoding"), "chunked");
  HttpClient rest = server.browse();
  ASSERT_EQ(rest.open_stream("/v1/signals?pattern=orders.%3E").status, 200);
  HttpClient other = server.browse();
  ASSERT_EQ(other.open_stream("/v1/signals?pattern=*.us").status, 200);

  EXPECT_EQ(shown(publish(client, "orders.eu", "two words")), delivered(3));
  EXPECT_EQ(line.read_line(), "sig orders.eu two words");
  for (HttpClient* stream : {&exact, &rest}) {
    EXPECT_EQ(stream->read_event(), R"(sig {"channel":"orders.eu","payload":"two words"})");
  }
  EXPECT_EQ(other.read_event(50ms), kSilence);
  LineClient publisher = server.connect();
  EXPECT_EQ(publisher.ask(request("signal", "orders.us", "x \"y\" \\")), "ok 3");
  EXPECT_EQ(other.read_event(), R"(sig {"channel":"orders.us","payload":"x \"y\" \\"})");
}

// A line client's payload may be any bytes.
TEST(HttpSignals, WhatIsNoUtf8IsReplaced) {
  HttpServer server;
  HttpClient stream = server.browse();
  ASSERT_EQ(stream.open_stream("/v1/signals?pattern=a").status, 200);
  LineClient publisher = server.connect();
  const std::string valid = "x\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  ASSERT_EQ(publisher.ask(request("signal", "a", "\xFF\t" + valid + "\xE2\x82\xC0\x80z\xF0")),
            "ok 1");
  const std::string lost = "\xEF\xBF\xBD";
  EXPECT_EQ(stream.read_event(), R"(sig {"channel":"a","payload":")" + lost + "\\u0009" + valid +
                                     lost + lost + lost + lost + "z" + lost + "\"}");
}

TEST(HttpSignals, AListenerThatLeavesIsForgotten) {
  HttpServer server;
  HttpClient client = server.browse();
  {
    HttpClient a = server.browse();
    HttpClient b = server.browse();
    ASSERT_EQ(a.open_stream("/v1/signals?pattern=c").status, 200);
    ASSERT_EQ(b.open_stream("/v1/signals?pattern=c").status, 200);
    await_listeners(client, 2);
    b.reset();
    await_listeners(client, 1);
  }
  await_listeners(client, 0);
  EXPECT_EQ(shown(publish(client, "c", "x")), delivered(0));
}

// Behind the head of a stream nothing is read, and nothing is executed.
TEST(HttpSignals, AStreamIsTheLastReply) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient listener = server.browse();
  listener.send(listener.written("GET", "/v1/signals?pattern=c") +
                listener.written("POST", "/v1/acquire", hold_json("k", "a")));
  ASSERT_EQ(listener.read_head().field("Connection"), "close");
  EXPECT_EQ(shown(publish(client, "c", "x")), delivered(1));
  EXPECT_EQ(client.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

TEST(HttpSignals, AStreamOfHttp10HasNoChunks) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient listener = server.browse();
  listener.send("GET /v1/signals?pattern=c HTTP/1.0\r\n\r\n");
  const HttpReply head = listener.read_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("Transfer-Encoding"), "");
  EXPECT_EQ(head.field("Connection"), "close");
  EXPECT_EQ(shown(publish(client, "c", "x")), delivered(1));
  EXPECT_EQ(listener.read_event(), R"(sig {"channel":"c","payload":"x"})");
}

TEST(HttpSignals, ChannelsAndPayloads) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* channel : {"a.*", "a.%3E", "*", "%3E", "%0a", "a%00b", "%ff"}) {
    const HttpReply reply = publish(client, channel, "x");
    EXPECT_EQ(shown(reply), R"(400 {"error":"bad_request"})") << channel;
    EXPECT_NE(reply.text("detail").find("channel"), std::string::npos) << reply.body;
  }
  for (const std::string& payload :
       {std::string(), std::string("  "), std::string("a\\nb"), std::string(65'536, 'x')}) {
    const HttpReply reply = publish(client, "c", payload);
    EXPECT_EQ(shown(reply), R"(400 {"error":"bad_request"})");
    EXPECT_NE(reply.text("detail").find("payload"), std::string::npos) << reply.body;
  }
  HttpClient listener = server.browse();
  ASSERT_EQ(listener.open_stream("/v1/signals?pattern=%3E").status, 200);
  EXPECT_EQ(shown(publish(client, "a/b", "slash")), delivered(1));
  EXPECT_EQ(listener.read_event(), R"(sig {"channel":"a/b","payload":"slash"})");
  EXPECT_EQ(shown(publish(client, "caf%C3%A9", "é")), delivered(1));
  EXPECT_EQ(listener.read_event(), R"(sig {"channel":"café","payload":"é"})");
  const std::string large(60'000, 'x');
  EXPECT_EQ(shown(publish(client, "c", large)), delivered(1));
  EXPECT_EQ(listener.read_event(), R"(sig {"channel":"c","payload":")" + large + "\"}");
}

}  // namespace
}  // namespace lockd
