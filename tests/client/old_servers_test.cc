// What is asked for in words that older servers do not know, and how it is told that they do not.
#include <gtest/gtest.h>

#include <atomic>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

const LockRequest kShared{.keys = shared("k"), .wait = 3600s, .lease = 30s};
const LockRequest kFour{.keys = semaphore("k", 8, 4), .wait = 3600s, .lease = 30s};

// One that closes after an error, as servers did and do, and one that goes on.
TEST(OldServers, ThatDoNotKnowTheWordsAreToldFromThoseThatStop) {
  for (const bool closes : {true, false}) {
    const LyingServer server([&](Peer& peer) {
      while (auto asked = peer.read_request()) {
        const bool is_known = asked->command == "barrier" || asked->argument == "3600 30";
        if (!peer.send(is_known ? grant(30s) : "error\n") || (closes && !is_known)) return;
      }
    });
    Client client(options_for(server));
    const auto shared = client.acquire(kShared);
    EXPECT_EQ(shared.outcome, Outcome::unsupported);
    EXPECT_EQ(shared.detail, "the server is too old for shared locks");
    EXPECT_EQ(client.acquire(kFour).detail, "the server is too old for several permits");
    LockRequest tried = kShared;
    tried.wait = 0s;
    EXPECT_EQ(client.acquire(tried).detail, "the server is too old for shared locks");
    EXPECT_EQ(client.enqueue(kShared).detail, "the server is too old for shared locks");
    EXPECT_EQ(client.enqueue(kFour).outcome, Outcome::unsupported);
    EXPECT_TRUE(client.acquire({.keys = "k", .wait = 3600s, .lease = 30s})) << "an old word";
  }
}

// The same answer as that of a server which is too old: to a wait it may mean either.
TEST(OldServers, AServerThatStopsDuringTheWaitIsAskedAgain) {
  std::atomic<int> tries = 0;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (peer.number() == 0) {
        peer.send("error\n");
        return;
      }
      const bool is_try = asked->argument == "0 30 shared";
      if (is_try) ++tries;
      peer.send(is_try ? "timeout\n" : grant(30s));
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire(kShared);
  ASSERT_TRUE(lock) << describe(lock);
  EXPECT_TRUE(lock->queued_again());
  EXPECT_GT(tries, 0) << "a try tells the two apart";
}

TEST(OldServers, ThatKnowNoSetsSaySo) {
  for (const char* answer :
       {"error\n", "ok 400 {\"error\":\"bad_request\",\"detail\":\"keys is unknown\"}\n"}) {
    const LyingServer server([&](Peer& peer) {
      while (peer.read_request()) peer.send(answer);
    });
    Client client(options_for(server));
    EXPECT_EQ(client.acquire({.keys = std::vector<KeyItem>{"a", "b"}}).outcome,
              Outcome::unsupported)
        << answer;
  }
}

}  // namespace
}  // namespace lockd::client
