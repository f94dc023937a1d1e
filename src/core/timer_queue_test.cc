#include "core/timer_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace lockd {
namespace {

struct Numbered : Timer {
  Numbered(Kind what, int number) : Timer(what), number(number) {}
  int number;
};

class TimerQueueTest : public ::testing::Test {
 protected:
  Numbered& timer(Timer::Kind what = Timer::Kind::lease) {
    return timers_.emplace_back(what, static_cast<int>(timers_.size()));
  }
  Timer* pop(std::uint64_t now) {
    int budget = 1'000'000;
    return queue_.pop_due(Time{now}, &budget);
  }

  TimerQueue queue_;
  std::deque<Numbered> timers_;
};

TEST_F(TimerQueueTest, TimerIsDueExactlyAtItsDeadline) {
  for (std::uint64_t deadline : {1ull, 2ull, 1'000ull, (1ull << 40) + 7, (1ull << 63) + 5}) {
    Numbered& t = timer();
    queue_.arm(t, Time{deadline});
    EXPECT_EQ(queue_.next_deadline(), Time{deadline});
    EXPECT_EQ(pop(deadline - 1), nullptr);
    EXPECT_EQ(pop(deadline), &t);
    EXPECT_FALSE(t.armed());
  }
}

TEST_F(TimerQueueTest, LeasesAreDueBeforeWaitsOfTheSameInstant) {
  Numbered& wait = timer(Timer::Kind::wait);
  Numbered& lease = timer(Timer::Kind::lease);
  queue_.arm(wait, Time{77});
  queue_.arm(lease, Time{77});
  EXPECT_EQ(pop(100), &lease);
  EXPECT_EQ(pop(100), &wait);
}

TEST_F(TimerQueueTest, TimerArmedInThePastIsDueAtOnce) {
  EXPECT_EQ(pop(1'000), nullptr);
  Numbered& t = timer();
  queue_.arm(t, Time{10});
  EXPECT_LE(queue_.next_deadline(), Time{1'000});
  EXPECT_EQ(pop(1'000), &t);
}

TEST_F(TimerQueueTest, DueTimersMayBeDisarmedOrMoved) {
  Numbered& a = timer();
  Numbered& b = timer();
  Numbered& c = timer();
  for (Numbered* t : {&a, &b, &c}) queue_.arm(*t, Time{10});
  int budget = 5;  // three moves to bit 1 of 1010, one move to kDue, and the returned timer
  Timer* first = queue_.pop_due(Time{10}, &budget);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(budget, 0);
  std::vector<Timer*> rest{&a, &b, &c};
  std::erase(rest, first);
  queue_.disarm(*rest[0]);
  queue_.arm(*rest[1], Time{20});
  EXPECT_EQ(pop(19), nullptr);
  EXPECT_EQ(pop(20), rest[1]);
  EXPECT_EQ(pop(99), nullptr);
}

TEST_F(TimerQueueTest, StopsWhenTheBudgetIsUsedUpAndResumes) {
  for (int i = 0; i < 1'000; ++i) queue_.arm(timer(), Time{5'000});
  int popped = 0;
  int calls = 0;
  while (popped < 1'000) {
    int budget = 10;
    while (queue_.pop_due(Time{5'000}, &budget) != nullptr) ++popped;
    ++calls;
    ASSERT_LT(calls, 1'000);
    if (popped < 1'000) {
      EXPECT_LE(queue_.next_deadline(), Time{5'000});
    }
  }
  EXPECT_GT(calls, 100);
}

TEST_F(TimerQueueTest, MatchesASortedListOverRandomHistories) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    TimerQueue queue;
    std::deque<Numbered> timers;
    for (int i = 0; i < 200; ++i) {
      timers.emplace_back(i % 3 == 0 ? Timer::Kind::wait : Timer::Kind::lease, i);
    }
    std::uint64_t now = random() % (1ull << (round % 60));
    std::vector<Timer*> armed;
    for (int step = 0; step < 2'000; ++step) {
      Timer& t = timers[random() % timers.size()];
      const std::uint64_t range = 1ull << random() % 20;
      if (random() % 4 != 0) {
        queue.arm(t, Time{now + 1 + random() % range});
        if (std::find(armed.begin(), armed.end(), &t) == armed.end()) armed.push_back(&t);
      } else {
        queue.disarm(t);
        std::erase(armed, &t);
      }
      if (random() % 8 == 0) now += random() % range;
      Time earliest = Time::never();
      for (const Timer* a : armed) earliest = std::min(earliest, a->deadline);
      ASSERT_LE(queue.next_deadline(), std::max(earliest, Time{now}));
      int budget = 1'000'000;
      Time last;
      while (Timer* due = queue.pop_due(Time{now}, &budget)) {
        ASSERT_LE(due->deadline, Time{now});
        ASSERT_GE(due->deadline, last) << "out of order";
        last = due->deadline;
        std::erase(armed, due);
      }
      for (const Timer* a : armed) ASSERT_GT(a->deadline, Time{now}) << "missed";
    }
  }
}

}  // namespace
}  // namespace lockd
