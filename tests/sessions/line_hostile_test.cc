// Clients that misbehave do not disturb the others.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(LineHostile, WhoNeverReadsIsClosedAndDisturbsNobody) {
  Options options = line_options();
  options.write_timeout = 500ms;
  LineServer server(options);
  LineClient client = server.connect();
  take_many(client, 500);
  LineClient slow = server.connect(4096);
  ASSERT_TRUE(slow.send(repeated("stats\n\n\n", 1000)));
  for (int i = 0; i < 200; ++i) ASSERT_EQ(client.ask(request("ping", "", "")), "ok");
  const std::string stats = await_stats(client, "{\"connections\":1,");
  EXPECT_NE(stats.find("{\"connections\":1,"), std::string::npos);
}

TEST(LineHostile, WithoutAWriteTimeoutItIsKept) {
  Options options = line_options();
  options.write_timeout = 0s;
  LineServer server(options);
  LineClient client = server.connect();
  take_many(client, 500);
  LineClient slow = server.connect(4096);
  ASSERT_TRUE(slow.send(repeated("stats\n\n\n", 100)));
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
  for (const std::string& line : slow.read_lines(100)) {
    ASSERT_TRUE(line.starts_with("ok {\"connections\":2,\"locks\":[{") && line.ends_with("]}"));
  }
}

// Requests of one that does not read wait with it: their answers are not piled up. The last are
// made when there is room for them, and show what happened meanwhile.
TEST(LineHostile, AnswersAreNotPiledUp) {
  Options options = line_options();
  options.write_timeout = 0s;
  LineServer server(options);
  LineClient client = server.connect();
  take_many(client, 500);
  LineClient slow = server.connect(4096);
  ASSERT_TRUE(slow.send(repeated("stats\n\n\n", 200)));
  const std::string first = slow.read_line();
  ASSERT_TRUE(first.starts_with("ok {")) << first.substr(0, 20);
  std::this_thread::sleep_for(500ms);
  ASSERT_EQ(masked(client.ask(request("l", "late", "0 1000"))), "ok <token> 1000");
  const std::vector<std::string> lines = slow.read_lines(199);
  ASSERT_EQ(lines.size(), 199U);
  EXPECT_TRUE(lines.back().find("\"late\"") != std::string::npos);
}

TEST(LineHostile, EndlessGarbageIsCutOff) {
  LineServer server;
  LineClient client = server.connect();
  const std::string garbage(64 * 1024, 'x');
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  while (client.send(garbage) && LineClient::Clock::now() < deadline) {
  }
  EXPECT_LT(LineClient::Clock::now(), deadline);
}

TEST(LineHostile, ManyViolationsLeaveNothingBehind) {
  LineServer server;
  LineClient observer = server.connect();
  for (int i = 0; i < 300; ++i) {
    LineClient client = server.connect();
    client.send(request("l", "k", "60 1000") + request("e", "j" + std::to_string(i), "1000") +
                request("listen", "a", "") + request("x", "", ""));
    ASSERT_EQ(masked(client.read_line()), "ok <token> 1000") << i;
    ASSERT_EQ(masked(client.read_line()), "acquired <token> 1000") << i;
    ASSERT_EQ(client.read_line(), "ok");
    ASSERT_EQ(client.read_line(), "error");
  }
  const std::string stats = await_stats(observer, "{\"connections\":1,");
  EXPECT_NE(stats.find(R"({"connections":1,"locks":[],"semaphores":[])"), std::string::npos);
  EXPECT_NE(stats.find(R"("signal_channels":[])"), std::string::npos);
}

}  // namespace
}  // namespace lockd
