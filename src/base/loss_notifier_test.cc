#include "base/loss_notifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace lockd {
namespace {

using namespace std::chrono_literals;

struct Hold {
  int id = 0;
};

TEST(LossNotifier, NotifiesInOrderAndOnce) {
  LossNotifier<Hold> losses;
  losses.add(std::make_shared<Hold>(Hold{1}));
  losses.add(std::make_shared<Hold>(Hold{2}));
  std::vector<int> notified;
  const auto note = [&](Hold& hold) { notified.push_back(hold.id); };
  EXPECT_TRUE(losses.notify_one(note));
  EXPECT_TRUE(losses.notify_one(note));
  EXPECT_FALSE(losses.notify_one(note));
  EXPECT_EQ(notified, (std::vector{1, 2}));
}

TEST(LossNotifier, WithdrawnHoldIsNotNotified) {
  LossNotifier<Hold> losses;
  const auto hold = std::make_shared<Hold>();
  losses.add(hold);
  losses.add(hold);
  losses.withdraw(*hold);
  EXPECT_FALSE(losses.notify_one([](Hold&) { FAIL(); }));
}

TEST(LossNotifier, NotificationMayWithdrawItsOwnHold) {
  LossNotifier<Hold> losses;
  losses.add(std::make_shared<Hold>());
  EXPECT_TRUE(losses.notify_one([&](Hold& hold) { losses.withdraw(hold); }));
}

TEST(LossNotifier, WithdrawWaitsForTheNotification) {
  LossNotifier<Hold> losses;
  const auto hold = std::make_shared<Hold>();
  losses.add(hold);
  std::promise<void> entered;
  std::atomic<bool> finished = false;
  std::jthread notifier([&] {
    losses.notify_one([&](Hold&) {
      entered.set_value();
      std::this_thread::sleep_for(20ms);
      finished = true;
    });
  });
  entered.get_future().wait();
  losses.withdraw(*hold);
  EXPECT_TRUE(finished);
}

}  // namespace
}  // namespace lockd
