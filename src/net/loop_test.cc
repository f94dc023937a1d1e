#include "net/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace lockd {
namespace {

using namespace std::chrono_literals;

class Step final : public Loop::SlowWork {
 public:
  explicit Step(std::function<void()> step) : step_(std::move(step)) {}
  void do_slow_work() override { step_(); }

 private:
  const std::function<void()> step_;
};

// Longer than slow work may go on between two turns.
void take_long() {
  const auto end = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(Loop, SlowWorkIsDoneFirstComeFirstServedWithTurnsBetween) {
  Loop loop;
  std::string happened;
  Step last([&] {
    happened += 'l';
    take_long();
    loop.stop();
  });
  Step again([&] {
    happened += 'a';
    take_long();
    if (happened.find('l') == std::string::npos) loop.queue(again);
  });
  Step second([&] {
    happened += 's';
    take_long();
    loop.queue(last);
  });
  loop.post([&] {
    happened += 'p';
    loop.queue(again);
    loop.queue(again);  // which is there already
    loop.queue(second);
  });
  loop.run([&] { happened += '.'; }, [] {});
  EXPECT_EQ(happened, "p.a.s.a.l");
}

TEST(Loop, QuickStepsOfSlowWorkShareTheTimeBetweenTurns) {
  constexpr std::size_t kSteps = 1000;
  Loop loop;
  std::size_t done = 0;
  std::size_t turns = 0;
  std::vector<Step> steps(kSteps, Step([&] {
                            if (++done == kSteps) loop.stop();
                          }));
  loop.post([&] {
    for (Step& step : steps) loop.queue(step);
  });
  loop.run([&] { ++turns; }, [] {});
  EXPECT_EQ(done, kSteps);
  EXPECT_LT(turns, kSteps);
}

TEST(Loop, SlowWorkThatIsTakenBackIsNotDone) {
  Loop loop;
  std::string happened;
  Step dropped([&] { happened += 'd'; });
  Step first([&] {
    happened += 'f';
    loop.unqueue(dropped);
    loop.unqueue(dropped);
  });
  Step last([&] {
    happened += 'l';
    loop.stop();
  });
  loop.post([&] {
    for (Step* step : {&first, &dropped, &last}) loop.queue(*step);
  });
  loop.run([] {}, [] {});
  EXPECT_EQ(happened, "fl");
}

}  // namespace
}  // namespace lockd
