// Every crash point: a long script of clients on the real engine and the real journal, on a
// simulated disk; in the midst of each call to the disk the power fails, or the process dies, in
// many ways; and what is recovered from each is checked. See violation.h for what is promised.
//
// A failure names its crash. To look at that one alone, set LOCKD_CRASH to what the message says:
//
//   LOCKD_CRASH=7:1234.5/12.1 crash_test --gtest_filter=Crash.AtEveryCall
//
// seed 7, in the midst of call 1234, its image 5; and during the recovery from that, call 12, image
// 1. LOCKD_CRASH=7 runs the whole script of another seed. Image 999 is the death of the process.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "crash/violation.h"
#include "crash/world.h"

namespace lockd::crash {
namespace {

using namespace std::chrono_literals;

// The sanitizers make all of it slower, about tenfold; the script is shorter by as much.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSlowness = 10;
#else
constexpr std::uint64_t kSlowness = 1;
#endif

// What LOCKD_CRASH asks for.
struct Wish {
  std::uint64_t seed;
  std::optional<CrashPath> only{};
};

Wish wish_or(std::uint64_t seed) {
  const char* const text = std::getenv("LOCKD_CRASH");
  if (text == nullptr) return {seed};
  std::string rest = text;
  const std::size_t colon = rest.find(':');
  Wish wish{std::stoull(rest)};
  if (colon != std::string::npos) {
    wish.only = CrashPath::parse(rest.substr(colon + 1));
    if (!wish.only)
      throw std::invalid_argument("LOCKD_CRASH: SEED, or SEED:CALL.IMAGE[/CALL.IMAGE]");
  }
  return wish;
}

// Whether the figures are of a whole run.
bool run(WorldOptions options, Figures& figures) {
  const Wish wish = wish_or(options.seed);
  options.seed = options.inspector.seed = wish.seed;
  options.inspector.only = wish.only;
  try {
    World(options, figures).run();
  } catch (const Violation& violation) {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    ADD_FAILURE() << violation.what() << "\n  to see it again: LOCKD_CRASH=" << wish.seed
                  << (violation.where.empty() ? "" : ":" + violation.where)
                  << " crash_test --gtest_filter=" << test->test_suite_name() << "." << test->name()
                  << "\n"
                  << figures;
    return false;
  }
  std::cout << figures << std::endl;
  return !wish.only;
}

// Everything that the script is there for has happened.
void expect_variety(const Figures& figures) {
  for (std::size_t i = 0; i < figures.calls.size(); ++i) {
    EXPECT_GT(figures.calls[i], 0)
        << SimulatedDisk::name_of(static_cast<SimulatedDisk::Operation>(i));
  }
  EXPECT_GT(figures.kills, 0);
  EXPECT_GT(figures.recovery_images, 0);
  EXPECT_GT(figures.recovery_kills, 0);
  EXPECT_GT(figures.power_failures, 0);
  EXPECT_GT(figures.process_deaths, 0);
  EXPECT_GT(figures.accounts, 0);
  EXPECT_GT(figures.torn_tails, 0);
  EXPECT_GT(figures.never_began, 0);
  EXPECT_GT(figures.several_segments, 0);
  EXPECT_GT(figures.kept_unasked, 0);
  EXPECT_GT(figures.lost_unasked, 0);
  EXPECT_GT(figures.clocks_set_back, 0);
  EXPECT_GT(figures.holds_recovered, 0);
}

TEST(Crash, AtEveryCall) {
  Figures figures;
  if (!run({.calls = 10'000 / kSlowness}, figures)) return;
  expect_variety(figures);
  EXPECT_GE(figures.total_images(), 100'000 / kSlowness);
}

TEST(Crash, AtEveryCallWithASyncInterval) {
  Figures figures;
  if (!run({.calls = 3'000 / kSlowness, .sync_interval = 50ms}, figures)) return;
  expect_variety(figures);
}

}  // namespace
}  // namespace lockd::crash
