#include "base/certainty.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace lockd {
namespace {

using namespace std::chrono_literals;

using Time = std::chrono::steady_clock::time_point;

constexpr Time kStart{1000s};

TEST(Certainty, LastsUntilItsEndAndNotAtIt) {
  Certainty certainty(kStart);
  EXPECT_TRUE(certainty.lasts(kStart - 1ns));
  EXPECT_FALSE(certainty.lasts(kStart));
}

TEST(Certainty, IsOverForGoodOnceAnybodyHasSeenItOver) {
  Certainty certainty(kStart);
  EXPECT_FALSE(certainty.lasts(kStart));
  EXPECT_FALSE(certainty.extend(kStart - 1ns, kStart + 10s)) << "confirmed in time, told too late";
  EXPECT_FALSE(certainty.lasts(kStart - 1ns));
  EXPECT_EQ(certainty.until(), kStart);
}

TEST(Certainty, CannotBeExtendedPastItsEnd) {
  Certainty certainty(kStart);
  EXPECT_FALSE(certainty.extend(kStart, kStart + 10s));
  EXPECT_FALSE(certainty.lasts(kStart - 1ns));
}

TEST(Certainty, IsExtendedAndShortened) {
  Certainty certainty(kStart);
  EXPECT_TRUE(certainty.extend(kStart - 1s, kStart + 10s));
  EXPECT_TRUE(certainty.lasts(kStart + 5s));
  EXPECT_TRUE(certainty.extend(kStart + 5s, kStart + 6s));
  EXPECT_EQ(certainty.until(), kStart + 6s);
  EXPECT_FALSE(certainty.lasts(kStart + 6s));
}

TEST(Certainty, EndsOnce) {
  Certainty certainty(kStart);
  EXPECT_TRUE(certainty.end(kStart - 5s));
  EXPECT_FALSE(certainty.end(kStart - 5s));
  EXPECT_FALSE(certainty.lasts(kStart - 6s));
  EXPECT_FALSE(certainty.extend(kStart - 6s, kStart));
  EXPECT_EQ(certainty.until(), kStart - 5s);
}

TEST(Certainty, OfTheLongestLeaseDoesNotOverflow) {
  Certainty certainty(Time::max());
  EXPECT_TRUE(certainty.lasts(kStart));
  EXPECT_TRUE(certainty.extend(kStart, Time::max()));
  EXPECT_GT(certainty.until(), kStart + std::chrono::hours(24 * 365 * 100));
}

// One thread extends in small steps, the other asks by the same clock: once it has heard no, it
// never hears yes.
TEST(Certainty, NeverComesBackWhoeverRaces) {
  for (int round = 0; round < 200; ++round) {
    Certainty certainty(kStart + 10ns);
    std::atomic<std::int64_t> clock{0};
    std::thread renewer([&] {
      for (int step = 1; step <= 200; ++step) {
        const Time now = kStart + std::chrono::nanoseconds(clock.fetch_add(step % 7));
        if (!certainty.extend(now, now + 10ns)) return;
      }
    });
    bool over = false;
    for (int i = 0; i < 200; ++i) {
      const Time now = kStart + std::chrono::nanoseconds(clock.fetch_add(1));
      const bool lasts = certainty.lasts(now);
      ASSERT_FALSE(over && lasts);
      over = over || !lasts;
    }
    renewer.join();
  }
}

}  // namespace
}  // namespace lockd
