// Clients that are reset at any point of a conversation leave nothing behind.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

constexpr std::size_t kCommonKeys = 50;

std::string common_key(std::size_t number) { return "k" + std::to_string(number % kCommonKeys); }

// Something to be in the middle of: holding, waiting, in a queue by two steps, listening.
std::string conversation(std::minstd_rand& random) {
  const std::string here = common_key(random() >> 8);
  const std::string there = common_key(random() >> 8);
  const std::array<std::string, 6> conversations{
      request("l", here, "60 1000") + request("l", there, "60 1000"),
      request("e", here, "1000") + request("w", here, "60"),
      request("sl", here, "60 3 1000") + request("sl", there, "60 3 1000"),
      request("se", here, "3 1000") + request("sw", here, "60"),
      request("listen", here + ".>", "g") + request("l", there, "60 1000"),
      request("l", here, "60 1000") + request("signal", there + ".x", "payload") +
          request("stats", "", ""),
  };
  return conversations[(random() >> 8) % conversations.size()];
}

// Each sends a part of a conversation, which ends wherever it happens to; now and then one goes
// while the others still talk.
void talk_and_be_killed(Swarm& victims, std::minstd_rand& random) {
  for (std::size_t i = 0; i < victims.size(); ++i) {
    const std::string all = conversation(random);
    const bool whole = (random() >> 8) % 2 == 0;
    victims.send(i, whole ? all : all.substr(0, 1 + (random() >> 8) % all.size()));
    if ((random() >> 8) % 4 == 0) victims.reset((random() >> 8) % (i + 1));
  }
  for (std::size_t i = 0; i < victims.size(); ++i) {
    if (victims.is_open(i)) victims.reset(i);
  }
}

TEST(Killed, AThousandInTheMiddleOfARequest) {
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::minstd_rand random(seed);
    Swarm victims(server.port());
    ASSERT_TRUE(victims.connect(connections_possible(scaled(1000))));
    {
      const HonestClients honest(server, {.attack = "peers that are killed"});
      talk_and_be_killed(victims, random);
      honest.await_rounds(10);
    }
    const std::string stats = await_stats(observer, "{\"connections\":1,");
    ASSERT_NE(stats.find(R"({"connections":1,"locks":[],"semaphores":[],)"), std::string::npos)
        << "seed " << seed << ": " << stats;
    ASSERT_NE(stats.find(R"("signal_channels":[])"), std::string::npos) << stats;
    for (std::size_t i = 0; i < kCommonKeys; ++i) {
      const std::string lock = observer.ask(request("l", common_key(i), "0 60"));
      ASSERT_EQ(masked(lock), "ok <token> 60");
      ASSERT_EQ(observer.ask(request("r", common_key(i), token_of(lock))), "ok");
      const std::string semaphore = observer.ask(request("sl", common_key(i), "0 2 60"));
      ASSERT_EQ(masked(semaphore), "ok <token> 60");
      ASSERT_EQ(observer.ask(request("sr", common_key(i), token_of(semaphore))), "ok");
    }
  }
}

}  // namespace
}  // namespace lockd
