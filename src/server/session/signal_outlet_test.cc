#include "server/session/signal_outlet.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace lockd {
namespace {

class SignalOutletTest : public testing::Test, private SignalOutlet::Sessions {
 protected:
  static constexpr SessionId kPublisher = 1;
  static constexpr SessionId kListener = 2;

  // As a host does at the end of a turn. Whether it needs another.
  bool end_turn() {
    outlet_.publish_waiting();
    outlet_.deliver_received();
    return outlet_.end_turn();
  }
  void listen(SessionId id) { ASSERT_TRUE(hub_.listen({outlet_.mailbox(), id}, "c", "")); }

  std::set<SessionId> left_;
  std::map<SessionId, std::size_t> published_;
  std::vector<std::string> received_;
  SignalHub hub_;
  WorkerStats stats_;
  Inbox inbox_{[] {}};
  SignalOutlet outlet_{hub_, stats_, inbox_, *this, [] {}};

 private:
  bool is_open(SessionId id) const override { return !left_.contains(id); }
  void on_published(SessionId publisher, std::size_t reached) override {
    published_[publisher] = reached;
  }
  void on_signal(SessionId, const Signal& signal) override {
    received_.emplace_back(signal.payload());
  }
};

TEST_F(SignalOutletTest, SignalReachesListenersAtTheEndOfTheTurn) {
  listen(kListener);
  EXPECT_EQ(outlet_.publish(kPublisher, "c", "hello"), 1U);
  EXPECT_TRUE(received_.empty());
  EXPECT_FALSE(end_turn());
  EXPECT_EQ(received_, std::vector<std::string>{"hello"});
}

// The mailbox takes a bounded part of the signals in each turn, and the publisher waits meanwhile.
TEST_F(SignalOutletTest, PublisherWaitsWhileTheMailboxIsBehind) {
  listen(kListener);
  const std::string payload(32 * 1024, 'x');
  std::size_t sent = 0;
  while (outlet_.publish(kPublisher, "c", payload)) ++sent;
  EXPECT_GT(sent, 0U);
  EXPECT_TRUE(published_.empty());
  int turns = 1;
  while (end_turn()) ++turns;
  EXPECT_GT(turns, 1);
  EXPECT_EQ(published_.at(kPublisher), 1U);
  EXPECT_EQ(received_.size(), sent + 1);
}

TEST_F(SignalOutletTest, WaitingSignalOfAPublisherThatLeftIsDropped) {
  listen(kListener);
  const std::string payload(32 * 1024, 'x');
  std::size_t sent = 0;
  while (outlet_.publish(kPublisher, "c", payload)) ++sent;
  left_.insert(kPublisher);
  while (end_turn()) continue;
  EXPECT_TRUE(published_.empty());
  EXPECT_EQ(received_.size(), sent);
}

TEST_F(SignalOutletTest, SignalsThatWaitAreSentInOrder) {
  listen(kListener);
  const std::string payload(32 * 1024, 'x');
  while (outlet_.publish(kPublisher, "c", payload)) continue;
  EXPECT_FALSE(outlet_.publish(3, "c", "second"));
  EXPECT_FALSE(outlet_.publish(4, "c", "third"));
  while (end_turn()) continue;
  ASSERT_GE(received_.size(), 2U);
  EXPECT_EQ(received_.back(), "third");
  EXPECT_EQ(received_[received_.size() - 2], "second");
}

}  // namespace
}  // namespace lockd
