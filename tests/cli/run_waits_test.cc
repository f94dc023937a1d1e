// A wait goes on until its own deadline, whatever becomes of the server meanwhile: it is down,
// killed, or stops, and comes back with its journal or does not.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/testing/eventually.h"
#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

enum class Way : std::uint8_t { run, run_all, acquire };

// A server with a journal, of which there is none for a while.
class RunWaits : public ::testing::TestWithParam<Way> {
 protected:
  void stop_for_good() {
    server_->terminate();
    EXPECT_EQ(server_->await_exit(), 0);
  }
  void come_back() {
    server_.emplace(Words{"--wal", directory_.path(), "--port", std::to_string(port_)});
  }

  Words waiting(const std::string& seconds) const {
    const std::string server = "127.0.0.1:" + std::to_string(port_);
    switch (GetParam()) {
      case Way::run: return {"run", "-s", server, "-w", seconds, "k", "--", "echo", "got"};
      case Way::run_all:
        return {"run", "-s", server, "-w", seconds, "--all", "k", "j", "--", "echo", "got"};
      case Way::acquire: break;
    }
    return {"acquire", "-s", server, "-w", seconds, "--holder", "got", "k"};
  }
  static bool is_granted(const std::string& output) { return has(output, "got\n"); }

  // Somebody has the key, and no connection keeps it: it outlives the server.
  void take() { handle_ = reserve("k"); }
  void give_back() {
    EXPECT_EQ(lockctl({"release", "-s", address_of(*server_), "k", handle_}).status, 0);
  }
  std::string reserve(const std::string& key) const {
    const Finished taken =
        lockctl({"acquire", "-s", address_of(*server_), "-n", "--ttl", "600", key});
    EXPECT_EQ(taken.status, 0) << taken.errors;
    return taken.output.substr(0, taken.output.find('\n'));
  }
  bool await_waiter() {
    return eventually(
        [&] { return has(server_->connect().ask(request("stats", "", "")), "\"waiters\":1"); });
  }

  const TemporaryDirectory directory_;
  std::optional<ServerProcess> server_{std::in_place, Words{"--wal", directory_.path()}};
  const std::uint16_t port_ = server_->port();
  std::string handle_;
};

TEST_P(RunWaits, BeginsWhileTheServerIsDown) {
  server_->kill();
  Lockctl process(waiting("120"));
  ASSERT_TRUE(eventually([&] { return has(process.errors(), "asking again"); }));
  come_back();
  EXPECT_EQ(process.await_exit(), 0) << process.errors();
  EXPECT_TRUE(is_granted(process.output())) << process.output();
}

TEST_P(RunWaits, GoesOnWhenTheServerIsKilledAndComesBack) {
  take();
  Lockctl process(waiting("120"));
  ASSERT_TRUE(await_waiter());
  server_->kill();
  come_back();
  ASSERT_TRUE(await_waiter()) << "behind what is held still";
  EXPECT_FALSE(is_granted(process.output()));
  give_back();
  EXPECT_EQ(process.await_exit(), 0) << process.errors();
  EXPECT_TRUE(is_granted(process.output())) << process.output();
}

TEST_P(RunWaits, GoesOnWhenTheServerStopsAndComesBack) {
  take();
  Lockctl process(waiting("120"));
  ASSERT_TRUE(await_waiter());
  stop_for_good();
  come_back();
  ASSERT_TRUE(await_waiter());
  give_back();
  EXPECT_EQ(process.await_exit(), 0) << process.errors();
}

TEST_P(RunWaits, AServerThatStopsAndStaysAwayIsNoConflict) {
  take();
  const auto before = std::chrono::steady_clock::now();
  Lockctl process(waiting("3"));
  ASSERT_TRUE(await_waiter());
  stop_for_good();
  EXPECT_EQ(process.await_exit(), 75) << process.errors();
  EXPECT_GE(std::chrono::steady_clock::now() - before, 3s);
}

TEST_P(RunWaits, AServerThatNeverWasThereCannotBeReached) {
  server_->kill();
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(lockctl(waiting("1")).status, 69);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 1s);
  EXPECT_EQ(lockctl(waiting("0")).status, 69);
}

INSTANTIATE_TEST_SUITE_P(, RunWaits, ::testing::Values(Way::run, Way::run_all, Way::acquire),
                         [](const auto& way) {
                           return way.param == Way::run       ? "ofOneKey"
                                  : way.param == Way::run_all ? "ofSeveral"
                                                              : "forAReservation";
                         });

}  // namespace
}  // namespace lockd
