// Channels at the follower's end: opened, full, ended, lost and given up. Without sockets.
#include "cluster/follower_link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {
namespace {

using namespace std::chrono_literals;

struct Told final : Channel::Client {
  bool opened = false;
  int rooms = 0;
  std::string bytes{};
  std::vector<Channel::End> ends{};

  void on_channel_open() override { opened = true; }
  void on_channel_bytes(std::string_view more) override { bytes += more; }
  void on_channel_room() override { ++rooms; }
  void on_channel_end(Channel::End end) override { ends.push_back(end); }
};

class FollowerLinkTest : public testing::Test, private FollowerLink::Wire {
 protected:
  void be_up(std::uint64_t leader_ms = 0) {
    link_.begin(*this);
    write_frame(incoming_, FrameType::clock, 0, number_bytes(leader_ms));
    receive();
  }
  void say(FrameType type, SessionId id, std::string_view payload) {
    write_frame(incoming_, type, id, payload);
    receive();
  }
  void say_number(FrameType type, SessionId id, std::uint64_t number) {
    write_frame(incoming_, type, id, number_bytes(number));
    receive();
  }
  // What was sent since the last call.
  std::vector<Frame> sent() {
    last_ = std::exchange(output_, {});
    std::vector<Frame> frames;
    std::string_view rest = last_;
    for (Frame frame; take_frame(rest, &frame) == FrameStatus::complete;) frames.push_back(frame);
    return frames;
  }

  const Channel::Time start_{1h};
  std::size_t unsent_ = 0;
  FollowerLink link_;

 private:
  std::string& output() override { return output_; }
  std::size_t unsent() const override { return unsent_; }
  void receive() {
    const auto taken = link_.receive(incoming_, start_);
    ASSERT_TRUE(taken);
    incoming_.erase(0, *taken);
  }

  std::string output_;
  std::string last_;
  std::string incoming_;
};

TEST_F(FollowerLinkTest, WaitsForTheLinkAndThenOpensWithTheAgeOfItsConnection) {
  Told client;
  Channel channel(link_, 7, {.peer = "10.0.0.7:1"}, start_ - 3s, client);
  channel.start(start_ + 2s);
  EXPECT_EQ(channel.state(), Channel::State::waiting);
  EXPECT_EQ(channel.room(), 0U);
  be_up(50'000);
  EXPECT_TRUE(client.opened);
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].type, FrameType::open);
  EXPECT_EQ(opening_in(frames[0].payload)->connected_ms, 47'000U);
  EXPECT_EQ(opening_in(frames[0].payload)->peer, "10.0.0.7:1");
}

TEST_F(FollowerLinkTest, GivesUpInTimeAndSendsNothingThen) {
  Told client;
  Channel channel(link_, 7, {}, start_, client);
  channel.start(start_ + 2s);
  link_.tick(start_ + 1999ms);
  EXPECT_TRUE(client.ends.empty());
  link_.tick(start_ + 2s);
  EXPECT_EQ(client.ends, std::vector{Channel::End::no_leader});
  be_up();
  EXPECT_TRUE(sent().empty());
}

// It leaves while it waits: the leader never knows of it.
TEST_F(FollowerLinkTest, ClientThatLeavesWhileItWaitsIsForgotten) {
  Told client;
  {
    Channel channel(link_, 7, {}, start_, client);
    channel.start(start_ + 2s);
  }
  be_up();
  EXPECT_TRUE(sent().empty());
}

TEST_F(FollowerLinkTest, SendsNoMoreThanTheWindow) {
  be_up();
  Told client;
  Channel channel(link_, 7, {}, start_, client);
  channel.start(start_ + 2s);
  EXPECT_EQ(channel.room(), kChannelWindow);
  channel.send(std::string(kChannelWindow - 1, 'x'));
  EXPECT_EQ(channel.room(), 1U);
  channel.send("x");
  EXPECT_EQ(channel.room(), 0U);
  say_number(FrameType::taken, 7, 1000);
  EXPECT_EQ(client.rooms, 1);
  EXPECT_EQ(channel.room(), 1000U);
}

TEST_F(FollowerLinkTest, ConnectionThatDoesNotDrainHoldsAllUp) {
  be_up();
  Told client;
  Channel channel(link_, 7, {}, start_, client);
  channel.start(start_ + 2s);
  unsent_ = 1024 * 1024;
  EXPECT_EQ(channel.room(), 0U);
  channel.send("");  // it found no room
  unsent_ = 0;
  link_.on_all_sent();
  EXPECT_EQ(client.rooms, 1);
}

TEST_F(FollowerLinkTest, CopiesWhatComesAndSaysWhatWasTaken) {
  be_up();
  Told client;
  Channel channel(link_, 7, {}, start_, client);
  channel.start(start_ + 2s);
  say(FrameType::bytes, 7, "ok\n");
  say(FrameType::bytes, 8, "of nobody");
  EXPECT_EQ(client.bytes, "ok\n");
  sent();
  channel.acknowledge(40'000);
  channel.end_input(5);
  channel.close(FrameType::detach);
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[0].type, FrameType::taken);
  EXPECT_EQ(number_in(frames[0].payload), 40'000U);
  EXPECT_EQ(frames[1].type, FrameType::end);
  EXPECT_EQ(number_in(frames[1].payload), 5U);
  EXPECT_EQ(frames[2].type, FrameType::detach);
  EXPECT_TRUE(client.ends.empty());  // its own doing
}

TEST_F(FollowerLinkTest, EndsWithTheLeadersCloseAndWithTheLink) {
  be_up();
  Told closed;
  Told lost;
  Told waits;
  Channel first(link_, 1, {}, start_, closed);
  Channel second(link_, 2, {}, start_, lost);
  first.start(start_ + 2s);
  second.start(start_ + 2s);
  say(FrameType::close, 1, {});
  EXPECT_EQ(closed.ends, std::vector{Channel::End::closed});
  link_.end();
  EXPECT_EQ(lost.ends, std::vector{Channel::End::lost});
  EXPECT_EQ(closed.ends.size(), 1U);
  Channel third(link_, 3, {}, start_, waits);
  third.start(start_ + 2s);
  link_.end();
  EXPECT_TRUE(waits.ends.empty());  // the next leader may come in time
  link_.end(/*gives_up=*/true);
  EXPECT_EQ(waits.ends, std::vector{Channel::End::no_leader});
}

// Nothing is sent twice: what was under way over the last link is lost with it.
TEST_F(FollowerLinkTest, NextLinkKnowsNothingOfTheLast) {
  be_up();
  Told client;
  Channel channel(link_, 7, {}, start_, client);
  channel.start(start_ + 2s);
  channel.send("l\nk\n0\n");
  sent();
  link_.end();
  be_up();
  EXPECT_TRUE(sent().empty());
}

// A frame that was delayed on its way must not make the leader's clock seem late for long.
TEST_F(FollowerLinkTest, ClockOfTheLeaderIsKnownByTheQuickestFrame) {
  be_up(50'000);
  say_number(FrameType::clock, 0, 48'000);
  say_number(FrameType::clock, 0, 47'000);
  Told client;
  Channel channel(link_, 7, {}, start_, client);
  channel.start(start_ + 2s);
  const auto frames = sent();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(opening_in(frames[0].payload)->connected_ms, 49'998U);
}

TEST_F(FollowerLinkTest, BytesThatAreNoFrameAreRefused) {
  be_up();
  EXPECT_FALSE(link_.receive("nonsense", start_));
}

}  // namespace
}  // namespace lockd
