// Who is told of what happens to keys, what that costs, and what is missed.
#include "server/session/event_watchers.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {
namespace {

class EventWatchersTest : public testing::Test {
 protected:
  static constexpr std::size_t kWatchersMax = 2000;

  void happens(std::string_view key, Position position = 0) {
    const KeyEvent event{.type = KeyEvent::Type::granted, .key = key};
    static_cast<Observer&>(feed_).on_key_events({&event, 1}, position);
  }
  // One turn. Whether there is more to tell.
  bool turn() {
    return watchers_.tell_some(
        {}, [this](Position position) { return position <= durable_; },
        [this](SessionId id, const KeyEventJson& event, std::uint64_t missed) {
          if (full_.contains(id)) return false;
          const std::size_t key = event.data.find(R"("key":")") + 7;
          heard_[id].push_back(event.data.substr(key, event.data.find('"', key) - key));
          missed_[id] += missed;
          ++told_;
          return true;
        });
  }
  // Those who were told of the key.
  std::vector<SessionId> told_of(std::string_view key) {
    heard_.clear();
    happens(key);
    EXPECT_FALSE(turn());
    std::vector<SessionId> all;
    for (const auto& [id, keys] : heard_) {
      EXPECT_EQ(keys, std::vector<std::string>{std::string(key)});
      all.push_back(id);
    }
    return all;
  }
  using Ids = std::vector<SessionId>;

  EventFeed feed_{kWatchersMax};
  EventWatchers watchers_{feed_};
  Position durable_ = 0;
  std::set<SessionId> full_;  // who have no room
  std::map<SessionId, std::vector<std::string>> heard_;
  std::map<SessionId, std::uint64_t> missed_;
  std::size_t told_ = 0;
};

TEST_F(EventWatchersTest, WhoHasItsPrefixIsTold) {
  const std::vector<std::string> prefixes = {"", "shop/", "shop/1", "shop/12", "sh", "ship", "x"};
  for (std::size_t i = 0; i < prefixes.size(); ++i) ASSERT_TRUE(watchers_.add(i, prefixes[i]));
  EXPECT_EQ(told_of("shop/1"), (Ids{0, 1, 2, 4}));
  EXPECT_EQ(told_of("shop/123"), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(told_of("shop"), (Ids{0, 4}));
  EXPECT_EQ(told_of("ships"), (Ids{0, 4, 5}));
  EXPECT_EQ(told_of("x"), (Ids{0, 6}));
  EXPECT_EQ(told_of("y"), (Ids{0}));
}

// Against the plain way, with prefixes that share much, as they come and go.
TEST_F(EventWatchersTest, WhoeverComesAndGoesItIsThoseWithThePrefix) {
  std::mt19937 random(1);
  const auto word = [&](std::size_t size_max) {
    std::string text;
    for (std::size_t size = random() % (size_max + 1); size > 0; --size) {
      text += static_cast<char>('a' + random() % 2);
    }
    return text;
  };
  std::map<SessionId, std::string> model;
  for (SessionId id = 1; id <= 3000; ++id) {
    const std::string prefix = word(6);
    ASSERT_TRUE(watchers_.add(id, prefix));
    model[id] = prefix;
    while (model.size() > random() % 20) {
      const auto gone = std::next(model.begin(), static_cast<int>(random() % model.size()));
      watchers_.remove(gone->first);
      model.erase(gone);
    }
    const std::string key = "b" + word(7);
    Ids expected;
    for (const auto& [watcher, its] : model) {
      if (key.starts_with(its)) expected.push_back(watcher);
    }
    ASSERT_EQ(told_of(key), expected) << "at " << id;
    ASSERT_LE(watchers_.nodes(), 2 * model.size());
  }
  for (const auto& [id, prefix] : model) watchers_.remove(id);
  EXPECT_EQ(watchers_.nodes(), 0U);
}

TEST_F(EventWatchersTest, APrefixLongerThanAnyKeyMatchesNothing) {
  ASSERT_TRUE(watchers_.add(1, std::string(100'000, 'k')));
  ASSERT_TRUE(watchers_.add(2, std::string(kKeySizeMax, 'k')));
  EXPECT_EQ(told_of(std::string(kKeySizeMax, 'k')), (Ids{2}));
}

TEST_F(EventWatchersTest, NobodyHearsOfWhatWasBefore) {
  ASSERT_TRUE(watchers_.add(1, ""));
  happens("early");
  ASSERT_TRUE(watchers_.add(2, ""));
  happens("late");
  EXPECT_FALSE(turn());
  EXPECT_EQ(heard_[1], (std::vector<std::string>{"early", "late"}));
  EXPECT_EQ(heard_[2], (std::vector<std::string>{"late"}));
}

TEST_F(EventWatchersTest, NobodyHearsOfWhatIsNotDurable) {
  ASSERT_TRUE(watchers_.add(1, ""));
  happens("a", 1);
  happens("b", 2);
  durable_ = 1;
  EXPECT_FALSE(turn());
  EXPECT_EQ(heard_[1], (std::vector<std::string>{"a"}));
  durable_ = 2;
  EXPECT_FALSE(turn());
  EXPECT_EQ(heard_[1], (std::vector<std::string>{"a", "b"}));
}

TEST_F(EventWatchersTest, WhoHasNoRoomMissesWhatConcernsIt) {
  ASSERT_TRUE(watchers_.add(1, "a"));
  full_.insert(1);
  for (const char* key : {"a1", "b", "a2"}) happens(key);
  turn();
  full_.clear();
  happens("a3");
  turn();
  EXPECT_EQ(heard_[1], (std::vector<std::string>{"a3"}));
  EXPECT_EQ(missed_[1], 2U);
  happens("a4");
  turn();
  EXPECT_EQ(missed_[1], 2U);
}

TEST_F(EventWatchersTest, WhomTheFeedOvertakesMissesWhatCameSinceItWatched) {
  ASSERT_TRUE(watchers_.add(1, ""));
  for (int i = 0; i < 10; ++i) happens("k");
  ASSERT_TRUE(watchers_.add(2, ""));
  for (std::size_t i = 0; i < EventFeed::kEntriesMax + 5; ++i) happens("k");
  while (turn()) continue;
  EXPECT_EQ(missed_[1], 15U);
  EXPECT_EQ(missed_[2], 5U);
  EXPECT_EQ(heard_[1].size(), EventFeed::kEntriesMax);
  EXPECT_EQ(heard_[2].size(), EventFeed::kEntriesMax);
}

TEST_F(EventWatchersTest, ThereAreOnlySoMany) {
  for (SessionId id = 0; id < kWatchersMax; ++id) ASSERT_TRUE(watchers_.add(id, "k"));
  EXPECT_FALSE(watchers_.add(kWatchersMax, "k"));
  EXPECT_EQ(told_of("k").size(), kWatchersMax);
  watchers_.remove(7);
  watchers_.remove(7);
  EventWatchers elsewhere(feed_);
  EXPECT_TRUE(elsewhere.add(kWatchersMax, ""));
  EXPECT_FALSE(watchers_.add(7, "k"));
}

// A turn takes some of them, and what is left comes with the next ones, in order.
TEST_F(EventWatchersTest, ATurnHasABudget) {
  for (SessionId id = 0; id < 1000; ++id) ASSERT_TRUE(watchers_.add(id, ""));
  for (int i = 0; i < 100; ++i) happens(std::to_string(i));
  std::size_t turns = 1;
  for (std::size_t before = 0; turn(); ++turns) {
    EXPECT_LE(told_ - before, 20'000U);
    before = told_;
  }
  EXPECT_GE(turns, 5U);
  EXPECT_EQ(told_, 100'000U);
  for (const auto& [id, keys] : heard_) {
    ASSERT_EQ(keys.size(), 100U);
    EXPECT_EQ(keys.front(), "0");
    EXPECT_EQ(keys.back(), "99");
  }
}

// Every length of a prefix, and keys that go along with all but the last byte of them: what they
// cost is their length, so that a turn gets through many of them.
TEST_F(EventWatchersTest, ThoseWhomItDoesNotConcernCostNothing) {
  for (SessionId id = 0; id < 1000; ++id) {
    ASSERT_TRUE(watchers_.add(id, std::string(id % 256, 'k') + "x" + std::to_string(id)));
  }
  for (std::size_t i = 0; i < 60; ++i) happens(std::string(256, 'k'));
  EXPECT_FALSE(turn()) << "60 keys of 256 bytes fit into a turn";
  for (std::size_t i = 0; i < 10'000; ++i) happens("other");
  EXPECT_FALSE(turn()) << "10,000 keys that nobody watches fit into a turn";
  EXPECT_EQ(told_, 0U);
}

}  // namespace
}  // namespace lockd
