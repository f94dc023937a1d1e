// Waiters that vanish at the moment of their turn, and lines that run over several loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "load/scale.h"
#include "load/swarm.h"
#include "load/waiters.h"
#include "support/server_process.h"

namespace lockd {
namespace {

const std::string kWait = request("l", "k", "1000 1000");

void spin_for(std::chrono::microseconds time) {
  const auto until = SteadyClock::now() + time;
  while (SteadyClock::now() < until) {
  }
}

void vanish(Swarm& swarm, std::size_t who, unsigned how) {
  switch (how % 3) {
    case 0: return swarm.reset(who);
    case 1: return swarm.close(who);
    default: return swarm.half_close(who);
  }
}

// Whichever comes first, the turn or the end: the lock goes to the next who is still there.
TEST(Ghosts, ALockIsNeverLostToOne) {
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  std::minstd_rand random(7);
  for (unsigned round = 0; round < scaled(200); ++round) {
    Swarm line(server.port());
    enum : std::size_t { holder, ghost, next };
    const bool somebody_is_next = round % 4 != 0;
    ASSERT_TRUE(line.connect(3));
    const std::string token = token_of(line.ask(holder, request("l", "k", "30 1000")));
    ASSERT_FALSE(token.empty()) << "in round " << round;
    line.send(ghost, kWait);
    ASSERT_TRUE(await_waiters(observer, "k", 1));
    if (somebody_is_next) {
      line.send(next, kWait);
      ASSERT_TRUE(await_waiters(observer, "k", 2));
    }
    const std::chrono::microseconds between((random() >> 8) % 100);
    if ((random() >> 8) % 2 == 0) {
      line.send(holder, request("r", "k", token));
      spin_for(between);
      vanish(line, ghost, round);
    } else {
      vanish(line, ghost, round);
      spin_for(between);
      line.send(holder, request("r", "k", token));
    }
    ASSERT_EQ(line.read_line(holder), "ok");
    const std::size_t heir = somebody_is_next ? next : holder;
    if (!somebody_is_next) line.send(holder, kWait);
    const std::string grant = line.read_line(heir);
    ASSERT_EQ(masked(grant), "ok <token> 1000") << "in round " << round;
    ASSERT_EQ(line.ask(heir, request("r", "k", token_of(grant))), "ok");
  }
}

// How many of the loops serve one of `count` clients that have just connected.
std::size_t loops_of(const ServerProcess& server, LineClient& observer, Swarm& swarm,
                     std::size_t count) {
  await_stats(observer, "{\"connections\":1,");
  const std::vector<std::size_t> before = server.watched_by_loops();
  EXPECT_TRUE(swarm.connect(count));
  await_stats(observer, "{\"connections\":" + std::to_string(1 + count) + ",");
  const std::vector<std::size_t> after = server.watched_by_loops();
  EXPECT_EQ(after.size(), before.size());
  std::size_t loops = 0;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (after[i] > before[i]) ++loops;
  }
  return loops;
}

TEST(Ghosts, FiftyWaitersOverSeveralLoopsAreServedInOrder) {
  constexpr std::size_t kWaiters = 50;
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  // Which loop accepts is the system's choice: tried again until it is not always the same.
  auto swarm = std::make_unique<Swarm>(server.port());
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  while (loops_of(server, observer, *swarm, kWaiters) < 2 && SteadyClock::now() < deadline) {
    swarm = std::make_unique<Swarm>(server.port());
  }
  Swarm& line = *swarm;

  for (int round = 0; round < 5; ++round) {
    const std::string token = token_of(observer.ask(request("l", "k", "30 1000")));
    for (std::size_t i = 0; i < kWaiters; ++i) {
      line.send(i, kWait);
      ASSERT_TRUE(await_waiters(observer, "k", i + 1));
    }
    ASSERT_EQ(observer.ask(request("r", "k", token)), "ok");
    for (std::size_t i = 0; i < kWaiters; ++i) {
      // Nobody but the one whose turn it is hears anything.
      const auto grant = line.next();
      ASSERT_TRUE(grant.has_value());
      ASSERT_EQ(grant->who, i) << grant->line;
      ASSERT_EQ(masked(grant->line), "ok <token> 1000");
      line.send(i, request("r", "k", token_of(grant->line)));
      ASSERT_EQ(line.read_line(i), "ok");
    }
  }
}

}  // namespace
}  // namespace lockd
