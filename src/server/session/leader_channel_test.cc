#include "server/session/leader_channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockd {
namespace {

using namespace std::chrono_literals;
using What = LeaderNews::What;

class LeaderChannelTest : public testing::Test, private NewsReader, private LeaderChannel::Client {
 protected:
  LeaderChannelTest() { channel_.introduce({.peer = "10.0.0.7:1"}); }

  void hear(What what, std::uint64_t generation = 0, const std::string& text = {}) {
    channel_.take({.what = what, .generation = generation, .text = text}, now_, out_);
  }
  // All that the link was asked for since the last look.
  std::string asked() {
    std::string text;
    for (const LeaderMail& mail : forwarder_.take_mail()) {
      if (mail.what == LeaderMail::What::ask) text += mail.text;
    }
    return text;
  }
  static LeaderRequest lock(Duration wait) {
    return {.command = Command::acquire,
            .head = "l\nk\n",
            .argument = "9 as=0123456789abcdef",
            .key = "k",
            .wait = wait,
            .waits = true};
  }

  Time now_{1'000'000'000'000};
  Forwarder forwarder_{Options{.cluster_secret = "0123456789abcdef"}};
  LeaderChannel::Client& client_ = *this;
  NewsReader& reader_ = *this;
  LeaderChannel channel_{forwarder_, reader_, 17, client_};
  std::string out_;
  std::vector<std::string> told_;

 private:
  void leave_news(SessionId, LeaderNews) override {}
  void on_leader_answer(const LeaderRequest&, std::string_view line, std::string&) override {
    told_.push_back("answer " + std::string(line));
  }
  void on_leader_push(std::string_view line, std::string&) override {
    told_.push_back("push " + std::string(line));
  }
  void on_no_leader(const LeaderRequest&, std::string&) override { told_.push_back("no leader"); }
  void on_no_answer(const LeaderRequest&, std::string&) override { told_.push_back("no answer"); }
  void execute_here(const LeaderRequest&, std::string_view request, std::string&) override {
    told_.push_back("here " + std::string(request));
  }
  void prepare_here(std::string_view request) override {
    told_.push_back("prepare " + std::string(request));
  }
  void on_closed_by_leader() override { told_.push_back("closed"); }
};

using Told = std::vector<std::string>;

TEST_F(LeaderChannelTest, AsksWhenTheLinkIsThereAndTellsTheAnswer) {
  channel_.ask(lock(5s), now_);
  EXPECT_EQ(asked(), "");
  hear(What::up, 1);
  EXPECT_EQ(asked(), "l\nk\n5 9 as=0123456789abcdef\n");
  hear(What::bytes, 0, "sig a b\nok tok");
  EXPECT_TRUE(channel_.is_asking());
  hear(What::bytes, 0, "en 9\n");
  EXPECT_EQ(told_, (Told{"push sig a b", "answer ok token 9"}));
  EXPECT_FALSE(channel_.is_asking());
  EXPECT_TRUE(channel_.has_state(now_));
}

TEST_F(LeaderChannelTest, AsksTheNextLeaderForWhatIsLeftOfTheWait) {
  hear(What::up, 1);
  channel_.ask(lock(5s), now_);
  asked();
  hear(What::down);
  now_ = now_ + 1500ms;
  hear(What::up, 2);
  EXPECT_EQ(asked(), "l\nk\n4 9 as=0123456789abcdef\n");
  hear(What::down);
  now_ = now_ + 1min;
  hear(What::up, 3);
  EXPECT_EQ(asked(), "l\nk\n0 9 as=0123456789abcdef\n");
}

TEST_F(LeaderChannelTest, OfACallTheWaitIsAMember) {
  hear(What::up, 1);
  channel_.ask({.command = Command::api,
                .call = HttpCall::acquire,
                .head = "api\nPOST /v1/acquire\n",
                .argument = R"({"key":"k"})",
                .wait = 250ms,
                .waits = true},
               now_);
  EXPECT_EQ(asked(), "api\nPOST /v1/acquire\n{\"key\":\"k\",\"wait_ms\":250}\n");
}

TEST_F(LeaderChannelTest, ASignalIsNotRepeated) {
  hear(What::up, 1);
  channel_.ask(
      {.command = Command::signal, .head = "signal\ns\n", .argument = "x", .may_repeat = false},
      now_);
  asked();
  hear(What::down);
  EXPECT_EQ(told_, Told{"no answer"});
  hear(What::up, 2);
  EXPECT_EQ(asked(), "");
}

TEST_F(LeaderChannelTest, AWaitInItsTurnTakesItsPlaceAnewFirst) {
  hear(What::up, 1);
  channel_.ask({.command = Command::enqueue, .head = "e\nk\n", .argument = "9 as=0", .key = "k"},
               now_);
  hear(What::bytes, 0, "queued\n");
  channel_.ask(
      {.command = Command::await_turn, .head = "w\nk\n", .key = "k", .wait = 5s, .waits = true},
      now_);
  asked();
  hear(What::down);
  hear(What::up, 2);
  EXPECT_EQ(asked(), "e\nk\n9 as=0\nw\nk\n5\n");
  hear(What::bytes, 0, "queued\nok token 9\n");
  EXPECT_EQ(told_, (Told{"answer queued", "answer ok token 9"}));
}

TEST_F(LeaderChannelTest, APlaceThatNobodyAwaitsYetIsTakenAnewToo) {
  hear(What::up, 1);
  for (const std::string key : {"queued", "granted"}) {
    channel_.ask(
        {.command = Command::enqueue, .head = "e\n" + key + "\n", .argument = "9 as=0", .key = key},
        now_);
    hear(What::bytes, 0, key == "queued" ? "queued\n" : "acquired token 9\n");
  }
  asked();
  told_.clear();
  hear(What::down);
  hear(What::up, 2);
  EXPECT_EQ(asked(), "e\nqueued\n9 as=0\n");
  hear(What::bytes, 0, "queued\n");
  EXPECT_EQ(told_, Told{});
  channel_.ask({.command = Command::await_turn,
                .head = "w\nqueued\n",
                .key = "queued",
                .wait = 5s,
                .waits = true},
               now_);
  EXPECT_EQ(asked(), "w\nqueued\n5\n");
  hear(What::bytes, 0, "ok token 9\n");
  EXPECT_EQ(told_, Told{"answer ok token 9"});
  hear(What::here);
  EXPECT_EQ(told_, Told{"answer ok token 9"});
}

// Else it would be closed for its silence, and lose what it holds.
TEST_F(LeaderChannelTest, KnowsWhatItHoldsWhateverItReleasesForOthers) {
  hear(What::up, 1);
  channel_.ask(lock(0s), now_);
  hear(What::bytes, 0, "ok mine 9\n");
  const auto release = [&](const std::string& token) {
    channel_.ask({.command = Command::release, .head = "r\nk\n", .argument = token, .key = "k"},
                 now_);
    hear(What::bytes, 0, "ok\n");
  };
  release("another");
  channel_.ask({.command = Command::await_turn, .head = "w\nelse\n", .key = "else"}, now_);
  hear(What::bytes, 0, "error\n");
  EXPECT_TRUE(channel_.has_state(now_));
  release("mine");
  EXPECT_FALSE(channel_.has_state(now_));
}

TEST_F(LeaderChannelTest, HoldsNothingWhoseLeaseIsOverOrThatIsLost) {
  hear(What::up, 1);
  channel_.ask(lock(0s), now_);
  hear(What::bytes, 0, "ok mine 9\n");
  channel_.ask({.command = Command::renew, .head = "n\nk\n", .argument = "mine 20", .key = "k"},
               now_);
  hear(What::bytes, 0, "ok 20\n");
  EXPECT_TRUE(channel_.has_state(now_ + 19s));
  EXPECT_FALSE(channel_.has_state(now_ + 20s));
  channel_.ask(lock(0s), now_);
  hear(What::bytes, 0, "ok next 9\n");
  hear(What::bytes, 0, "lost next revoked k\n");
  EXPECT_FALSE(channel_.has_state(now_));
}

// Whoever else releases what it holds, and though it never asks for its turn.
TEST_F(LeaderChannelTest, RemembersSoMuchAndNoMore) {
  hear(What::up, 1);
  for (int i = 0; i < 5000; ++i) {
    channel_.ask(lock(0s), now_);
    hear(What::bytes, 0, "ok token" + std::to_string(i) + " 9\n");
  }
  EXPECT_LT(channel_.remembered(), 2000u);
  channel_.ask({.command = Command::renew, .head = "n\nk\n", .argument = "token4999", .key = "k"},
               now_);
  hear(What::bytes, 0, "ok 20\n");
  EXPECT_TRUE(channel_.has_state(now_ + 19s));
  EXPECT_FALSE(channel_.has_state(now_ + 20s));
  EXPECT_EQ(channel_.remembered(), 0u);
  for (int i = 0; i < 5000; ++i) {
    const std::string key = std::to_string(i);
    channel_.ask({.command = Command::enqueue, .head = "e\n" + key + "\n", .key = key}, now_);
    hear(What::bytes, 0, "queued\n");
  }
  EXPECT_LT(channel_.remembered(), 2000u);
  EXPECT_TRUE(channel_.has_state(now_ + 20s));
}

// The link is back, and its news has not come: who it is says nothing of that.
TEST_F(LeaderChannelTest, AsksAgainThoughItSaidWhoItIsMeanwhile) {
  hear(What::up, 1);
  channel_.ask({.command = Command::listen, .head = "listen\na\n"}, now_);
  hear(What::bytes, 0, "ok\n");
  asked();
  hear(What::down);
  forwarder_.set_generation(2);
  channel_.introduce({.peer = "10.0.0.7:1", .name = "ann"});
  hear(What::up, 2);
  EXPECT_EQ(asked(), "listen\na\n\n");
}

// It would wait for ever for what nobody tells it.
TEST_F(LeaderChannelTest, IsClosedWhereTheNextLeaderDoesNotLetItListen) {
  hear(What::up, 1);
  for (const std::string name : {"a", "b"}) {
    channel_.ask({.command = Command::listen, .head = "listen\n" + name + "\n"}, now_);
    hear(What::bytes, 0, "ok\n");
  }
  channel_.ask({.command = Command::enqueue, .head = "e\nk\n", .key = "k"}, now_);
  hear(What::bytes, 0, "queued\n");
  told_.clear();
  hear(What::down);
  hear(What::up, 2);
  hear(What::bytes, 0, "ok\nok\nerror_max_holds\n");
  EXPECT_EQ(told_, Told{});
  hear(What::down);
  hear(What::up, 3);
  hear(What::bytes, 0, "ok\nerror\n");
  EXPECT_EQ(told_, Told{"closed"});
}

TEST_F(LeaderChannelTest, AReleaseForAnotherLeavesItsOwnPlaceInTheQueue) {
  hear(What::up, 1);
  channel_.ask({.command = Command::enqueue, .head = "e\nk\n", .argument = "9", .key = "k"}, now_);
  hear(What::bytes, 0, "queued\n");
  channel_.ask({.command = Command::release, .head = "r\nk\n", .argument = "another", .key = "k"},
               now_);
  hear(What::bytes, 0, "ok\n");
  asked();
  EXPECT_TRUE(channel_.has_state(now_));
  hear(What::down);
  hear(What::up, 2);
  EXPECT_EQ(asked(), "e\nk\n9\n");
}

TEST_F(LeaderChannelTest, SaysWhoItIsOnceHoweverOftenThatChanges) {
  hear(What::up, 1);
  channel_.ask(lock(0s), now_);
  hear(What::bytes, 0, "ok mine 9\n");
  forwarder_.take_mail();
  for (int i = 0; i < 1000; ++i) channel_.introduce({.peer = "10.0.0.7:1", .name = "a"});
  EXPECT_TRUE(forwarder_.take_mail().empty());
  channel_.ask(lock(0s), now_);
  EXPECT_EQ(forwarder_.take_mail().size(), 2U);
}

TEST_F(LeaderChannelTest, ListensAgainAndSaysNothingOfIt) {
  hear(What::up, 1);
  channel_.ask({.command = Command::listen, .head = "listen\na\n"}, now_);
  hear(What::bytes, 0, "ok\n");
  channel_.ask({.command = Command::listen, .head = "listen\nb\n"}, now_);
  hear(What::bytes, 0, "ok\n");
  channel_.ask({.command = Command::unlisten, .head = "unlisten\na\n"}, now_);
  hear(What::bytes, 0, "ok\n");
  asked();
  told_.clear();
  hear(What::down);
  hear(What::up, 2);
  EXPECT_EQ(asked(), "listen\nb\n\n");
  hear(What::bytes, 0, "ok\nsig b x\n");
  EXPECT_EQ(told_, Told{"push sig b x"});
  hear(What::here);
  EXPECT_EQ(told_.back(), "prepare listen\nb\n\n");
}

TEST_F(LeaderChannelTest, WatchesAgain) {
  hear(What::up, 1);
  channel_.ask({.command = Command::api,
                .call = HttpCall::events,
                .head = "api\nGET /v1/events\n",
                .argument = "{}"},
               now_);
  hear(What::bytes, 0, "ok 200 {}\nevent {\"event\":\"granted\"}\n");
  EXPECT_TRUE(channel_.listens());
  asked();
  hear(What::down);
  hear(What::up, 2);
  EXPECT_EQ(asked(), "api\nGET /v1/events\n{}\n");
  hear(What::here);
  EXPECT_EQ(told_.back(), "prepare api\nGET /v1/events\n{}\n");
}

TEST_F(LeaderChannelTest, ALeaderThatHasSteppedDownHasAnsweredNothing) {
  hear(What::up, 1);
  channel_.ask(lock(0s), now_);
  hear(What::bytes, 0, "error_not_leader -\n");
  EXPECT_TRUE(channel_.is_asking());
  hear(What::down);
  hear(What::absent);
  EXPECT_EQ(told_, Told{"no leader"});
}

TEST_F(LeaderChannelTest, HereItIsExecutedAsItIsAskedNow) {
  channel_.ask(lock(5s), now_);
  now_ = now_ + 2s;
  hear(What::here);
  EXPECT_EQ(told_, Told{"here l\nk\n3 9 as=0123456789abcdef\n"});
}

}  // namespace
}  // namespace lockd
