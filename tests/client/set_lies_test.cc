// Several keys at once, at servers that lie, lead no more, leave, or are too old.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/false_holds_fixture.h"

namespace lockd::client {
namespace {

const SetRequest kPair{.keys = {"a", "b"}, .lease = 8s};

std::string grant_of_set(std::chrono::milliseconds lease, Fence fence = 7) {
  return R"(ok 200 {"keys":["a","b"],"holder":"x","token":)" + std::to_string(fence) +
         R"(,"ttl_ms":)" + std::to_string(lease.count()) + "}\n";
}

const char* const kReleased = "ok 200 {\"released\":[\"a\",\"b\"],\"not_held\":[]}\n";

// Calls of the API that a server was asked: "POST /v1/acquire {...}".
class Calls {
 public:
  void put(const Asked& asked) {
    const std::lock_guard lock(mutex_);
    all_.push_back(asked.key + " " + asked.argument);
  }
  int count(std::string_view path) const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::count_if(all_.begin(), all_.end(), [&](const std::string& call) {
      return call.starts_with("POST /v1/" + std::string(path) + " ");
    }));
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> all_;
};

std::string holder_in(const std::string& call) {
  const std::size_t start = call.find("\"holder\":\"") + 10;
  return call.substr(start, call.find('"', start) - start);
}

TEST(SetLies, AServerThatKnowsNoClientsIsNotAsked) {
  std::atomic<int> asked = 0;
  const LyingServer server(
      [&](Peer& peer) {
        while (auto request = peer.read_request()) {
          if (request->command != "client") ++asked;
          peer.send("error\n");
          return;
        }
      },
      LyingServer::Hears::all);
  Client client(options_for(server));
  const auto held = client.acquire_all(kPair);
  EXPECT_EQ(held.outcome, Outcome::unsupported) << describe(held);
  EXPECT_EQ(asked, 0);
}

TEST(SetLies, AServerThatIsTooOldSaysSo) {
  for (const char* answer :
       {"error\n", "ok 400 {\"error\":\"bad_request\",\"detail\":\"keys is unknown\"}\n"}) {
    const LyingServer server([&](Peer& peer) {
      while (peer.read_request()) peer.send(answer);
    });
    Client client(options_for(server));
    EXPECT_EQ(client.acquire_all(kPair).outcome, Outcome::unsupported) << answer;
  }
}

TEST(SetLies, AnswersThatMakeNoSenseAreNoGrants) {
  for (const char* answer : {"ok\n", "ok 200\n", "ok 200 {\n", "ok 200 {}\n", "ok 200 []\n",
                             "ok 200 {\"token\":1,\"ttl_ms\":999}\n", "ok 500 {}\n", "lost\n"}) {
    const LyingServer server([&](Peer& peer) {
      while (peer.read_request()) peer.send(answer);
    });
    Client client(options_for(server));
    EXPECT_EQ(client.acquire_all(kPair).outcome, Outcome::garbled) << answer;
  }
}

TEST(SetLies, AreLostWhenNoRenewalIsConfirmedAndNotBefore) {
  const LyingServer server([](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->key == "POST /v1/acquire") peer.send(grant_of_set(1s));
    }
  });
  Told told;
  Client client(options_for(server));
  const auto before = BootClock::now();
  const auto held = client.acquire_all({.keys = {"a", "b"}, .on_lost = told.callback()});
  ASSERT_TRUE(held) << describe(held);
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.status.outcome, Outcome::unsure);
  EXPECT_EQ(told.status.detail, "the lease of a, b ran out without a confirmed renewal");
  EXPECT_GE(told.at - before, 1s);
  EXPECT_FALSE(held->is_held());
}

// The connection ends before the answer: the same name asks again, and gets its own grant back.
TEST(SetLies, AskAgainUnderTheSameName) {
  Calls calls;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      calls.put(*asked);
      if (calls.all().size() == 1) return;
      peer.send(asked->key == "POST /v1/release" ? kReleased : grant_of_set(60s));
    }
  });
  Client client(options_for(server));
  SetRequest request = kPair;
  request.wait = 60s;
  auto held = client.acquire_all(request);
  ASSERT_TRUE(held) << describe(held);
  EXPECT_TRUE(held->queued_again());
  EXPECT_TRUE(held->release());
  const auto all = calls.all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(holder_in(all[0]), holder_in(all[1]));
  EXPECT_EQ(holder_in(all[0]), holder_in(all[2]));
}

// The grant was under way when its client left: nobody heard of it, and no lease is waited for.
TEST(SetLies, ThatWereGivenUpAreWithdrawn) {
  Calls calls;
  const LyingServer server([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      calls.put(*asked);
      if (peer.number() == 0) return peer.stay_silent();
      peer.send(asked->key == "POST /v1/release" ? kReleased : grant_of_set(60s));
    }
  });
  Client client(options_for(server));
  Result<HeldLock> got;
  std::jthread waiter([&](const std::stop_token& stop) {
    got = client.acquire_all({.keys = {"a", "b"}, .wait = kDurationMax}, stop);
  });
  ASSERT_TRUE(eventually([&] { return calls.count("acquire") == 1; }));
  waiter.request_stop();
  waiter.join();
  EXPECT_EQ(got.outcome, Outcome::cancelled);
  const auto all = calls.all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].find("wait_ms"), std::string::npos) << "nobody waits any more";
  EXPECT_NE(all[2].find(R"("token":7})"), std::string::npos) << all[2];
  for (const std::string& call : all) EXPECT_EQ(holder_in(call), holder_in(all[0]));
}

TEST(SetLies, AreKeptByTheNextLeader) {
  Calls first;
  Calls second;
  const char* const follows = "ok 503 {\"error\":\"not_leader\",\"detail\":\"it follows\"}\n";
  const LyingServer one([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      if (asked->command == "api") first.put(*asked);
      const bool leads = asked->command == "barrier" || asked->key == "POST /v1/acquire";
      peer.send(asked->command == "barrier" ? "ok\n" : leads ? grant_of_set(6s) : follows);
    }
  });
  const LyingServer two([&](Peer& peer) {
    while (auto asked = peer.read_request()) {
      second.put(*asked);
      peer.send(asked->key == "POST /v1/release" ? kReleased : grant_of_set(6s));
    }
  });
  Client client({.cluster = {one.address(), two.address()},
                 .connect = {.connect_timeout = 60s, .reply_timeout = 60s},
                 .release_timeout = 60s});
  auto held = client.acquire_all({.keys = {"a", "b"}, .lease = 6s});
  ASSERT_TRUE(held) << describe(held);
  const auto granted_until = held->expires_at();
  ASSERT_TRUE(eventually([&] { return held->expires_at() > granted_until; }));
  EXPECT_GE(first.count("renew"), 1);
  EXPECT_GE(second.count("renew"), 1);
  EXPECT_TRUE(held->release());
  EXPECT_EQ(second.count("release"), 1);
}

}  // namespace
}  // namespace lockd::client
