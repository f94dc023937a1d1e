// Random histories: a LockTable and the LockModel must agree on each.
//
//   RC_PARAMS="seed=1"                 to choose the histories
//   LOCKD_PROPERTY_OPERATIONS=10000000 to choose how many operations there are
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

#include "base/testing/test_size.h"
#include "core/testing/history_generator.h"
#include "core/testing/model_check.h"

namespace lockd {
namespace {

constexpr std::uint64_t kOperations = 4'000'000;

class LockTableProperty : public testing::Test {
 protected:
  static void TearDownTestSuite() {
    std::cout << "LockTable against LockModel: " << operations_ << " operations\n";
  }

  static std::uint64_t wanted() {
    const char* set = std::getenv("LOCKD_PROPERTY_OPERATIONS");
    return set == nullptr ? kOperations / test_divisor(20, 10) : std::strtoull(set, nullptr, 10);
  }

  static std::string play(const LockHistory& history, std::ostream* log = nullptr) {
    ModelCheck trial(history.setup, log);
    std::string wrong;
    for (const Op& op : history.ops) {
      ++operations_;
      wrong = trial.step(op);
      if (!wrong.empty()) return wrong;
    }
    return trial.finish();
  }

  // Plays histories until there were as many operations.
  static void play_many(std::uint64_t operations, bool crowd, int length_max) {
    const std::uint64_t until = operations_ + operations;
    rc::detail::TestParams params = rc::detail::configuration().testParams;
    params.maxSuccess = 100;
    params.maxSize = length_max;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    const rc::detail::TestMetadata metadata{info->name(), info->name()};
    for (; operations_ < until; ++params.seed) {
      const auto result = rc::detail::checkTestable(
          [crowd] {
            const LockHistory history = *generate_history(crowd);
            const std::string wrong = play(history);
            std::ostringstream log;
            if (!wrong.empty()) play(history, &log);
            return wrong + log.str();
          },
          metadata, params);
      if (result.template is<rc::detail::SuccessResult>()) continue;
      std::ostringstream message;
      rc::detail::printResultMessage(result, message);
      FAIL() << "RC_PARAMS=\"seed=" << params.seed << "\"\n" << message.str();
    }
    EXPECT_GE(operations_, until);
  }

 private:
  static inline std::uint64_t operations_ = 0;
};

TEST_F(LockTableProperty, FewKeys) { play_many(wanted() / 4 * 3, false, 200); }

// More falls due at once than one call ends: the table is behind, and must not show it.
TEST_F(LockTableProperty, ManyKeysFallDueTogether) { play_many(wanted() / 4, true, 400); }

}  // namespace
}  // namespace lockd
