// The end of input: what was complete is answered first, as for `printf ... | nc`.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

Lines replies_to(const std::string& requests) {
  LineServer server;
  LineClient client = server.connect();
  client.send(requests);
  client.half_close();
  Lines replies = client.read_to_end();
  for (std::string& reply : replies) reply = masked(reply);
  return replies;
}

TEST(LineEndOfInput, WhatWasCompleteIsAnswered) {
  EXPECT_EQ(replies_to(""), (Lines{"<end>"}));
  EXPECT_EQ(replies_to("ping\n\n\n"), (Lines{"ok", "<end>"}));
  EXPECT_EQ(replies_to("l\nk\n0\nl\nk\n0\nping\n\n\n"),
            (Lines{"ok <token> 33", "timeout", "ok", "<end>"}));
  EXPECT_EQ(replies_to("e\nk\n\nw\nk\n5\nw\nk\n5\n"),
            (Lines{"acquired <token> 33", "ok <token> 33", "error", "<end>"}));
  EXPECT_EQ(replies_to("ping\n\n\nx\n\n\n"), (Lines{"ok", "error", "<end>"}));
}

TEST(LineEndOfInput, HalfARequestIsNot) {
  EXPECT_EQ(replies_to("ping\n\n\nping\n\n"), (Lines{"ok", "<end>"}));
  EXPECT_EQ(replies_to("pi"), (Lines{"<end>"}));
}

TEST(LineEndOfInput, StatisticsAreAnswered) {
  const std::string empty =
      R"(ok {"connections":1,"locks":[],"semaphores":[],"idle_locks":[],"idle_semaphores":[],)"
      R"("signal_channels":[]})";
  EXPECT_EQ(replies_to("stats\n\n\n"), (Lines{empty, "<end>"}));
  EXPECT_EQ(replies_to("ping\n\n\nstats\n\n\nping\n\n\nstats\n\n\n"),
            (Lines{"ok", empty, "ok", empty, "<end>"}));
}

// The request that blocks never has a reply; those before it do.
TEST(LineEndOfInput, WhatCameBeforeARequestThatBlocksIsAnswered) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(replies_to("ping\n\n\nl\nk\n0\nl\nk\n1000\nping\n\n\n"),
              (Lines{"ok", "ok <token> 33", "<end>"}));
  }
}

// A reader that takes its time: the answers are more than the sockets hold, and the end of input
// comes while they are stuck.
TEST(LineEndOfInput, ASlowReaderHasAllItsAnswers) {
  Options options = line_options();
  options.write_timeout = 20s;
  LineServer server(options);
  LineClient holder = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0 1000"))), "ok <token> 1000");
  std::vector<std::thread> readers;
  for (std::size_t count = 300'000; count <= 500'000; count += 50'000) {
    readers.emplace_back([&server, count] {
      LineClient client = server.connect(4096);
      std::thread sender([&] {
        client.send(repeated("l\nk\n0\n", count));
        client.half_close();
      });
      std::this_thread::sleep_for(1500ms);
      const Lines replies = client.read_to_end();
      sender.join();
      EXPECT_EQ(replies.size(), count + 1);
      EXPECT_EQ(replies.back(), kEnd);
    });
  }
  for (std::thread& reader : readers) reader.join();
}

// More than is read while a request blocks: the end is known before all that came before it.
TEST(LineEndOfInput, WhatIsStillInTheSocketIsAnswered) {
  LineServer server;
  LineClient holder = server.connect();
  take_many(holder, 200);
  constexpr std::size_t kReports = 400;
  constexpr std::size_t kPings = 250'000;
  LineClient client = server.connect();
  std::thread sender([&] {
    client.send(repeated("stats\n\n\n", kReports) + repeated("ping\n\n\n", kPings));
    client.half_close();
  });
  const Lines replies = client.read_to_end();
  sender.join();
  EXPECT_EQ(replies.size(), kReports + kPings + 1);
  EXPECT_EQ(replies.back().substr(0, 20), kEnd);
}

// The write timeout says how long output may stay unsent, also when it is the last.
TEST(LineEndOfInput, ASlowReaderIsNotCutOff) {
  Options options = line_options();
  options.write_timeout = 20s;
  LineServer server(options);
  LineClient holder = server.connect();
  take_many(holder, 500);
  std::vector<LineClient> clients;
  for (const std::string last : {"ping\n\n\n", "nonsense\n\n\n"}) {
    clients.push_back(server.connect(4096));
    clients.back().send(repeated("stats\n\n\n", 40) + last);
    clients.back().half_close();
  }
  std::this_thread::sleep_for(1500ms);  // longer than a close lingers
  for (LineClient& client : clients) {
    const Lines replies = client.read_to_end();
    EXPECT_EQ(replies.size(), 42U);
    EXPECT_EQ(replies.back().substr(0, 20), kEnd);
  }
}

}  // namespace
}  // namespace lockd
