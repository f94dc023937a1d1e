// Signals between connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "server/session/line_session.h"
#include "support/line_client.h"

namespace lockd {
namespace {

std::string signal(const std::string& channel, const std::string& payload) {
  return request("signal", channel, payload);
}

LineClient listener_of(LineServer& server, const std::string& pattern, const std::string& group) {
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("listen", pattern, group)), "ok");
  return client;
}

TEST(LineSignals, APayloadIsUntouched) {
  LineServer server;
  LineClient publisher = server.connect();
  LineClient listener = listener_of(server, "a", "");
  for (const std::string& payload :
       {std::string("x"), std::string("  two  words \t"), std::string("\x01\xff\0!", 4),
        std::string("a\rb"), std::string(65'536 - 6, 'p')}) {
    EXPECT_EQ(publisher.ask(signal("a", payload + "\r")), "ok 1");
    EXPECT_EQ(listener.read_line(), "sig a " + payload);
  }
}

TEST(LineSignals, AGroupTakesTurns) {
  LineServer server;
  LineClient publisher = server.connect();
  std::vector<LineClient> members;
  for (int i = 0; i < 3; ++i) members.push_back(listener_of(server, "a", "the group"));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(publisher.ask(signal("a", std::to_string(i))), "ok 1");
  for (LineClient& member : members) {
    const std::string first = member.read_line();
    ASSERT_TRUE(first.starts_with("sig a ")) << first;
    const int turn = std::stoi(first.substr(6));
    EXPECT_LT(turn, 3);
    EXPECT_EQ(member.read_lines(2),
              (Lines{"sig a " + std::to_string(turn + 3), "sig a " + std::to_string(turn + 6)}));
  }
}

TEST(LineSignals, APublisherHearsItself) {
  LineServer server;
  LineClient client = listener_of(server, "a", "");
  client.send(signal("a", "x"));
  Lines lines = client.read_lines(2);
  std::sort(lines.begin(), lines.end());  // which comes first is not promised
  EXPECT_EQ(lines, (Lines{"ok 1", "sig a x"}));
}

TEST(LineSignals, TheyComeWhileARequestBlocks) {
  LineServer server;
  LineClient publisher = server.connect();
  LineClient listener = listener_of(server, "a", "");
  const std::string token = token_of(publisher.ask(request("l", "k", "0")));
  listener.send(request("l", "k", "60"));
  await_stats(publisher, "\"waiters\":1");
  EXPECT_EQ(publisher.ask(signal("a", "x")), "ok 1");
  EXPECT_EQ(listener.read_line(), "sig a x");
  EXPECT_EQ(publisher.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(masked(listener.read_line()), "ok <token> 33");
}

TEST(LineSignals, TheyComeInOrder) {
  LineServer server;
  LineClient publisher = server.connect();
  LineClient a = listener_of(server, "a.>", "");
  LineClient b = listener_of(server, "a.*", "");
  int sent = 0;
  for (int round = 0; round < 20; ++round) {
    std::string batch;
    for (int i = 0; i < 100; ++i) batch += signal("a.b", std::to_string(sent + i));
    publisher.send(batch);
    EXPECT_EQ(publisher.read_lines(100), Lines(100, "ok 2"));
    for (int i = 0; i < 100; ++i, ++sent) {
      ASSERT_EQ(a.read_line(), "sig a.b " + std::to_string(sent));
      ASSERT_EQ(b.read_line(), "sig a.b " + std::to_string(sent));
    }
  }
}

// A listener that reads all the time is not slow, however much comes at once.
TEST(LineSignals, ABurstReachesAListenerThatReads) {
  LineServer server;
  LineClient publisher = server.connect();
  LineClient listener = listener_of(server, "a", "");
  std::string burst;
  for (int i = 0; i < 3000; ++i) burst += signal("a", std::to_string(i));
  publisher.send(burst);
  for (int i = 0; i < 3000; ++i) ASSERT_EQ(listener.read_line(), "sig a " + std::to_string(i));
}

TEST(LineSignals, AListenerThatNeverReadsIsClosed) {
  LineServer server;
  LineClient publisher = server.connect();
  LineClient slow = server.connect(4096);
  ASSERT_EQ(slow.ask(request("listen", "a", "")), "ok");
  LineClient other = listener_of(server, "a", "");
  const std::string payload(60'000, 'p');
  std::string reply = "ok 2";
  for (int i = 0; i < 2000 && reply == "ok 2"; ++i) {
    reply = publisher.ask(signal("a", payload));
    ASSERT_EQ(other.read_line(), "sig a " + payload);
  }
  EXPECT_EQ(reply, "ok 1");
}

}  // namespace
}  // namespace lockd
