// Thousands who wait for one key, half of them over HTTP, half over the line protocol.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "load/scale.h"
#include "load/swarm.h"
#include "load/waiters.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

class HttpCrowd : public testing::Test {
 protected:
  static constexpr const char* kLong = R"("ttl_ms":1000000,"wait_ms":1000000)";

  static std::string name(std::size_t who) { return "h" + std::to_string(who); }

  // HTTP and line by turns, each known to be in the queue before the next asks: the order is
  // certain.
  void fill_queue(std::size_t pairs) {
    ASSERT_TRUE(https_.connect(pairs));
    ASSERT_TRUE(lines_.connect(pairs));
    for (std::size_t i = 0; i < pairs; ++i) {
      ASSERT_TRUE(
          https_.send(i, client_.written("POST", "/v1/acquire", hold_json("k", name(i), kLong))));
      ASSERT_TRUE(await_waiters(observer_, "k", 2 * i + 1));
      ASSERT_TRUE(lines_.send(i, request("l", "k", "1000 1000")));
      ASSERT_TRUE(await_waiters(observer_, "k", 2 * i + 2));
    }
  }

  // The next word for anybody is this one's grant; its token.
  std::int64_t http_turn(std::size_t who) {
    const auto arrival = https_.next();
    EXPECT_TRUE(arrival.has_value() && arrival->who == who) << who << " is due";
    if (!arrival.has_value()) return 0;
    EXPECT_EQ(arrival->line, "HTTP/1.1 200 OK\r") << who;
    std::string line;
    do {
      line = https_.read_line(who);
    } while (line != "\r" && !line.starts_with('<'));
    https_.read_line(who);  // its body
    EXPECT_FALSE(lines_.next(std::chrono::milliseconds(0)).has_value()) << "nobody else is due";
    const std::int64_t token = client_.get("/v1/fence?key=k").number("token");
    EXPECT_EQ(client_.post("/v1/release", hold_json("k", name(who), token)).status, 200) << who;
    return token;
  }

  std::int64_t line_turn(std::size_t who) {
    const auto arrival = lines_.next();
    EXPECT_TRUE(arrival.has_value() && arrival->who == who) << who << " is due";
    if (!arrival.has_value()) return 0;
    EXPECT_EQ(masked(arrival->line), "ok <token> 1000") << who;
    EXPECT_FALSE(https_.next(std::chrono::milliseconds(0)).has_value()) << "nobody else is due";
    const std::string token = token_of(arrival->line);
    EXPECT_EQ(observer_.ask(request("r", "k", token)), "ok") << who;
    return std::stoll(token.substr(0, 16), nullptr, 16);
  }

  ServerProcess server_{{"--threads", "4", "--read-timeout", "600", "--http-addr", "127.0.0.1:0"}};
  LineClient observer_ = server_.connect();
  HttpClient client_{{.port = server_.http_port()}};
  Swarm https_{server_.http_port()};
  Swarm lines_{server_.port()};
};

TEST_F(HttpCrowd, TwoThousandOfEachAreServedInTheOrderTheyCame) {
  const std::size_t pairs = connections_possible(scaled(4000)) / 2;
  std::int64_t last = client_.post("/v1/acquire", hold_json("k", "first", kLong)).number("token");
  ASSERT_NO_FATAL_FAILURE(fill_queue(pairs));
  ASSERT_EQ(client_.post("/v1/release", hold_json("k", "first", last)).status, 200);
  for (std::size_t i = 0; i < pairs && !HasFailure(); ++i) {
    for (const bool http : {true, false}) {
      const std::int64_t token = http ? http_turn(i) : line_turn(i);
      EXPECT_GT(token, last);
      last = token;
    }
  }
  const std::string stats = observer_.ask(request("stats", "", ""));
  EXPECT_NE(stats.find("\"locks\":[],"), std::string::npos) << stats;
}

}  // namespace
}  // namespace lockd
