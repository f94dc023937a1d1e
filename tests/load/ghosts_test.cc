// Waiters that vanish at the moment of their turn.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <random>
#include <string>

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

}  // namespace
}  // namespace lockd
