// Many threads publish, listen and leave. Meant for the thread sanitizer.
#include "pubsub/signal_hub.h"
#include "base/pattern.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <latch>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockd {
namespace {

using Strings = std::vector<std::string>;

std::vector<AudienceStatus> listed(const SignalHub& hub) {
  std::vector<AudienceStatus> all;
  std::vector<AudienceStatus> some{{}};
  while (some = hub.list_some(some.back()), !some.empty()) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// Keeps what it is given, for each name.
class Inbox final : public Mailbox {
 public:
  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override {
    MutexLock lock(mutex_);
    ++calls_;
    for (const std::uint64_t name : subscribers) received_[name].push_back(signal);
  }
  void on_room() noexcept override { ++told_of_room; }

  std::atomic<int> told_of_room = 0;

  Strings payloads(std::uint64_t name) {
    MutexLock lock(mutex_);
    Strings payloads;
    for (const auto& signal : received_[name]) payloads.emplace_back(signal->payload());
    return payloads;
  }
  std::size_t count(std::uint64_t name) { return payloads(name).size(); }
  int calls() {
    MutexLock lock(mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, std::vector<std::shared_ptr<const Signal>>> received_ GUARDED_BY(mutex_);
  int calls_ GUARDED_BY(mutex_) = 0;
};

TEST(Signal, IsALineAndItsParts) {
  const Signal signal("orders.eu 1", " two  words ");
  EXPECT_EQ(signal.line(), "sig orders.eu 1  two  words \n");
  EXPECT_EQ(signal.channel(), "orders.eu 1");
  EXPECT_EQ(signal.payload(), " two  words ");
}

TEST(Signal, APayloadIsNotBlankAndFitsALine) {
  for (const char* payload : {"x", " x ", "\tx", "{}", "\x01", "\xff", "a\rb"}) {
    EXPECT_TRUE(is_payload("a", payload)) << payload;
  }
  for (const char* payload : {"", " ", "\t \r", "a\nb", "a\n"}) {
    EXPECT_FALSE(is_payload("a", payload)) << payload;
  }
  const std::string channel = "orders";
  const std::size_t size_max = 65'536 - 5 - channel.size();
  EXPECT_TRUE(is_payload(channel, std::string(size_max, 'x')));
  EXPECT_FALSE(is_payload(channel, std::string(size_max + 1, 'x')));
  EXPECT_EQ(Signal(channel, std::string(size_max, 'x')).line().size(), 65'536u + 1);
}

class SignalHubTest : public ::testing::Test {
 protected:
  SignalHub hub_;
  Inbox inbox_;
  Inbox other_inbox_;
  const std::uint8_t mailbox_ = hub_.attach(inbox_);
  const std::uint8_t other_ = hub_.attach(other_inbox_);
};

// Whoever fell behind, all are told when nobody is any more.
TEST_F(SignalHubTest, IsBehindWhileAMailboxHasTooMuchToHandOn) {
  hub_.listen({mailbox_, 1}, "a", "");
  hub_.listen({mailbox_, 2}, "a", "");
  hub_.listen({other_, 1}, "b", "");
  const std::string payload(60'000, 'x');
  const std::size_t cost = Signal("a", payload).cost();
  std::size_t published = 0;
  for (; !hub_.is_behind(); ++published) hub_.publish("a", payload);
  EXPECT_EQ(published, SignalHub::kBacklogMax / (2 * cost) + 1);  // each counts for two
  for (std::size_t i = 0; i < 2 * published; ++i) hub_.publish("b", payload);
  hub_.handed_on(other_, 2 * published * cost);
  EXPECT_EQ(other_inbox_.told_of_room, 0);
  EXPECT_TRUE(hub_.is_behind());
  hub_.handed_on(mailbox_, cost);
  hub_.handed_on(mailbox_, cost);
  EXPECT_FALSE(hub_.is_behind());
  EXPECT_EQ(inbox_.told_of_room, 1);
  EXPECT_EQ(other_inbox_.told_of_room, 1);
}

TEST_F(SignalHubTest, SaysWhatItLookedAt) {
  for (int i = 0; i < 100; ++i) hub_.listen({mailbox_, 1}, "a", "group " + std::to_string(i));
  const auto published = hub_.publish("a", "x");
  EXPECT_EQ(published->reached, 1u);
  EXPECT_GE(published->visited, 100u);
}

// More than one call looks at.
class HalfOutTest : public SignalHubTest {
 protected:
  static constexpr std::size_t kMany = 2 * SignalHub::kVisitsMax + 100;

  HalfOutTest() {
    for (std::size_t i = 0; i < kMany; ++i) {
      hub_.listen({i % 2 == 0 ? mailbox_ : other_, i}, "many", "");
    }
  }
};

TEST_F(HalfOutTest, ASignalGoesOutInPieces) {
  auto published = *hub_.publish("many", "x");
  std::size_t reached = published.reached;
  for (int calls = 1; published.rest != nullptr; ++calls) {
    ASSERT_LT(calls, 5);
    EXPECT_LE(published.visited, SignalHub::kVisitsMax);
    EXPECT_EQ(inbox_.calls(), calls);
    EXPECT_TRUE(hub_.is_behind());
    EXPECT_TRUE(hub_.has_room());
    published = hub_.go_on(published.rest);
    reached += published.reached;
  }
  EXPECT_EQ(reached, kMany);
  EXPECT_EQ(inbox_.calls(), 3);
  for (std::size_t i = 0; i < kMany; i += 1'000) {
    EXPECT_EQ(inbox_.count(i) + other_inbox_.count(i), 1u) << i;
  }
}

TEST_F(HalfOutTest, OthersWaitUntilItIsOver) {
  hub_.listen({mailbox_, kMany}, "few", "");
  auto published = *hub_.publish("many", "x");
  ASSERT_NE(published.rest, nullptr);
  EXPECT_FALSE(hub_.publish("few", "y"));
  while (published.rest != nullptr) {
    EXPECT_EQ(inbox_.told_of_room, 0);
    published = hub_.go_on(published.rest);
  }
  EXPECT_EQ(inbox_.told_of_room, 1);
  EXPECT_EQ(other_inbox_.told_of_room, 1);
  EXPECT_FALSE(hub_.is_behind());
  EXPECT_EQ(hub_.publish("few", "y")->reached, 1u);
}

TEST_F(HalfOutTest, SubscribersMayLeaveMeanwhile) {
  auto published = *hub_.publish("many", "x");
  for (std::size_t i = 0; i < kMany; ++i) hub_.drop({i % 2 == 0 ? mailbox_ : other_, i});
  ASSERT_NE(published.rest, nullptr);
  published = hub_.go_on(published.rest);
  EXPECT_EQ(published.reached, 0u);
  EXPECT_EQ(published.rest, nullptr);
  EXPECT_FALSE(hub_.is_behind());
}

TEST_F(SignalHubTest, IsDroppedInPieces) {
  for (int i = 0; i < 1'000; ++i) hub_.listen({mailbox_, 1}, "a." + std::to_string(i), "");
  int pieces = 1;
  for (int budget = 100; !hub_.drop_some({mailbox_, 1}, &budget); ++pieces, budget = 100) {
    EXPECT_EQ(budget, 0);
    EXPECT_EQ(listed(hub_).size(), 1'000u - static_cast<std::size_t>(pieces) * 100);
  }
  EXPECT_GE(pieces, 10);
  EXPECT_TRUE(listed(hub_).empty());
}

TEST_F(SignalHubTest, TheLargestNamesAndMailboxesStayApart) {
  std::deque<Inbox> inboxes;
  while (inboxes.size() < SignalHub::kMailboxesMax - 2) hub_.attach(inboxes.emplace_back());
  EXPECT_THROW(hub_.attach(inbox_), std::length_error);
  hub_.listen({255, SignalHub::kNameMax}, "a", "");
  hub_.listen({254, SignalHub::kNameMax}, "a", "");
  hub_.listen({0, 0}, "a", "");
  EXPECT_EQ(hub_.publish("a", "x")->reached, 3u);
  EXPECT_EQ(inboxes[253].count(SignalHub::kNameMax), 1u);
  EXPECT_EQ(inboxes[252].count(SignalHub::kNameMax), 1u);
  EXPECT_EQ(inbox_.count(0), 1u);
}

TEST_F(SignalHubTest, ListsAllHoweverMany) {
  for (int i = 0; i < 1'000; ++i) {
    hub_.listen({mailbox_, 1}, "a." + std::to_string(i), i % 2 == 0 ? "g" : "");
    hub_.listen({mailbox_, 2}, "a." + std::to_string(i), "g");
  }
  const auto all = listed(hub_);
  ASSERT_EQ(all.size(), 1'500u);
  EXPECT_EQ(all[0], (AudienceStatus{"a.0", "g", 2}));
  EXPECT_EQ(all[1], (AudienceStatus{"a.1", "", 1}));
  EXPECT_EQ(all[2], (AudienceStatus{"a.1", "g", 1}));
}

TEST(SignalHub, RefusesMoreSubscriptionsThanASubscriberMayHave) {
  SignalHub hub(2);
  Inbox inbox;
  const std::uint8_t mailbox = hub.attach(inbox);
  EXPECT_TRUE(hub.listen({mailbox, 1}, "a", ""));
  EXPECT_TRUE(hub.listen({mailbox, 1}, "a", "g"));
  EXPECT_FALSE(hub.listen({mailbox, 1}, "b", ""));
  EXPECT_TRUE(hub.listen({mailbox, 1}, "a", "g")) << "it has this one";
  EXPECT_TRUE(hub.listen({mailbox, 2}, "b", "")) << "another has its own";
  EXPECT_EQ(hub.publish("b", "x")->reached, 1u);
  hub.unlisten({mailbox, 1}, "a", "");
  EXPECT_TRUE(hub.listen({mailbox, 1}, "b", ""));
}

TEST(SignalHub, RefusesMoreSubscriptionsThanThereMayBeInAll) {
  SignalHub hub(0, 3);
  Inbox inbox;
  const std::uint8_t mailbox = hub.attach(inbox);
  EXPECT_TRUE(hub.listen({mailbox, 1}, "a", ""));
  EXPECT_TRUE(hub.listen({mailbox, 2}, "a", ""));
  EXPECT_FALSE(hub.listen({mailbox, 3}, "a", ""));
  EXPECT_TRUE(hub.listen({mailbox, 2}, "a", "")) << "it has this one";
  hub.drop({mailbox, 1});
  EXPECT_TRUE(hub.listen({mailbox, 3}, "a", ""));
  EXPECT_EQ(hub.publish("a", "x")->reached, 2u);
}

TEST(SignalHub, CountsTheNodesOfPatternsAgainstTheLimitInAll) {
  SignalHub hub(0, 6);
  Inbox inbox;
  const std::uint8_t mailbox = hub.attach(inbox);
  EXPECT_TRUE(hub.listen({mailbox, 1}, "a.b.c.d", ""));
  EXPECT_TRUE(hub.listen({mailbox, 1}, "a.b.x.>", ""))
      << "two subscriptions, and a.b, c.d, x and >";
  EXPECT_FALSE(hub.listen({mailbox, 1}, "y", ""));
  hub.drop({mailbox, 1});
  EXPECT_TRUE(hub.listen({mailbox, 1}, "y", ""));
}

// A mailbox should not wait. Should one do so all the same, it holds up its publisher alone.
TEST(SignalHub, NobodyWaitsForASlowMailbox) {
  struct Slow final : Mailbox {
    void on_room() noexcept override {}
    void deliver(std::span<const std::uint64_t>,
                 const std::shared_ptr<const Signal>&) noexcept override {
      entered.count_down();
      leave.wait();
    }
    std::latch entered{1};
    std::latch leave{1};
  } slow;
  SignalHub hub;
  Inbox inbox;
  hub.listen({hub.attach(slow), 1}, "slow", "");
  const std::uint8_t mailbox = hub.attach(inbox);
  std::thread publisher([&] { EXPECT_EQ(hub.publish("slow", "x")->reached, 1u); });
  slow.entered.wait();
  EXPECT_TRUE(hub.listen({mailbox, 1}, "fast", ""));
  EXPECT_EQ(hub.publish("fast", "x")->reached, 1u);
  EXPECT_EQ(listed(hub).size(), 2u);
  hub.drop({0, 1});
  slow.leave.count_down();
  publisher.join();
}

constexpr int kPublishers = 3;
constexpr int kSignals = 3'000;

// "<publisher> <number>": each publisher's numbers rise from 0.
void publish_all(SignalHub& hub, int publisher) {
  for (int i = 0; i < kSignals; ++i) {
    hub.publish("t." + std::to_string(publisher),
                std::to_string(publisher) + " " + std::to_string(i));
  }
}

// Each publisher's numbers rise; if the signals are `whole`, by one.
void expect_in_order(const Strings& payloads, bool whole) {
  std::map<int, int> next;
  for (const std::string& payload : payloads) {
    int& expected = next[std::stoi(payload)];
    const int number = std::stoi(payload.substr(payload.find(' ')));
    EXPECT_TRUE(number == expected || (!whole && number > expected)) << payload;
    expected = number + 1;
  }
}

class SignalHubThreads : public SignalHubTest {
 protected:
  void start_publishers() {
    for (int i = 0; i < kPublishers; ++i) {
      threads_.emplace_back([this, i] {
        publish_all(hub_, i);
        ++done_;
      });
    }
  }
  bool publishing() const { return done_ < kPublishers; }
  void join() {
    for (std::thread& thread : threads_) thread.join();
  }

  std::atomic<int> done_ = 0;
  std::vector<std::thread> threads_;
};

TEST_F(SignalHubThreads, EverySubscriberReceivesEveryPublishersSignalsInOrder) {
  for (std::uint64_t name = 1; name <= 3; ++name) {
    hub_.listen({mailbox_, name}, "t.*", "");
    hub_.listen({mailbox_, name}, ">", "");
    hub_.listen({other_, name}, "t.>", "");
  }
  start_publishers();
  join();
  for (std::uint64_t name = 1; name <= 3; ++name) {
    for (Inbox* inbox : {&inbox_, &other_inbox_}) {
      const auto payloads = inbox->payloads(name);
      EXPECT_EQ(payloads.size(), std::size_t{kPublishers} * kSignals) << "one copy of each";
      expect_in_order(payloads, true);
    }
  }
}

TEST_F(SignalHubThreads, AGroupSharesEquallyAndLosesNothing) {
  for (std::uint64_t name = 1; name <= 3; ++name) hub_.listen({mailbox_, name}, "t.*", "g");
  start_publishers();
  join();
  std::set<std::string> all;
  for (std::uint64_t name = 1; name <= 3; ++name) {
    const auto payloads = inbox_.payloads(name);
    EXPECT_EQ(payloads.size(), std::size_t{kPublishers} * kSignals / 3);
    expect_in_order(payloads, false);
    all.insert(payloads.begin(), payloads.end());
  }
  EXPECT_EQ(all.size(), std::size_t{kPublishers} * kSignals) << "none went to two";
}

// Subscribers come and go under new names while others publish; one stays and misses nothing.
TEST_F(SignalHubThreads, SubscribersLeaveWhileOthersPublish) {
  hub_.listen({mailbox_, 0}, ">", "");
  start_publishers();
  std::uint64_t name = 1;
  for (; publishing(); ++name) {
    hub_.listen({other_, name}, "t.*", "");
    hub_.listen({other_, name}, "t.>", "g");
    hub_.listen({other_, name}, "t.0", "g");
    listed(hub_);
    if (name % 2 == 0) hub_.unlisten({other_, name}, "t.*", "");
    hub_.drop({other_, name});
  }
  join();
  expect_in_order(inbox_.payloads(0), true);
  EXPECT_EQ(inbox_.count(0), std::size_t{kPublishers} * kSignals);
  for (std::uint64_t n = 1; n < name; ++n) expect_in_order(other_inbox_.payloads(n), false);
  EXPECT_EQ(listed(hub_), (std::vector<AudienceStatus>{{">", "", 1}}));
}

TEST_F(SignalHubThreads, AMailboxMayBeAttachedWhileOthersPublish) {
  std::deque<Inbox> inboxes;
  start_publishers();
  while (publishing() && inboxes.size() < 200) {
    const std::uint8_t mailbox = hub_.attach(inboxes.emplace_back());
    hub_.listen({mailbox, 1}, "t.>", "");
  }
  join();
  for (Inbox& inbox : inboxes) expect_in_order(inbox.payloads(1), false);
}

// What begins after drop() has returned does not reach the one that was dropped.
TEST_F(SignalHubThreads, NothingIsDeliveredThatWasPublishedAfterADrop) {
  start_publishers();
  for (std::uint64_t name = 1; publishing(); ++name) {
    hub_.listen({other_, name}, "mine", "");
    EXPECT_EQ(hub_.publish("mine", "before")->reached, 1u);
    hub_.drop({other_, name});
    EXPECT_EQ(hub_.publish("mine", "after")->reached, 0u);
    ASSERT_EQ(other_inbox_.payloads(name), Strings{"before"});
  }
  join();
}

}  // namespace
}  // namespace lockd
