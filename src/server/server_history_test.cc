// What is kept of what happened to the server.
#include "server/server_history.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "lockd/clock.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Type = ServerEvent::Type;

class ServerHistoryTest : public ::testing::Test {
 protected:
  static bool any(const ServerEvent&) { return true; }
  std::string reasons(std::size_t events_max = 100) const {
    std::string all;
    for (const auto& event : history_.read(any, events_max)) all += event->reason + ' ';
    return all;
  }

  ManualClock clock_;
  ServerHistory history_{64 * 1024, [this] { return clock_.now(); }};
};

TEST_F(ServerHistoryTest, TellsTheLatestFirst) {
  for (const char* reason : {"1", "2", "3"}) {
    history_.add({.type = Type::kicked, .reason = reason});
    clock_.advance(1s);
  }
  history_.add({.type = Type::refused, .reason = "4"});
  EXPECT_EQ(reasons(), "4 3 2 1 ");
  EXPECT_EQ(reasons(2), "4 3 ");
  const auto kicked = history_.read([](const auto& e) { return e.type == Type::kicked; }, 1);
  ASSERT_EQ(kicked.size(), 1u);
  EXPECT_EQ(kicked[0]->reason, "3");
  EXPECT_EQ(kicked[0]->at, clock_.now() - 1s);
}

TEST_F(ServerHistoryTest, StrangersPushOutNobodyElse) {
  history_.add({.type = Type::kicked, .reason = "kept"});
  for (int second = 0; second < 1'000; ++second) {
    clock_.advance(1s);
    for (int i = 0; i < 12; ++i) history_.add({.type = Type::auth_failed, .peer = "10.0.0.7:1"});
  }
  EXPECT_EQ(history_.dropped(), 2'000u);
  const auto all = history_.read(any, SIZE_MAX);
  EXPECT_EQ(all.back()->reason, "kept");
  EXPECT_GT(all.size(), 100u);
  EXPECT_LT(all.size(), 32u * 1024 / sizeof(ServerEvent) + 2);
}

TEST_F(ServerHistoryTest, IsOffWithoutRoom) {
  ServerHistory off(0, [] { return Time{}; });
  off.add({.type = Type::kicked});
  EXPECT_TRUE(off.read(any, 1).empty());
}

TEST(ServerEventNames, AreFoundAgain) {
  for (const Type type : {Type::started, Type::kicked, Type::auth_failed, Type::refused}) {
    EXPECT_EQ(server_event_type(event_name(type)), type);
  }
  EXPECT_EQ(server_event_type("granted"), std::nullopt);
}

}  // namespace
}  // namespace lockd
