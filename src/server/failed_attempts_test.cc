#include "server/failed_attempts.h"

#include <gtest/gtest.h>

#include <string>

namespace lockd {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::make_address;

const FailedAttempts::Time kStart{1h};

FailedAttempts::Pause fail_often(FailedAttempts& attempts, const std::string& address, int times,
                                 FailedAttempts::Time now = kStart) {
  FailedAttempts::Pause last{};
  for (int i = 0; i < times; ++i) last = attempts.add(make_address(address), now);
  return last;
}

TEST(FailedAttempts, EachCostsAPause) {
  FailedAttempts attempts;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(fail_often(attempts, "10.0.0.1", 1), 100ms) << i;
}

TEST(FailedAttempts, TheyGrowAfterTwentyInAMinute) {
  FailedAttempts attempts;
  fail_often(attempts, "10.0.0.1", 20);
  for (const auto pause : {200ms, 400ms, 800ms, 1600ms, 3200ms, 5000ms, 5000ms}) {
    EXPECT_EQ(fail_often(attempts, "10.0.0.1", 1, kStart + 60s), pause);
  }
  EXPECT_EQ(fail_often(attempts, "10.0.0.1", 1000), 5000ms);
  EXPECT_EQ(fail_often(attempts, "10.0.0.2", 1), 100ms) << "nobody else's";
  EXPECT_EQ(fail_often(attempts, "10.0.0.1", 1, kStart + 60s + 1ns), 100ms) << "a minute later";
}

TEST(FailedAttempts, ANetworkIsOneAddress) {
  FailedAttempts attempts;
  fail_often(attempts, "2001:db8::1", 10);
  fail_often(attempts, "2001:db8::ffff:1", 10);
  EXPECT_EQ(fail_often(attempts, "2001:db8:0:0:1::", 1), 200ms);
  EXPECT_EQ(fail_often(attempts, "2001:db8:0:1::", 1), 100ms);
}

TEST(FailedAttempts, WhoFailedLongestAgoIsForgottenFirst) {
  FailedAttempts attempts;
  fail_often(attempts, "10.0.0.1", 20);
  fail_often(attempts, "10.0.0.2", 20);
  fail_often(attempts, "10.0.0.1", 1);
  for (std::uint32_t i = 0; i < FailedAttempts::kAddressesMax - 1; ++i) {
    attempts.add(boost::asio::ip::address_v4(0x0b000000U + i), kStart);
  }
  EXPECT_EQ(fail_often(attempts, "10.0.0.1", 1), 400ms);
  EXPECT_EQ(fail_often(attempts, "10.0.0.2", 1), 100ms);
}

}  // namespace
}  // namespace lockd
