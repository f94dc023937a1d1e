// Who we say we are, to servers that know no such thing, and what servers say, unasked, of what is
// lost: early, late, in pieces, of others, and in no sense.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "client/false_holds_fixture.h"
#include "client/identity.h"
#include "lockd/client/client.h"
#include "support/lying_server.h"

namespace lockd::client {
namespace {

constexpr auto kHearsAll = LyingServer::Hears::all;

// What a server was asked, on all of its connections: "0 client ann deploy".
class Heard {
 public:
  void put(const Peer& peer, const Asked& asked) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::to_string(peer.number()) + " " + asked.command + " " + asked.key + " " +
                   asked.argument);
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

// Answers as servers did before there was `client`, unless it is one that knows it.
LyingServer::Script hearing(Heard& heard, bool knows_client) {
  return [&heard, knows_client](Peer& peer) {
    while (auto asked = peer.read_request()) {
      heard.put(peer, *asked);
      const bool is_unknown = asked->command == "client" && !knows_client;
      if (!peer.send(is_unknown ? "error\n" : "ok\n") || is_unknown) return;
    }
  };
}

using Lines = std::vector<std::string>;

TEST(Introductions, ComeBehindTheSecretAndBeforeAnyRequest) {
  Heard heard;
  const LyingServer server(hearing(heard, true), kHearsAll);
  ConnectOptions options = patient();
  options.auth_token = "s3cret";
  options.name = "ann";
  options.note = "deploy";
  EXPECT_TRUE(connect(server, options).ping());
  EXPECT_EQ(heard.all(), (Lines{"0 auth  s3cret", "0 client ann deploy", "0 ping  "}));
}

// A server that waits for the second before it answers the first is no trouble.
TEST(Introductions, LeaveTogetherWithTheSecret) {
  const LyingServer server(
      [](Peer& peer) {
        peer.read_request();
        peer.read_request();
        peer.send_bytewise("ok\nok\n");
        while (peer.read_request()) peer.send("ok\n");
      },
      kHearsAll);
  ConnectOptions options = patient();
  options.auth_token = "s3cret";
  EXPECT_TRUE(connect(server, options).ping());
}

TEST(Introductions, AreOfTheProcessUnlessToldOtherwise) {
  Heard heard;
  const LyingServer server(hearing(heard, true), kHearsAll);
  connect(server);
  ConnectOptions nobody = patient();
  nobody.name = "";
  EXPECT_TRUE(connect(server, nobody).ping());
  EXPECT_EQ(heard.all(), (Lines{"0 client " + default_name() + " " + default_note(), "1 ping  "}));
}

TEST(Introductions, ThatNoServerTakesAreNotSent) {
  const LyingServer server([](Peer& peer) { peer.stay_silent(); });
  for (const std::string& bad : {std::string(257, 'x'), std::string("a\nb"), std::string("\xff")}) {
    ConnectOptions options = patient();
    options.name = bad;
    EXPECT_EQ(Connection::open(server.address(), options).outcome, Outcome::invalid);
    options.name = "ann";
    options.note = bad;
    EXPECT_EQ(Connection::open(server.address(), options).outcome, Outcome::invalid);
  }
}

// --- what is lost ---

std::string lost(const std::string& rest) { return "lost " + rest + "\n"; }

// Grants for an hour, says this at once, and then answers whatever it is asked.
LyingServer::Script saying(std::string before, std::string behind) {
  return [before = std::move(before), behind = std::move(behind)](Peer& peer) {
    while (auto asked = peer.read_request()) {
      const bool takes = asked->command == "l" || asked->command == "w";
      if (takes) {
        peer.send(before + grant(3600s));
        peer.send_bytewise(behind);
      } else {
        peer.send(asked->command == "e" ? "acquired" + grant(3600s).substr(2) + behind : "ok\n");
      }
    }
  };
}

TEST(Losses, AreActedOnAtOnce) {
  for (const auto& [cause, detail] :
       {std::pair{" expired k", "the lease ran out"},
        std::pair{" revoked a key with blanks", "an admin has ended it"},
        std::pair{" of_a_later_version k", "the server says that it is held no more"},
        std::pair{"", "the server says that it is held no more"}}) {
    std::atomic<bool> tell = false;
    const LyingServer server([&, cause = cause](Peer& peer) {
      if (!peer.read_request()) return;
      peer.send(grant(3600s));
      if (eventually([&] { return tell.load(); }))
        peer.send_bytewise(lost(kToken + std::string(cause)));
      peer.stay_silent();
    });
    Client client(options_for(server));
    Told told;
    HeldLock lock = acquire(client, told);
    EXPECT_TRUE(lock.is_held());
    const std::stop_token stop = lock.lost();
    tell = true;
    ASSERT_TRUE(eventually([&] { return told.times > 0; })) << cause;
    EXPECT_FALSE(lock.is_held());
    EXPECT_TRUE(stop.stop_requested());
    ASSERT_TRUE(lock.loss());
    EXPECT_EQ(lock.loss()->outcome, Outcome::lost);
    EXPECT_EQ(lock.loss()->detail, detail);
    EXPECT_EQ(lock.release().detail, detail);
    EXPECT_EQ(told.times, 1);
  }
}

// With the grant, or a moment later: it is not handed out, or lost at once.
TEST(Losses, ThatAreSaidWithTheGrantEndItOneWayOrTheOther) {
  const LyingServer server(saying("", lost(kToken + std::string(" expired k"))));
  Client client(options_for(server));
  for (int i = 0; i < 20; ++i) {
    Told told;
    auto lock = client.acquire({.keys = "k", .wait = 60s, .on_lost = told.callback()});
    if (!lock) {
      EXPECT_EQ(lock.outcome, Outcome::lease_expired) << describe(lock);
    } else {
      EXPECT_TRUE(eventually([&] { return told.times > 0; }));
      EXPECT_EQ(lock->loss()->outcome, Outcome::lost);
    }
  }
}

TEST(Losses, ExplainAReleaseThatCameTooLate) {
  const LyingServer server([](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "l") peer.send(grant(3600s));
      if (asked->command == "r") peer.send(lost(kToken + std::string(" revoked k")) + "error\n");
    }
  });
  Client client(options_for(server));
  Told told;
  HeldLock lock = acquire(client, told);
  const Status released = lock.release();
  EXPECT_EQ(released.outcome, Outcome::lost);
  EXPECT_EQ(released.detail, "an admin has ended it");
}

}  // namespace
}  // namespace lockd::client
