// What is asked for in words that older servers do not know, and how it is told that they do not.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

// What a server was asked, introductions aside: "l k 5 30 shared".
class Requests {
 public:
  void put(const Asked& asked) {
    const std::lock_guard lock(mutex_);
    all_.push_back(asked.command + " " + asked.key + " " + asked.argument);
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }
  bool ever_has(std::string_view word) const {
    const auto requests = all();
    return std::any_of(requests.begin(), requests.end(), [&](const std::string& request) {
      return request.find(word) != std::string::npos;
    });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

using Texts = std::vector<std::string>;

const LockRequest kShared{.key = "k", .wait = 3600s, .lease = 30s, .mode = Mode::shared};
const LockRequest kFour{
    .key = "k", .wait = 3600s, .lease = 30s, .kind = Kind::semaphore, .limit = 8, .permits = 4};

TEST(OldServers, HearNewWordsOnlyWhenTheyAreUsed) {
  Requests requests;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      requests.put(*asked);
      const bool enqueues = asked->command.ends_with("e");
      peer.send(asked->command.ends_with("r") ? "ok\n"
                : enqueues                    ? "acquired " + grant(30s).substr(3)
                                              : grant(30s));
    }
  });
  Client client(options_for(server));
  const LockRequest lock{.key = "k", .wait = 5s};
  const LockRequest slot{.key = "k", .lease = 30s, .kind = Kind::semaphore, .limit = 8};
  for (const LockRequest& request : {lock, slot, kShared, kFour}) {
    EXPECT_TRUE(client.acquire(request)->release());
    EXPECT_TRUE(client.enqueue(request)->wait(0s)->release());
  }
  const std::string token = kToken;
  EXPECT_EQ(
      requests.all(),
      (Texts{"l k 5", "r k " + token, "e k ", "r k " + token, "sl k 0 8 30", "sr k " + token,
             "se k 8 30", "sr k " + token, "l k 3600 30 shared", "r k " + token, "e k 30 shared",
             "r k " + token, "sl k 3600 8 30 4", "sr k " + token, "se k 8 30 4", "sr k " + token}));
}

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
    EXPECT_TRUE(client.acquire({.key = "k", .wait = 3600s, .lease = 30s})) << "an old word";
  }
}

// What every request of an acquisition ended with, in their order.
TEST(Secrets, AreKeptWhileTheSameIsAskedForAndThenFresh) {
  std::mutex mutex;
  Texts secrets;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l" || asked->command == "e") {
        const std::lock_guard lock(mutex);
        secrets.push_back(asked->secret);
      }
      if (peer.number() % 2 == 0) {
        if (asked->command != "e") return;
        peer.send("queued\n");
      } else {
        peer.send(asked->command == "r" ? "ok\n" : grant(30s));
      }
    }
  });
  Client client(options_for(server));
  const LockRequest request{.key = "k", .wait = 60s, .lease = 30s};
  auto first = client.acquire(request);
  ASSERT_TRUE(first) << describe(first);
  EXPECT_TRUE(first->queued_again());
  auto place = client.enqueue(request);
  ASSERT_TRUE(place) << describe(place);
  auto second = place->wait(60s);
  ASSERT_TRUE(second) << describe(second);
  EXPECT_TRUE(second->queued_again());
  const std::lock_guard lock(mutex);
  ASSERT_EQ(secrets.size(), 4u);
  EXPECT_EQ(secrets[0].size(), std::string_view("as=0123456789abcdef").size());
  EXPECT_EQ(secrets[0], secrets[1]);
  EXPECT_EQ(secrets[2], secrets[3]);
  EXPECT_NE(secrets[0], secrets[2]);
}

TEST(Secrets, AreNotSaidToServersThatKnowNoNames) {
  std::atomic<int> acquired = 0;
  const LyingServer server(
      [&](Peer& peer) {
        while (auto asked = peer.read_request()) {
          if (asked->command == "client") {
            peer.send("error\n");
            return;
          }
          EXPECT_EQ(asked->secret, "");
          if (asked->command == "l") ++acquired;
          peer.send(asked->command == "l" ? grant(30s) : "ok\n");
        }
      },
      LyingServer::Hears::all);
  Client client(options_for(server));
  EXPECT_TRUE(client.acquire({.key = "k", .lease = 30s}));
  EXPECT_EQ(acquired, 1);
}

TEST(OldServers, ThatKnowNoNamesAreNotEvenAsked) {
  Requests requests;
  const LyingServer server(
      [&](Peer& peer) {
        while (auto asked = peer.read_request()) {
          if (asked->command == "client") {
            peer.send("error\n");
            return;
          }
          requests.put(*asked);
          peer.send("error\n");
        }
      },
      LyingServer::Hears::all);
  Client client(options_for(server));
  EXPECT_EQ(client.acquire(kShared).detail, "the server is too old for shared locks");
  EXPECT_EQ(client.enqueue(kFour).detail, "the server is too old for several permits");
  EXPECT_EQ(requests.all(), Texts{});
}

// The same answer as that of a server which is too old: to a wait it may mean either.
TEST(OldServers, AServerThatStopsDuringTheWaitIsAskedAgain) {
  Requests requests;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      requests.put(*asked);
      if (peer.number() == 0) {
        peer.send("error\n");
        return;
      }
      peer.send(asked->argument.starts_with("0 ") ? "timeout\n" : grant(30s));
    }
  });
  Client client(options_for(server));
  const auto lock = client.acquire(kShared);
  ASSERT_TRUE(lock) << describe(lock);
  EXPECT_TRUE(lock->queued_again());
  EXPECT_TRUE(requests.ever_has("l k 0 30 shared")) << "a try tells the two apart";
}

}  // namespace
}  // namespace lockd::client
