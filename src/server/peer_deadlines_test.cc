#include "server/peer_deadlines.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Due = PeerDeadlines::Due;

// A connection of a client, and a clock that the test moves. The server looks every 50 ms.
class PeerDeadlinesTest : public testing::Test {
 protected:
  static constexpr auto kAuth = 10s;
  static constexpr auto kRead = 23s;

  void send(std::uint64_t request = 0) {
    state_.last_input = now_;
    deadlines_.on_input(now_, request);
  }
  Due check() {
    return deadlines_.check(now_, state_, [this] { return owns_; });
  }
  // How long it takes until `due`; an hour when it does not come.
  Duration time_until(Due due) {
    for (const auto began = now_; now_ < began + 1h; now_ += 50ms) {
      if (check() == due) return now_ - began;
    }
    return 1h;
  }
  // Looks all the while, at which nothing but pings may be due.
  void pass(Duration time) {
    for (const auto end = now_ + time; now_ < end; now_ += 50ms) {
      const Due due = check();
      ASSERT_TRUE(due == Due::nothing || due == Due::ping) << static_cast<int>(due);
    }
  }

  PeerDeadlines::Time now_{1h};
  PeerDeadlines deadlines_{now_, {.auth = kAuth, .read = kRead}};
  PeerDeadlines::State state_{.last_input = now_};
  bool owns_ = false;
};

TEST_F(PeerDeadlinesTest, AClientThatOwnsNothingMayBeSilentForTheReadTimeout) {
  EXPECT_EQ(time_until(Due::next_request), kRead + 50ms) << "it has never sent anything";
  now_ += 1s;
  send();
  EXPECT_EQ(time_until(Due::next_request), kRead + 50ms);
}

TEST_F(PeerDeadlinesTest, AClientThatOwnsSomethingMayBeSilentForever) {
  owns_ = true;
  pass(50min);
}

// Otherwise the end of a lease would close its client at once, before the client could read why.
TEST_F(PeerDeadlinesTest, SilenceCountsFromTheLastTimeThatTheClientOwnedSomething) {
  owns_ = true;
  pass(5min);
  owns_ = false;
  EXPECT_EQ(time_until(Due::next_request), kRead);
}

TEST_F(PeerDeadlinesTest, HalfARequestIsDueWhateverTheClientOwns) {
  owns_ = true;
  pass(5min);
  send(1);
  EXPECT_EQ(time_until(Due::request), kRead + 50ms);
}

TEST_F(PeerDeadlinesTest, AByteNowAndThenDoesNotProlongARequest) {
  send(1);
  for (int i = 0; i < 22; ++i) {
    pass(1s);
    send(1);
  }
  EXPECT_EQ(time_until(Due::request), 1s + 50ms);
}

TEST_F(PeerDeadlinesTest, EachRequestHasItsOwnTime) {
  for (std::uint64_t request = 1; request < 10; ++request) {
    send(request);  // and the last byte of the one before
    pass(20s);
  }
  EXPECT_EQ(time_until(Due::request), 3s + 50ms);
}

TEST_F(PeerDeadlinesTest, ARequestThatIsCompleteEndsItsTime) {
  send(1);
  pass(20s);
  send(0);
  EXPECT_EQ(time_until(Due::next_request), kRead + 50ms);
}

TEST_F(PeerDeadlinesTest, SilenceCountsFromTheReply) {
  owns_ = true;  // it waits
  send();
  pass(5min);
  owns_ = false;
  deadlines_.on_reply(now_);
  EXPECT_EQ(time_until(Due::next_request), kRead + 50ms);
}

// The server does not read while a request blocks, while its journal is behind or while the client
// does not take its replies.
TEST_F(PeerDeadlinesTest, TimeInWhichTheServerDoesNotReadDoesNotCount) {
  for (const std::uint64_t half : {0U, 1U}) {
    send(half);
    pass(20s);
    state_.takes_input = false;
    pass(5min);
    state_.takes_input = true;
    EXPECT_EQ(time_until(half == 0 ? Due::next_request : Due::request), kRead);
  }
}

TEST_F(PeerDeadlinesTest, AuthenticationHasADeadlineThatNoByteProlongs) {
  state_.is_authenticated = false;
  for (int i = 0; i < 10; ++i) {
    send(1);
    pass(1s);
  }
  EXPECT_EQ(time_until(Due::authentication), 50ms);
}

TEST_F(PeerDeadlinesTest, AHandshakeIsPartOfAuthentication) {
  state_.is_authenticated = state_.is_established = false;
  EXPECT_EQ(time_until(Due::authentication), kAuth + 50ms);
}

TEST_F(PeerDeadlinesTest, AClientThatHasAuthenticatedHasNoSuchDeadline) {
  owns_ = true;
  state_.is_authenticated = false;
  pass(9s);
  state_.is_authenticated = true;
  pass(5min);
}

TEST_F(PeerDeadlinesTest, ARefusalThatIsHeldBackOutlivesTheDeadline) {
  state_.is_authenticated = state_.is_open = false;
  state_.is_paused = true;
  pass(5min);
  state_.is_paused = false;
  EXPECT_EQ(check(), Due::authentication);
}

TEST_F(PeerDeadlinesTest, ASessionThatIsOverIsNotAskedForMore) {
  state_.is_open = false;
  pass(5min);
}

TEST_F(PeerDeadlinesTest, ASilentClientIsPingedEvery15Seconds) {
  owns_ = true;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(time_until(Due::ping), 15s);
  }
}

TEST_F(PeerDeadlinesTest, APauseEndsOnceAndNeverEarly) {
  EXPECT_FALSE(deadlines_.end_pause(now_)) << "there is none";
  deadlines_.begin_pause(now_ + 100ms);
  EXPECT_TRUE(deadlines_.is_pausing());
  EXPECT_FALSE(deadlines_.end_pause(now_ + 100ms - 1ns));
  EXPECT_TRUE(deadlines_.end_pause(now_ + 100ms));
  EXPECT_FALSE(deadlines_.is_pausing());
  EXPECT_FALSE(deadlines_.end_pause(now_ + 1s));
}

}  // namespace
}  // namespace lockd
