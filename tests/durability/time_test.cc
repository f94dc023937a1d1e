// Restarts while leases run, and somebody moves the clocks in between.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using SteadyClock = LineClient::Clock;

constexpr auto kLease = 3s;
constexpr auto kLateMax = 20s;

// What the machine says, set against what is so.
struct Clocks {
  long wall_s = 0;
  long boot_s = 0;
  const char* boot_id = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
};

struct Restart {
  const char* what;
  Clocks before{};
  Clocks after{};
  int times = 1;
};

constexpr const char* kOtherBoot = "6fa459ea-ee8a-3ca4-894e-db77e160355e";
constexpr long kHour = 3600;
constexpr long kDay = 24 * kHour;

ServerProcess::Launch environment(const Clocks& clocks, const std::string& boot_id_file) {
  if (!has_faults()) return {};
  std::ofstream(boot_id_file) << clocks.boot_id << "\n";
  return {.environment =
              faults({"WALL_S=" + std::to_string(clocks.wall_s),
                      "BOOT_S=" + std::to_string(clocks.boot_s), "BOOT_ID=" + boot_id_file})};
}

void acquire_restart_and_compete(const Restart& restart) {
  SCOPED_TRACE(restart.what);
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  const std::string boot_id = elsewhere.path() + "/boot_id";
  std::string stone;
  std::string pond;
  SteadyClock::time_point asked;
  {
    ServerProcess server(durable(directory.path()), environment(restart.before, boot_id));
    LineClient owner = server.connect();
    asked = SteadyClock::now();
    stone = owner.ask(request("l", "stone", "0 3"));
    pond = owner.ask(request("l", "pond", "0 600"));
    server.kill();
  }
  ASSERT_EQ(masked(stone), "ok <token> 3");
  ASSERT_EQ(masked(pond), "ok <token> 600");
  for (int i = 1; i < restart.times; ++i) {
    ServerProcess server(durable(directory.path()), environment(restart.after, boot_id));
    std::this_thread::sleep_for(100ms);
    server.kill();
  }

  ServerProcess server(durable(directory.path()), environment(restart.after, boot_id));
  LineClient owner = server.connect();
  EXPECT_EQ(owner.ask(request("n", "pond", token_of(pond))), "ok 600");
  EXPECT_EQ(owner.ask(request("l", "pond", "0")), "timeout");
  const std::string next = owner.ask(request("l", "stone", "25 5"));
  const auto passed = SteadyClock::now() - asked;
  EXPECT_EQ(masked(next), "ok <token> 5");
  EXPECT_GE(passed, kLease);
  EXPECT_LT(passed, kLease + kLateMax);
  EXPECT_LT(token_of(stone), token_of(next));
  EXPECT_EQ(owner.ask(request("n", "stone", token_of(stone))), "error");
}

// Each on a server of its own, and all at once: each lasts as long as its lease.
void expect_leases_kept(const std::vector<Restart>& restarts) {
  std::vector<std::jthread> threads;
  for (const Restart& restart : restarts) {
    threads.emplace_back([&] { acquire_restart_and_compete(restart); });
  }
}

TEST(TimeTest, LeasesGoOnOverRestarts) {
  expect_leases_kept({{.what = "once"}, {.what = "five times", .times = 5}});
}

TEST(TimeTest, LeasesGoOnWhateverTheClocksSay) {
  if (!has_faults()) GTEST_SKIP() << "clocks are moved by fault_shim";
  const Clocks long_ago{.boot_s = kDay};
  expect_leases_kept({
      {.what = "an hour ahead", .after = {.wall_s = kHour}},
      {.what = "an hour back", .after = {.wall_s = -kHour}},
      {.what = "after a reboot", .before = long_ago, .after = {.boot_id = kOtherBoot}},
      {.what = "an hour back after a reboot",
       .before = long_ago,
       .after = {.wall_s = -kHour, .boot_id = kOtherBoot}},
      {.what = "an hour back after a reboot, again and again",
       .before = long_ago,
       .after = {.wall_s = -kHour, .boot_id = kOtherBoot},
       .times = 5},
  });
}

}  // namespace
}  // namespace lockd
