// How long a connection over HTTP may be without proof.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeToProve = 1s;

Options proving_options() {
  Options options = http_options();
  options.secret = options.auth_token = "open sesame";
  options.auth_timeout = kTimeToProve;
  options.metrics = true;
  return options;
}

// Health and the page are for everybody, and prove nothing.
TEST(HttpAuthTimeout, WhoShowsNoTokenIsClosed) {
  HttpServer server(proving_options());
  const auto began = SteadyClock::now();
  HttpClient client = server.browse();
  HttpReply reply;
  do {
    reply = client.get("/healthz");
    std::this_thread::sleep_for(20ms);
  } while (reply.status == 200);
  EXPECT_EQ(reply.status, 0);
  EXPECT_GE(SteadyClock::now(), began + kTimeToProve);

  HttpClient silent = server.browse();
  EXPECT_EQ(silent.read_end(), kEnd);
}

TEST(HttpAuthTimeout, HalfARequestIsToldSo) {
  HttpServer server(proving_options());
  const auto began = SteadyClock::now();
  HttpClient client = server.browse();
  client.send("GET /v1/stats HTTP/1.1\r\nHost: a\r\n");
  EXPECT_EQ(shown(client.read_reply()), R"(408 {"error":"request_timeout"})");
  EXPECT_GE(SteadyClock::now(), began + kTimeToProve);
  EXPECT_EQ(client.read_end(), kEnd);
}

TEST(HttpAuthTimeout, WhoHasShownTheTokenStays) {
  HttpServer server(proving_options());
  HttpClient stranger = server.browse();
  HttpClient client = server.browse();
  client.fields = "Authorization: Bearer open sesame\r\n";
  ASSERT_EQ(client.get("/v1/stats").status, 200);
  std::this_thread::sleep_for(kTimeToProve + 2s);
  const HttpReply metrics = client.get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  for (const char* line : {"\ndflockd_connections_unauthenticated 0\n",
                           "\ndflockd_unauthenticated_closed_total{reason=\"deadline\"} 1\n",
                           "\ndflockd_unauthenticated_closed_total{reason=\"crowd\"} 0\n"}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace lockd
