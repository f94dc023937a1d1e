#include "loadgen/dialogue.h"

#include <gtest/gtest.h>

namespace lockd::loadgen {
namespace {

TEST(LoadDialogue, OverTheLine) {
  Dialogue dialogue(Protocol::line, "k", {.wait_s = 3, .lease_s = 10});
  EXPECT_EQ(dialogue.request(), "l\nk\n3 10\n");
  for (const char* bad : {"timeout\n", "ok abc 11\n", "ok abc\n", "ok a b 10\n", "error\n"}) {
    EXPECT_FALSE(dialogue.take(bad)) << bad;
  }
  EXPECT_TRUE(dialogue.take("ok abc 10\n"));
  EXPECT_TRUE(dialogue.releases());
  EXPECT_EQ(dialogue.request(), "r\nk\nabc\n");
  EXPECT_FALSE(dialogue.take("error\n"));
  EXPECT_TRUE(dialogue.take("ok\r\n"));
  EXPECT_FALSE(dialogue.releases());
}

TEST(LoadDialogue, OverHttp) {
  Dialogue dialogue(Protocol::http, "k",
                    {.wait_s = 3, .lease_s = 10, .host = "h:1", .holder = "me", .auth_token = "t"});
  EXPECT_EQ(dialogue.request(),
            "POST /v1/acquire HTTP/1.1\r\nHost: h:1\r\nContent-Type: application/json\r\n"
            "Authorization: Bearer t\r\nContent-Length: 55\r\n\r\n"
            "{\"key\":\"k\",\"holder\":\"me\",\"ttl_ms\":10000,\"wait_ms\":3000}");
  EXPECT_FALSE(dialogue.take("HTTP/1.1 409 Conflict\r\n\r\n{\"token\":42}"));
  EXPECT_TRUE(dialogue.take("HTTP/1.1 200 OK\r\n\r\n{\"token\":42,\"x\":1}"));
  EXPECT_TRUE(dialogue.request().starts_with("POST /v1/release HTTP/1.1\r\n"));
  EXPECT_TRUE(dialogue.request().ends_with("{\"key\":\"k\",\"holder\":\"me\",\"token\":42}"));
}

TEST(LoadDialogue, OverRedis) {
  Dialogue dialogue(Protocol::redis, "k");
  EXPECT_FALSE(dialogue.take("$-1\r\n"));
  EXPECT_TRUE(dialogue.take("+OK\r\n"));
  EXPECT_EQ(dialogue.request(), "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n");
  EXPECT_TRUE(dialogue.take(":1\r\n"));
}

TEST(LoadDialogue, RepliesAreCutFromTheStream) {
  EXPECT_EQ(reply_size(Protocol::line, "ok"), 0U);
  EXPECT_EQ(reply_size(Protocol::line, "ok\nrest"), 3U);
  const std::string reply = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
  for (std::size_t size = 0; size < reply.size(); ++size) {
    EXPECT_EQ(reply_size(Protocol::http, reply.substr(0, size)), 0U);
  }
  EXPECT_EQ(reply_size(Protocol::http, reply + "HTTP"), reply.size());
  EXPECT_THROW(reply_size(Protocol::http, "HTTP/1.1 200 OK\r\n\r\n"), LoadError);
  EXPECT_THROW(reply_size(Protocol::line, std::string(2 << 20, 'x')), LoadError);
}

}  // namespace
}  // namespace lockd::loadgen
