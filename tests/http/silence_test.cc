// The deadlines of a peer, once each over a socket: PeerDeadlinesTest has the rules.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/testing/eventually.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Over TLS the handshake has to be done in time, too.
const std::chrono::milliseconds kReadTimeout = tests_use_tls() ? 3s : 600ms;

const std::string kTimeout = R"(408 {"error":"request_timeout"})";
const std::string kHalfABody =
    "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{";

TEST(HttpSilence, AnIdleConnectionIsClosedHalfARequestIsToldSoAndAStreamStays) {
  Options options = http_options();
  options.read_timeout = kReadTimeout;
  HttpServer server(options);
  const auto began = SteadyClock::now();
  HttpClient idle = server.browse();
  HttpClient half = server.browse();
  HttpClient stream = server.browse();
  ASSERT_EQ(stream.open_stream("/v1/signals?pattern=a").status, 200);
  half.send(kHalfABody);
  EXPECT_EQ(idle.read_end(), kEnd) << "without a word";
  EXPECT_GE(SteadyClock::now(), began + kReadTimeout);
  const HttpReply reply = half.read_reply();
  EXPECT_EQ(shown(reply), kTimeout);
  EXPECT_EQ(reply.field("Connection"), "close");
  EXPECT_EQ(half.read_end(), kEnd);
  EXPECT_EQ(stream.read_event(kReadTimeout), kSilence);
  EXPECT_EQ(shown(server.browse().post("/v1/signals/a", R"({"payload":"x"})")),
            R"(200 {"delivered":1})");
}

// Health and the page are for everybody, and prove nothing.
TEST(HttpSilence, WhoShowsNoTokenInTimeIsClosed) {
  Options options = http_options();
  options.secret = options.auth_token = "open sesame";
  options.auth_timeout = tests_use_tls() ? 3s : 1s;
  options.metrics = true;
  HttpServer server(options);
  const auto began = SteadyClock::now();
  HttpClient stranger = server.browse();
  HttpClient half = server.browse();
  HttpClient client = server.browse();
  client.fields = "Authorization: Bearer open sesame\r\n";
  ASSERT_EQ(client.get("/v1/stats").status, 200);
  ASSERT_EQ(stranger.get("/livez").status, 200);
  half.send(kHalfABody.substr(0, 20));
  EXPECT_EQ(stranger.read_end(), kEnd);
  EXPECT_GE(SteadyClock::now(), began + options.auth_timeout);
  EXPECT_EQ(shown(half.read_reply()), kTimeout);
  EXPECT_EQ(half.read_end(), kEnd);
  std::string metrics;
  EXPECT_TRUE(eventually([&] {
    metrics = client.get("/metrics").body;
    return metrics.find("\nlockd_connections_unauthenticated 0\n") != std::string::npos;
  }));
  for (const char* line : {"\nlockd_unauthenticated_closed_total{reason=\"deadline\"} 2\n",
                           "\nlockd_unauthenticated_closed_total{reason=\"crowd\"} 0\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace lockd
