#include "server/session/inbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace lockd {
namespace {

class InboxTest : public testing::Test {
 protected:
  void post(SessionId to) { inbox_.post(to, ClientGone{.position = to}); }

  int wakes_ = 0;
  Inbox inbox_{[this] { ++wakes_; }};
};

TEST_F(InboxTest, FirstMessageWakesTheLoopOnce) {
  post(1);
  post(2);
  EXPECT_EQ(wakes_, 1);
  EXPECT_EQ(inbox_.take().size(), 2U);
  post(3);
  EXPECT_EQ(wakes_, 2);
}

TEST_F(InboxTest, MessagesKeepTheirOrder) {
  for (SessionId id = 1; id <= 3; ++id) post(id);
  SessionId expected = 0;
  for (const Inbox::Letter& letter : inbox_.take()) EXPECT_EQ(letter.to, ++expected);
  EXPECT_EQ(expected, 3U);
}

TEST_F(InboxTest, MessageDuringATurnNeedsNoWakeBecauseTheTurnReportsIt) {
  inbox_.begin_turn();
  EXPECT_TRUE(inbox_.take().empty());
  post(1);
  EXPECT_EQ(wakes_, 0);
  EXPECT_TRUE(inbox_.end_turn());
  EXPECT_EQ(inbox_.take().size(), 1U);
  EXPECT_FALSE(inbox_.end_turn());
  post(2);
  EXPECT_EQ(wakes_, 1);
}

TEST_F(InboxTest, SignalsAreTakenApartFromMessages) {
  inbox_.post(Inbox::SignalLetter{std::make_shared<const Signal>("c", "p"), {1, 2}});
  EXPECT_EQ(wakes_, 1);
  EXPECT_TRUE(inbox_.take().empty());
  const auto signals = inbox_.take_signals();
  ASSERT_EQ(signals.size(), 1U);
  EXPECT_EQ(signals.front().to, (std::vector<SessionId>{1, 2}));
}

}  // namespace
}  // namespace lockd
