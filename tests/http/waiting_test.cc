// Calls that wait in a queue, over HTTP and beside line clients, and those whose clients go away.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockd/engine.h"
#include "server/server.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr const char* kWait = R"("wait_ms":600000)";

class HttpWaiting : public testing::Test {
 protected:
  // Somebody has the lock `k`.
  void SetUp() override {
    token_ =
        client_.post("/v1/acquire", hold_json("k", "first", R"("ttl_ms":600000)")).number("token");
  }

  // Stands in the queue for `k`; known to be there on return.
  HttpClient wait(std::string_view holder, std::string_view more = kWait) {
    HttpClient waiter = server_.browse();
    waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", holder, more)));
    EXPECT_TRUE(await_line(client_, "k", ++waiters_));
    return waiter;
  }

  void release() { release("first", token_); }
  void release(std::string_view holder, std::int64_t token) {
    EXPECT_EQ(client_.post("/v1/release", hold_json("k", holder, token)).status, 200);
  }

  HttpServer server_;
  HttpClient client_ = server_.browse();
  std::int64_t token_ = 0;
  std::int64_t waiters_ = 0;
};

TEST_F(HttpWaiting, TheFirstInLineIsGranted) {
  HttpClient b = wait("b");
  HttpClient c = wait("c");
  EXPECT_EQ(
      shown(client_.post("/v1/acquire", hold_json("k", "d"))),
      R"(409 {"error":"held",)" + held_by("first", "exclusive") + R"(,"holders":1,"waiters":2})");
  release();
  const HttpReply grant = b.read_reply();
  EXPECT_EQ(shown(grant), R"(200 {"key":"k","holder":"b","token":<token>,"ttl_ms":33000,)"
                          R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  EXPECT_GT(grant.number("token"), token_);
  EXPECT_EQ(c.read_end(50ms), kSilence);
  release("b", grant.number("token"));
  EXPECT_GT(c.read_reply().number("token"), grant.number("token"));
}

// Over HTTP, over TCP and in the server's own process: one queue.
TEST_F(HttpWaiting, EverybodyStandsInOneQueue) {
  std::mutex mutex;
  std::vector<std::string> order;
  const auto note = [&](const std::string& who) {
    const std::lock_guard lock(mutex);
    order.push_back(who);
  };
  Engine& engine = server_.server().engine();
  std::vector<std::thread> threads;
  for (int round = 0; round < 3; ++round) {
    threads.emplace_back([&, name = "embedded" + std::to_string(round)] {
      const auto grant = engine.acquire({.keys = "k", .holder = name, .ttl = 600s, .wait = 600s});
      EXPECT_TRUE(grant);
      note("embedded");
      EXPECT_EQ(engine.release({.keys = "k", .holder = name, .fence = grant->fence}).outcome,
                Outcome::ok);
    });
    EXPECT_TRUE(await_line(client_, "k", ++waiters_));
    LineClient line = server_.connect();
    line.send(request("l", "k", "600 600"));
    EXPECT_TRUE(await_line(client_, "k", ++waiters_));
    threads.emplace_back([&, line = std::move(line)]() mutable {
      const std::string grant = line.read_line();
      EXPECT_EQ(masked(grant), "ok <token> 600");
      note("line");
      EXPECT_EQ(line.ask(request("r", "k", token_of(grant))), "ok");
    });
    const std::string name = "http" + std::to_string(round);
    threads.emplace_back([&, name, waiter = wait(name)]() mutable {
      const HttpReply grant = waiter.read_reply();
      EXPECT_EQ(grant.status, 200);
      note("http");
      EXPECT_EQ(waiter.post("/v1/release", hold_json("k", name, grant.number("token"))).status,
                200);
    });
  }
  release();
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> one_round = {"embedded", "line", "http"};
  ASSERT_EQ(order.size(), 9U);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], one_round[i % 3]) << i;
}

TEST_F(HttpWaiting, AWaitThatRanOutSaysWhoHolds) {
  const auto asked = SteadyClock::now();
  const HttpReply reply = client_.post("/v1/acquire", hold_json("k", "b", R"("wait_ms":100)"));
  EXPECT_GE(SteadyClock::now(), asked + 100ms);
  EXPECT_EQ(shown(reply), R"(409 {"error":"wait_timeout",)" + held_by("first", "exclusive") +
                              R"(,"holders":1,"waiters":0})");
  EXPECT_EQ(reply.json().at("held_by").at("fence").as_int64(), token_);
}

TEST_F(HttpWaiting, WhatIsPipelinedBehindAWaitIsAnsweredAfterIt) {
  HttpClient b = wait("b");
  b.send(b.written("GET", "/v1/fence?key=k") + b.written("GET", "/livez"));
  EXPECT_EQ(b.read_end(50ms), kSilence);
  release();
  const HttpReply grant = b.read_reply();
  EXPECT_EQ(grant.text("holder"), "b");
  EXPECT_EQ(b.read_reply().number("token"), grant.number("token"));
  EXPECT_EQ(shown(b.read_reply()), R"(200 {"status":"ok"})");
}

TEST_F(HttpWaiting, WhoGoesAwayGivesUpItsPlaceAtOnce) {
  HttpClient closed = wait("b");
  HttpClient reset = wait("c");
  HttpClient half_closed = wait("d");
  HttpClient last = wait("e");
  closed.close();
  ASSERT_TRUE(await_line(client_, "k", 3));
  reset.reset();
  ASSERT_TRUE(await_line(client_, "k", 2));
  half_closed.half_close();
  ASSERT_TRUE(await_line(client_, "k", 1));
  release();
  EXPECT_EQ(last.read_reply().text("holder"), "e");
}

// The server may hear of the release before it hears that the first in the queue has left: it must
// not hold what it was granted then. The next one gets it, long before any lease is over.
TEST_F(HttpWaiting, AGrantToOneThatHasLeftIsTakenBack) {
  constexpr const char* kLong = R"("ttl_ms":600000,"wait_ms":600000)";
  HttpClient releaser = server_.browse();
  std::string holder = "first";
  for (int round = 0; round < 200; ++round) {
    const std::string successor = "next" + std::to_string(round);
    HttpClient leaver = wait("leaver", kLong);
    HttpClient next = wait(successor, kLong);
    const std::string release =
        releaser.written("POST", "/v1/release", hold_json("k", holder, token_));
    round % 2 == 0 ? leaver.reset() : leaver.close();
    ASSERT_TRUE(releaser.send(release));
    ASSERT_EQ(releaser.read_reply().status, 200);
    const HttpReply grant = next.read_reply();
    ASSERT_EQ(grant.status, 200) << "round " << round << ": " << grant.body;
    ASSERT_GT(grant.number("token"), token_);
    token_ = grant.number("token");
    holder = successor;
    waiters_ = 0;
  }
}

}  // namespace
}  // namespace lockd
