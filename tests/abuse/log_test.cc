// Strangers who make the server log, and a log that nobody reads.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "support/server_process.h"

namespace lockd {
namespace {

// So many clients that come, say what no client says, and are closed.
void break_a_rule(const ServerProcess& server, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) {
    LineClient client = server.connect();
    EXPECT_EQ(client.ask(request("nonsense", "key", "")), "error");
  }
}

std::size_t lines_with(const std::string& log, std::string_view word) {
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = log.find(word, at)) != std::string::npos; ++at) ++lines;
  return lines;
}

TEST(Abuse, StrangersWhoFillTheLog) {
  const ServerProcess server;
  const auto began = SteadyClock::now();
  {
    const HonestClients honest(server, {.attack = "strangers who fill the log"});
    break_a_rule(server, scaled(std::size_t{2000}));
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - began).count() + 1;
  // Five a second, and one that says how many more.
  EXPECT_LE(lines_with(server.log(), "violation"), static_cast<std::size_t>(6 * (seconds + 1)));
  EXPECT_GE(lines_with(server.log(), "violation"), 5U);
}

TEST(Abuse, ALogThatNobodyReads) {
  const ServerProcess server({}, ServerProcess::Launch{.log_is_stuck = true});
  const HonestClients honest(server, {.attack = "a log that nobody reads"});
  break_a_rule(server, scaled(std::size_t{2000}));
}

}  // namespace
}  // namespace lockd
