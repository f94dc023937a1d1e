// Splits, pipelines, what stands behind a request that blocks, and the end of input.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(LineFraming, ARequestMayBeSplitAnywhere) {
  LineServer server;
  LineClient client = server.connect();
  const std::string requests = "ping\r\n\r\n\r\n" + request("w", "some key", "0");
  for (std::size_t at = 0; at <= requests.size(); ++at) {
    client.send_split(requests, at, 2ms);
    EXPECT_EQ(client.read_lines(2), (Lines{"ok", "error"})) << at;
  }
}

TEST(LineFraming, AnyDepthOfPipelining) {
  LineServer server;
  LineClient client = server.connect();
  std::thread sender([&] { client.send(repeated(request("ping", "", ""), 100'000)); });
  const Lines replies = client.read_lines(100'000);
  sender.join();
  EXPECT_EQ(replies, Lines(100'000, "ok"));
}

TEST(LineFraming, NothingStartsBehindARequestThatBlocks) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient client = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  client.send(request("l", "k", "60") + request("l", "behind", "0") + request("ping", "", ""));
  await_stats(holder, "\"waiters\":1");
  EXPECT_EQ(client.read_line(50ms), kSilence);
  EXPECT_EQ(masked(holder.ask(request("l", "behind", "0"))), "ok <token> 33");
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 33");
  EXPECT_EQ(client.read_line(), "timeout");
  EXPECT_EQ(client.read_line(), "ok");
}

TEST(LineFraming, AViolationBehindARequestThatBlocksWaitsItsTurn) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient client = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  client.send(request("l", "k", "60") + std::string(1000, 'x'));
  await_stats(holder, "\"waiters\":1");
  EXPECT_EQ(client.read_line(50ms), kSilence);
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 33");
  EXPECT_EQ(client.read_line(), "error");
  EXPECT_EQ(client.read_line(), kEnd);
}

// More than the server keeps: what it does not read stays in the socket, and nothing is lost.
TEST(LineFraming, TwoMebibytesBehindARequestThatBlocksAreAllAnswered) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient client = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0")));
  const std::size_t pings = 2 * 1024 * 1024 / 7 + 1;
  std::thread sender(
      [&] { client.send(request("l", "k", "60") + repeated(request("ping", "", ""), pings)); });
  await_stats(holder, "\"waiters\":1");
  EXPECT_EQ(client.read_line(200ms), kSilence);
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(client.read_line()), "ok <token> 33");
  EXPECT_EQ(client.read_lines(pings), Lines(pings, "ok"));
  sender.join();
}

void leave_behind_blocked(std::size_t bytes_behind, bool reset) {
  LineServer server;
  LineClient holder = server.connect();
  LineClient ghost = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  ghost.send(request("l", "k", "1000"));
  await_stats(holder, "\"waiters\":1");
  ASSERT_TRUE(ghost.send(repeated("ping\n\n\n", bytes_behind / 7)));
  std::this_thread::sleep_for(100ms);
  reset ? ghost.reset() : ghost.close();
  const std::string stats = await_stats(holder, "\"waiters\":0");
  EXPECT_NE(stats.find("\"waiters\":0"), std::string::npos) << stats;
}

TEST(LineFraming, ACloseBehindALittleInputIsNoticed) { leave_behind_blocked(10'000, false); }
TEST(LineFraming, ACloseBehindAMebibyteIsNoticed) { leave_behind_blocked(1024 * 1024, false); }
TEST(LineFraming, ACloseBehindAFullBufferIsNoticed) {
  leave_behind_blocked(1024 * 1024 + 8 * 1024, false);
}
// Of more than that the end itself stays in the peer's kernel: only a reset can be noticed.
TEST(LineFraming, AResetBehindTwoMebibytesIsNoticed) {
  leave_behind_blocked(2 * 1024 * 1024, true);
}

}  // namespace
}  // namespace lockd
