// Very many connections at once.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "load/waiters.h"
#include "support/server_process.h"

namespace lockd {
namespace {

// One after the other, each known to be in the queue before the next asks: the order is certain.
void fill_queue(Swarm& crowd, std::size_t count, LineClient& observer) {
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(crowd.send(i, request("l", "k", "1000 1000")));
    ASSERT_TRUE(await_waiters(observer, "k", i + 1));
  }
}

// Each has its turn, in the order of the queue, and nobody else hears anything meanwhile.
void expect_turns_in_order(Swarm& crowd, std::size_t count) {
  std::string last_token;
  for (std::size_t turn = 0; turn < count; ++turn) {
    bool granted = false;
    bool released = turn == 0;  // by the one before
    while (!granted || !released) {
      const auto arrival = crowd.next();
      ASSERT_TRUE(arrival.has_value()) << "turn " << turn;
      if (!granted && arrival->who == turn) {
        ASSERT_EQ(masked(arrival->line), "ok <token> 1000");
        const std::string token = token_of(arrival->line);
        ASSERT_LT(last_token, token);
        last_token = token;
        granted = true;
      } else {
        ASSERT_FALSE(released) << turn << " is due; " << arrival->who << ": " << arrival->line;
        ASSERT_EQ(arrival->who, turn - 1) << turn << " is due; " << arrival->line;
        ASSERT_EQ(arrival->line, "ok");
        released = true;
      }
    }
    ASSERT_TRUE(crowd.send(turn, request("r", "k", last_token)));
  }
  ASSERT_EQ(crowd.read_line(count - 1), "ok");
}

void expect_all_answer(Swarm& crowd) {
  for (std::size_t i = 0; i < crowd.size(); ++i) ASSERT_TRUE(crowd.send(i, kPing));
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    const auto arrival = crowd.next();
    ASSERT_TRUE(arrival.has_value()) << i << " answers";
    ASSERT_EQ(arrival->line, "ok") << arrival->who;
  }
}

TEST(Crowd, TenOfNineteenThousandWaitOnOneKeyAndAreServedInOrder) {
  const std::size_t connections = connections_possible(scaled(19'000));
  const std::size_t waiters = connections * 10 / 19;
  ServerProcess server({"--threads", "4", "--read-timeout", "600"});
  LineClient observer = server.connect();
  const std::string token = token_of(observer.ask(request("l", "k", "0 1000")));
  ASSERT_FALSE(token.empty());
  const std::size_t descriptors = server.descriptors();
  const std::size_t memory_kib = server.memory_kib();
  {
    Swarm crowd(server.port());
    ASSERT_TRUE(crowd.connect(connections));
    ASSERT_NO_FATAL_FAILURE(expect_all_answer(crowd));
    const std::size_t used_kib = server.memory_kib() - memory_kib;
    std::printf("%zu connections: %zu bytes of memory each\n", connections,
                used_kib * 1024 / connections);
    if (is_full_size()) {
      EXPECT_LE(used_kib, connections * 8);
    }
    ASSERT_NO_FATAL_FAILURE(fill_queue(crowd, waiters, observer));
    ASSERT_EQ(observer.ask(request("r", "k", token)), "ok");
    ASSERT_NO_FATAL_FAILURE(expect_turns_in_order(crowd, waiters));
    ASSERT_NO_FATAL_FAILURE(expect_all_answer(crowd));
  }
  const std::string stats = await_stats(observer, "{\"connections\":1,");
  EXPECT_NE(stats.find("{\"connections\":1,\"locks\":[],"), std::string::npos) << stats;
  EXPECT_LE(server.await_descriptors(descriptors), descriptors);
}

// All of them leave at once, waiting, and nobody else notices.
TEST(Crowd, AThousandWaitersLeaveAtOnce) {
  ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  const HonestClients honest(server, {.attack = "a crowd that leaves"});
  ASSERT_EQ(masked(observer.ask(request("l", "k", "0 1000"))), "ok <token> 1000");
  const std::size_t waiters = connections_possible(scaled(1000));
  {
    Swarm crowd(server.port());
    ASSERT_TRUE(crowd.connect(waiters));
    for (std::size_t i = 0; i < waiters; ++i) {
      ASSERT_TRUE(crowd.send(i, request("l", "k", "1000 1000")));
    }
    ASSERT_TRUE(await_waiters(observer, "k", waiters));
  }
  await_waiters(observer, "k", 0);
  honest.await_rounds(10);
}

}  // namespace
}  // namespace lockd
