// Runs random histories on a LockTable and the LockModel, which must agree on each.
//
//   RC_PARAMS="seed=1"                  chooses the histories
//   LOCKD_PROPERTY_OPERATIONS=10000000  sets the number of operations
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

  static std::uint64_t operations_wanted() {
    const char* set = std::getenv("LOCKD_PROPERTY_OPERATIONS");
    return set == nullptr ? kOperations / test_divisor(20, 10) : std::strtoull(set, nullptr, 10);
  }

  static std::string run(const LockHistory& history, std::ostream* log = nullptr) {
    ModelCheck check(history.setup, log);
    std::string wrong;
    for (const Op& op : history.ops) {
      ++operations_;
      wrong = check.step(op);
      if (!wrong.empty()) return wrong;
    }
    return check.finish();
  }

  // Runs histories until they have had this number of operations.
  static void run_many(std::uint64_t operations, bool many_keys, int length_max) {
    const std::uint64_t until = operations_ + operations;
    rc::detail::TestParams params = rc::detail::configuration().testParams;
    params.maxSuccess = 100;
    params.maxSize = length_max;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    const rc::detail::TestMetadata metadata{info->name(), info->name()};
    for (; operations_ < until; ++params.seed) {
      const auto result = rc::detail::checkTestable(
          [many_keys] {
            const LockHistory history = *generate_history(many_keys);
            const std::string wrong = run(history);
            std::ostringstream log;
            if (!wrong.empty()) run(history, &log);
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

TEST_F(LockTableProperty, FewKeys) { run_many(operations_wanted() / 4 * 3, false, 200); }

// More leases and waits are due at once than one call ends; the replies must not show the backlog.
TEST_F(LockTableProperty, ManyKeysFallDueTogether) { run_many(operations_wanted() / 4, true, 400); }

}  // namespace
}  // namespace lockd
