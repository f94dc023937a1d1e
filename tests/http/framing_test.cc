// Bytes on the wire: in pieces, one behind the other, and in shapes that nobody honest sends.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "protocol/http/request_parser.h"
#include "protocol/http/testing/refused_requests.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

const std::string kHealth = R"(200 {"status":"ok"})";
const std::string kGetHealth = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kPost = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\n";

// A request of every kind, each of which may come after any other.
std::vector<std::string> some_requests(const HttpClient& client) {
  return {
      client.written("POST", "/v1/acquire", hold_json("k", "a")),
      client.written("GET", "/v1/fence?key=k"),
      client.written("POST", "/v1/semaphores/acquire", hold_json("s", "a", R"("limit":2)")),
      client.written("POST", "/v1/signals/a.b", R"({"payload":"x"})"),
      client.written("POST", "/v1/renew", "nonsense"),
      client.written("GET", "/v1/stats"),
      client.written("GET", "/v1/locks"),
      client.written("GET", "/v1/overview"),
      client.written("GET", "/metrics"),
      client.written("GET", "/v1/openapi.json"),
      client.written("OPTIONS", "/v1/locks"),
      client.written("GET", "/nowhere"),
      client.written("DELETE", "/v1/stats"),
      kPost + "Transfer-Encoding: chunked\r\n\r\n18\r\n" + hold_json("k", "a") + "\r\n0\r\n\r\n",
      kGetHealth};
}

const std::vector<int> kStatuses = {200, 200, 200, 200, 400, 200, 200, 200,
                                    200, 200, 204, 404, 405, 200, 200};

TEST(HttpFraming, EveryRequestPipelined) {
  HttpServer server;
  HttpClient client = server.browse();
  std::string bytes;
  for (const std::string& request : some_requests(client)) bytes += request;
  for (const bool bytewise : {false, true}) {
    ASSERT_TRUE(bytewise ? client.send_bytewise(bytes) : client.send(bytes));
    for (const int status : kStatuses) ASSERT_EQ(client.read_reply().status, status);
  }
}

TEST(HttpFraming, ThousandsPipelined) {
  HttpServer server;
  HttpClient client = server.browse();
  constexpr int kCount = 5000;
  std::thread sender([&] { client.send(repeated(kGetHealth, kCount)); });
  int answered = 0;
  while (answered < kCount && shown(client.read_reply()) == kHealth) ++answered;
  EXPECT_EQ(answered, kCount);
  sender.join();
}

TEST(HttpFraming, WhoStaysAndWhoGoes) {
  HttpServer server;
  struct Case {
    const char* request;
    const char* connection;  // of the reply
    bool stays;
  };
  for (const Case& c : std::vector<Case>{
           {"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n", "", true},
           {"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "close", false},
           {"GET /livez HTTP/1.1\r\nHost: a\r\nconnection: x, CLOSE\r\n\r\n", "close", false},
           {"GET /livez HTTP/1.0\r\n\r\n", "close", false},
           {"GET /livez HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", true},
           {"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n", "", true},
       }) {
    SCOPED_TRACE(c.request);
    HttpClient client = server.browse();
    client.send(c.request);
    const HttpReply reply = client.read_reply();
    EXPECT_NE(reply.status, 0) << reply.body;
    EXPECT_EQ(reply.field("Connection"), c.connection);
    if (c.stays) {
      EXPECT_EQ(shown(client.get("/livez")), kHealth);
    } else {
      EXPECT_EQ(client.read_end(), kEnd);
    }
  }
}

// What stands behind a request that says it is the last is not executed.
TEST(HttpFraming, NothingBehindTheLastRequestIsExecuted) {
  HttpServer server;
  HttpClient client = server.browse();
  HttpClient other = server.browse();
  client.send("GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" +
              client.written("POST", "/v1/acquire", hold_json("k", "a")));
  EXPECT_EQ(shown(client.read_reply()), kHealth);
  EXPECT_EQ(client.read_end(), kEnd);
  EXPECT_EQ(other.post("/v1/acquire", hold_json("k", "b")).status, 200);
}

TEST(HttpFraming, LeaveToSendTheBody) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::string body = hold_json("k", "a");
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  client.send(kPost + "Expect: 100-continue\r\n" + length);
  EXPECT_EQ(client.read_head().status, 100);
  client.send(body);
  EXPECT_EQ(client.read_reply().status, 200);
  // Who does not wait for it may hear it all the same, or not; the reply follows.
  client.send(kPost + "Expect: 100-continue\r\n" + length + body);
  HttpReply reply = client.read_head();
  if (reply.status == 100) reply = client.read_head();
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(client.read_end(), "");  // its body
  // HTTP/1.0 knows nothing of it.
  client.send("POST /v1/acquire HTTP/1.0\r\nExpect: 100-continue\r\n" + length);
  EXPECT_EQ(client.read_end(50ms), kSilence);
  client.send(body);
  EXPECT_EQ(client.read_reply().status, 200);
  // Nobody is asked to send what would be refused.
  HttpClient large = server.browse();
  large.send(kPost + "Expect: 100-continue\r\nContent-Length: 1048577\r\n\r\n");
  EXPECT_EQ(shown(large.read_reply()), R"(413 {"error":"too_large"})");
}

// What is refused by its head is not waited for.
TEST(HttpFraming, ABodyForNobodyEndsTheConnection) {
  HttpServer server;
  for (const char* line : {"POST /nowhere HTTP/1.1\r\n", "POST /v1/stats HTTP/1.1\r\n",
                           "PUT /v1/acquire HTTP/1.1\r\n", "POST /%zz HTTP/1.1\r\n"}) {
    SCOPED_TRACE(line);
    HttpClient client = server.browse();
    client.send(line + std::string("Host: a\r\nContent-Length: 1000\r\n\r\n"));
    const HttpReply reply = client.read_reply();
    EXPECT_GE(reply.status, 400);
    EXPECT_EQ(reply.field("Connection"), "close");
    EXPECT_EQ(client.read_end(), kEnd);
  }
}

// Each is answered with an error and an end, and the neighbour does not notice.
TEST(HttpFraming, WhatTwoParsersCouldReadDifferentlyIsRefused) {
  HttpServer server;
  HttpClient neighbour = server.browse();
  for (const RefusedRequest& refused : refused_requests()) {
    for (const bool bytewise : {false, true}) {
      if (bytewise && refused.text.size() > 1000) continue;
      SCOPED_TRACE(refused.what + std::string(bytewise ? ", byte by byte" : ""));
      HttpClient client = server.browse();
      // What follows would be executed by a server that was led astray.
      const std::string smuggled = client.written("POST", "/v1/acquire", hold_json("k", "evil"));
      bytewise ? client.send_bytewise(refused.text) : client.send(refused.text + smuggled);
      const HttpReply reply = client.read_reply();
      const bool large = refused.status == 413 || refused.status == 431;
      EXPECT_EQ(shown(reply), std::to_string(refused.status) + R"( {"error":")" +
                                  (large ? "too_large" : "bad_request") + R"("})");
      EXPECT_FALSE(reply.text("detail").empty());
      EXPECT_EQ(reply.field("Connection"), "close");
      EXPECT_EQ(client.read_end(), kEnd);
      EXPECT_EQ(shown(neighbour.get("/livez")), kHealth);
    }
  }
  EXPECT_EQ(neighbour.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

// A refusal is heard although much more was on its way.
TEST(HttpFraming, ARefusalIsHeardOverWhatIsStillSent) {
  HttpServer server;
  HttpClient neighbour = server.browse();
  HttpClient client = server.browse();
  std::thread sender([&] {
    client.send(kPost + "Content-Length: 3000000\r\n\r\n" + std::string(3'000'000, 'x'));
  });
  EXPECT_EQ(shown(client.read_reply()), R"(413 {"error":"too_large"})");
  sender.join();
  EXPECT_EQ(shown(neighbour.get("/livez")), kHealth);
}

TEST(HttpFraming, OtherProtocolsAreRefused) {
  HttpServer server;
  for (const std::string& bytes :
       {request("l", "k", "0"), request("ping", "", ""),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string(100, '\0')}) {
    HttpClient client = server.browse();
    client.send(bytes);
    EXPECT_EQ(shown(client.read_reply()), R"(400 {"error":"bad_request"})") << bytes;
    EXPECT_EQ(client.read_end(), kEnd);
  }
}

}  // namespace
}  // namespace lockd
