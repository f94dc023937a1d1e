// The links of the server: what the profile of one name answers otherwise than that of another.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "support/line_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class Profiles : public testing::TestWithParam<const char*> {
 protected:
  bool is_dflockd() const { return std::string(GetParam()) == "dflockd"; }
  LineClient connect() const { return LineClient(server_.port(), 0, /*tls=*/false); }

  ServerProcess server_{
      {"--max-waiters", "1", "--gc-interval", "0.05", "--gc-max-idle", "1"},
      {.program = std::filesystem::path(LOCKD_TEST_SERVER).replace_filename(GetParam()).string()}};
};
INSTANTIATE_TEST_SUITE_P(OfTheServer, Profiles, testing::Values("lockd", "dflockd"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Profiles, TheLimitOfAnIdleSemaphoreIsFreeOrKeptUntilTheKeyIsForgotten) {
  LineClient client = connect();
  const std::string token = token_of(client.ask(request("sl", "pool", "0 3")));
  ASSERT_EQ(client.ask(request("sr", "pool", token)), "ok");
  const std::string other = client.ask(request("sl", "pool", "0 5"));
  if (!is_dflockd()) {
    EXPECT_EQ(masked(other), "ok <token> 33");
    return;
  }
  EXPECT_EQ(other, "error_limit_mismatch");
  EXPECT_EQ(client.ask(request("se", "pool", "5")), "error_limit_mismatch");
  EXPECT_EQ(masked(client.ask(request("l", "pool", "0"))), "ok <token> 33") << "a lock, not it";
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  std::string later;
  do {
    std::this_thread::sleep_for(5ms);
    later = client.ask(request("sl", "pool", "0 5"));
  } while (later == "error_limit_mismatch" && LineClient::Clock::now() < deadline);
  EXPECT_EQ(masked(later), "ok <token> 33");
}

TEST_P(Profiles, ATryAtAFullQueueTimesOutOrIsRefused) {
  LineClient holder = connect();
  LineClient waiter = connect();
  LineClient other = connect();
  const std::string full = is_dflockd() ? "error_max_waiters" : "timeout";
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  EXPECT_EQ(other.ask(request("l", "k", "0")), "timeout");
  ASSERT_EQ(waiter.ask(request("e", "k", "")), "queued");
  EXPECT_EQ(other.ask(request("l", "k", "0")), full);
  EXPECT_EQ(other.ask(request("l", "k", "60")), "error_max_waiters");
  EXPECT_EQ(waiter.ask(request("w", "k", "0")), "timeout") << "it has a place";
  ASSERT_EQ(masked(holder.ask(request("sl", "pool", "0 1"))), "ok <token> 33");
  ASSERT_EQ(waiter.ask(request("se", "pool", "1")), "queued");
  EXPECT_EQ(other.ask(request("sl", "pool", "0 1")), full);
}

}  // namespace
}  // namespace lockd
