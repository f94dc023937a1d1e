#include "crash/run_world.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "crash/violation.h"

namespace lockd::crash {
namespace {

struct Wish {
  std::uint64_t seed;
  std::optional<CrashPath> only{};
};

Wish wish_or(std::uint64_t seed) {
  const char* const text = std::getenv("LOCKD_CRASH");
  if (text == nullptr) return {seed};
  const std::string wish = text;
  const std::size_t colon = wish.find(':');
  if (colon == std::string::npos) return {std::stoull(wish)};
  const auto only = CrashPath::parse(wish.substr(colon + 1));
  if (!only) throw std::invalid_argument("LOCKD_CRASH is SEED or SEED:CALL.IMAGE[/CALL.IMAGE]");
  return {std::stoull(wish), only};
}

}  // namespace

bool run_world(WorldOptions options, CrashStats& stats, const std::string& about) {
  const Wish wish = wish_or(options.seed);
  options.seed = options.inspector.seed = wish.seed;
  options.inspector.only = wish.only;
  try {
    World(options, stats).run();
  } catch (const Violation& violation) {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    ADD_FAILURE() << violation.what() << about << "\n  to see it again: LOCKD_CRASH=" << wish.seed
                  << (violation.where.empty() ? "" : ":" + violation.where)
                  << " crash_test --gtest_filter=" << test->test_suite_name() << "." << test->name()
                  << "\n"
                  << stats;
    return false;
  }
  return true;
}

bool is_one_crash_asked_for() { return wish_or(0).only.has_value(); }

}  // namespace lockd::crash
