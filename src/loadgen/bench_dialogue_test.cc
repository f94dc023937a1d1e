#include "loadgen/bench_dialogue.h"

#include <gtest/gtest.h>

#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

TEST(BenchDialogue, OverTheLine) {
  const auto dialogue = Dialogue::over_line("k", {.timeout_s = 3, .lease_s = 10});
  EXPECT_EQ(dialogue->acquire(), "l\nk\n3 10\n");
  EXPECT_TRUE(dialogue->take_grant("ok abc 10\n"));
  EXPECT_EQ(dialogue->release(), "r\nk\nabc\n");
  EXPECT_TRUE(dialogue->take_release("ok\r\n"));
  for (const char* bad : {"timeout\n", "ok abc 11\n", "ok abc\n", "ok a b 10\n", "error\n"}) {
    EXPECT_FALSE(dialogue->take_grant(bad)) << bad;
  }
  EXPECT_FALSE(dialogue->take_release("error\n"));
}

TEST(BenchDialogue, OverHttp) {
  const auto dialogue =
      Dialogue::over_http("k", "me", {.timeout_s = 3, .lease_s = 10, .host = "h:1", .token = "t"});
  EXPECT_EQ(dialogue->acquire(),
            "POST /v1/acquire HTTP/1.1\r\nHost: h:1\r\nContent-Type: application/json\r\n"
            "Authorization: Bearer t\r\nContent-Length: 55\r\n\r\n"
            "{\"key\":\"k\",\"holder\":\"me\",\"ttl_ms\":10000,\"wait_ms\":3000}");
  EXPECT_TRUE(dialogue->take_grant("HTTP/1.1 200 OK\r\n\r\n{\"token\":42,\"x\":1}"));
  EXPECT_NE(dialogue->release().find("{\"key\":\"k\",\"holder\":\"me\",\"token\":42}"),
            std::string::npos);
  EXPECT_FALSE(dialogue->take_grant("HTTP/1.1 409 Conflict\r\n\r\n{\"token\":42}"));
}

TEST(BenchDialogue, RepliesAreCutFromTheStream) {
  EXPECT_EQ(line_reply_size("ok"), 0U);
  EXPECT_EQ(line_reply_size("ok\nrest"), 3U);
  const std::string reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
  for (std::size_t size = 0; size < reply.size(); ++size) {
    EXPECT_EQ(http_reply_size(reply.substr(0, size)), 0U);
  }
  EXPECT_EQ(http_reply_size(reply + "HTTP"), reply.size());
  EXPECT_THROW(http_reply_size("HTTP/1.1 200 OK\r\n\r\n"), Failure);
}

}  // namespace
}  // namespace lockd::cli
