#include "pubsub/subscriptions.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "pubsub/testing/match_witness.h"
#include "pubsub/testing/subscriptions_model.h"

namespace lockd {
namespace {

using Ids = std::vector<SubscriberId>;

class SubscriptionsTest : public ::testing::Test {
 protected:
  Ids match(std::string_view channel) { return match_all(subscriptions_, channel); }
  Ids match_some(std::size_t visits_max) {
    Ids out;
    subscriptions_.match_some(visits_max, out);
    return out;
  }

  Subscriptions subscriptions_;
};

TEST_F(SubscriptionsTest, WithoutAGroupEveryMatchingSubscriberIsServed) {
  subscriptions_.add(1, "a.b", "");
  subscriptions_.add(2, "a.*", "");
  subscriptions_.add(3, "a.>", "");
  subscriptions_.add(4, "a.c", "");
  subscriptions_.add(5, "a.b", "");
  EXPECT_EQ(match("a.b"), (Ids{3, 1, 5, 2}));
  EXPECT_EQ(match("a.c"), (Ids{3, 4, 2}));
  EXPECT_EQ(match("a.b.c"), (Ids{3}));
  EXPECT_EQ(match("a"), Ids{});
  EXPECT_EQ(match("b"), Ids{});
}

TEST_F(SubscriptionsTest, TheTrieShrinksToNothing) {
  EXPECT_EQ(subscriptions_.nodes(), 0u);
  subscriptions_.add(1, "a.b.c", "");
  EXPECT_EQ(subscriptions_.nodes(), 1u);
  subscriptions_.add(1, "a.*.>", "g");
  EXPECT_EQ(subscriptions_.nodes(), 4u) << "a, b.c, * and >";
  subscriptions_.add(1, "a..c", "g");
  subscriptions_.add(2, "a.b", "");
  EXPECT_EQ(subscriptions_.nodes(), 6u) << "a, b, c, *, > and .c";
  subscriptions_.remove(1, "a.b.c", "");
  EXPECT_EQ(subscriptions_.nodes(), 5u) << "a.b is still listened to";
  subscriptions_.remove_all(1);
  EXPECT_EQ(subscriptions_.nodes(), 2u);
  subscriptions_.remove(2, "a.b", "");
  EXPECT_EQ(subscriptions_.nodes(), 0u);
  EXPECT_EQ(subscriptions_.count(1), 0u);
}

// However many tokens it has, a pattern adds a chain, or splits one in two beside which it adds
// one, and `>`.
TEST_F(SubscriptionsTest, PatternTakesThreeNodesAtMost) {
  std::mt19937_64 random(1);
  for (SubscriberId id = 1; id <= 1'000; ++id) {
    std::string pattern;
    for (int token = 0; token < 31; ++token) pattern += random() % 2 == 0 ? "a." : "b.";
    const std::size_t before = subscriptions_.nodes();
    subscriptions_.add(id, pattern + ">", "");
    ASSERT_LE(subscriptions_.nodes(), before + 3);
    ASSERT_EQ(match(pattern + "c"), (Ids{id}));
    ASSERT_EQ(match(pattern.substr(0, pattern.size() - 1)), Ids{});
  }
  for (SubscriberId id = 1; id <= 1'000; ++id) subscriptions_.remove_all(id);
  EXPECT_EQ(subscriptions_.nodes(), 0u);
}

// A chain splits while a match is in the middle of it: earlier subscribers are still served.
TEST_F(SubscriptionsTest, ChainMaySplitInTheMiddleOfAMatch) {
  for (std::size_t visits = 0; visits < 8; ++visits) {
    for (const char* branch : {"a.x", "a.b.x", "a.*", "a.b", "a.b.c.>", "*.b.c"}) {
      subscriptions_.add(1, "a.b.c.d", "");
      subscriptions_.begin_match("a.b.c.d");
      Ids out = match_some(visits);
      subscriptions_.add(2, branch, "");
      subscriptions_.match_some(SIZE_MAX, out);
      EXPECT_EQ(out, (Ids{1})) << branch << " after " << visits;
      subscriptions_.remove_all(1);
      subscriptions_.remove_all(2);
      EXPECT_EQ(subscriptions_.nodes(), 0u);
    }
  }
}

TEST_F(SubscriptionsTest, RemovesInPieces) {
  for (int i = 0; i < 10; ++i) subscriptions_.add(1, "a." + std::to_string(i), "");
  EXPECT_EQ(subscriptions_.remove_all(1, 4), 4u);
  EXPECT_EQ(subscriptions_.count(1), 6u);
  EXPECT_EQ(subscriptions_.remove_all(1, 5), 5u);
  EXPECT_EQ(subscriptions_.remove_all(1, 2), 1u);
  EXPECT_EQ(subscriptions_.nodes(), 0u);
}

TEST_F(SubscriptionsTest, ListsPatternsAndGroupsInPieces) {
  subscriptions_.add(1, "b", "");
  subscriptions_.add(2, "b", "");
  subscriptions_.add(1, "a.>", "z");
  subscriptions_.add(1, "a.>", "g");
  subscriptions_.add(2, "a.>", "g");
  const std::vector<AudienceStatus> all{{"a.>", "g", 2}, {"a.>", "z", 1}, {"b", "", 2}};
  EXPECT_EQ(subscriptions_.list("", "", 100), all);
  EXPECT_EQ(subscriptions_.list("", "", 2), std::vector(all.begin(), all.begin() + 2));
  subscriptions_.remove_all(1);  // "a.>", "z" is gone: the listing goes on behind where it was
  EXPECT_EQ(subscriptions_.list("a.>", "z", 2), (std::vector<AudienceStatus>{{"b", "", 1}}));
  EXPECT_EQ(subscriptions_.list("b", "", 2), std::vector<AudienceStatus>{});
}

TEST_F(SubscriptionsTest, TheDeepestPatternsAreFound) {
  std::string channel = "a", any = "*", rest = "*";
  for (int i = 0; i < 31; ++i) {
    channel += ".a";
    any += ".*";
    rest += i == 30 ? ".>" : ".*";
  }
  subscriptions_.add(1, any, "");
  subscriptions_.add(2, rest, "");
  subscriptions_.add(3, channel, "g");
  EXPECT_EQ(match(channel), (Ids{2, 1, 3}));
  EXPECT_EQ(match(channel.substr(2)), Ids{});
  for (const SubscriberId id : Ids{1, 2, 3}) subscriptions_.remove_all(id);
  EXPECT_EQ(subscriptions_.nodes(), 0u);
}

// A match in pieces.

TEST_F(SubscriptionsTest, AMatchLooksAtNoMoreThanItMay) {
  for (int i = 0; i < 1'000; ++i) subscriptions_.add(1, "a", "group " + std::to_string(i));
  Ids out;
  subscriptions_.begin_match("a");
  std::size_t visited = 0;
  while (subscriptions_.is_matching()) {
    const std::size_t some = subscriptions_.match_some(64, out);
    EXPECT_LE(some, 64u);
    visited += some;
  }
  EXPECT_GE(visited, 1'000u);
  EXPECT_EQ(out, (Ids{1}));
}

// The nodes that a match has come upon stay until it is done with them, and no longer.
TEST_F(SubscriptionsTest, EveryoneMayLeaveInTheMiddleOfAMatch) {
  const char* const patterns[] = {"a.b.c", "a.*.c", "*.b.*", "a.>", ">", "a.b.>"};
  for (std::size_t visits = 0; visits < 30; ++visits) {
    for (const char* pattern : patterns) {
      subscriptions_.add(1, pattern, "");
      subscriptions_.add(2, pattern, "g");
    }
    subscriptions_.begin_match("a.b.c");
    match_some(visits);
    subscriptions_.remove_all(1);
    subscriptions_.remove_all(2);
    EXPECT_EQ(match_some(SIZE_MAX), Ids{}) << visits;
    EXPECT_FALSE(subscriptions_.is_matching());
    EXPECT_EQ(subscriptions_.nodes(), 0u);
  }
}

// Few tokens and few names, so that everything meets everything.
class Names {
 public:
  explicit Names(std::mt19937_64& random) : random_(random) {}

  std::string channel() { return name({"a", "b", ""}); }
  std::string pattern() {
    std::string pattern = name({"a", "b", "", "*", "*"});
    return random_() % 3 == 0 ? pattern + ".>" : pattern;
  }
  std::string group() { return pick({"", "", "g", "h"}); }

 private:
  std::string pick(const std::vector<std::string>& texts) {
    return texts[random_() % texts.size()];
  }
  std::string name(const std::vector<std::string>& tokens) {
    std::string name = pick(tokens);
    for (auto more = random_() % 4; more > 0; --more) name += "." + pick(tokens);
    return name.empty() ? "a" : name;
  }

  std::mt19937_64& random_;
};

TEST(SubscriptionsRandom, AgreeWithTheModelOverRandomHistories) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Names names(random);
    Subscriptions subscriptions;
    SubscriptionsModel model;
    std::size_t reached = 0;
    for (int step = 0; step < 1'000; ++step) {
      const SubscriberId id = random() % 8;
      const auto dice = random() % 100;
      if (dice < 60) {
        const std::string channel = names.channel();
        Ids out;
        subscriptions.begin_match(channel);
        while (subscriptions.is_matching()) subscriptions.match_some(1 + random() % 8, out);
        ASSERT_EQ(out, model.match(channel)) << channel;
        reached += out.size();
      } else if (dice < 98) {
        const std::string pattern = names.pattern(), group = names.group();
        ASSERT_EQ(dice < 82 ? subscriptions.add(id, pattern, group)
                            : subscriptions.remove(id, pattern, group),
                  dice < 82 ? model.add(id, pattern, group) : model.remove(id, pattern, group));
      } else {
        subscriptions.remove_all(id);
        model.remove_all(id);
      }
      if (step % 50 == 0) {
        ASSERT_EQ(subscriptions.list("", "", SIZE_MAX), model.list());
      }
    }
    EXPECT_GT(reached, 500u) << "the history is about nothing";
    for (SubscriberId id = 0; id < 8; ++id) subscriptions.remove_all(id);
    EXPECT_EQ(subscriptions.nodes(), 0u);
  }
}

// Between the pieces of a match subscribers come, change and go.
TEST(SubscriptionsRandom, AMatchInPiecesKeepsItsPromisesWhateverComesBetween) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Names names(random);
    Subscriptions subscriptions;
    SubscriptionsModel model;
    const auto change = [&] {
      const SubscriberId id = random() % 8;
      const std::string pattern = names.pattern(), group = names.group();
      const auto dice = random() % 100;
      if (dice < 50) {
        ASSERT_EQ(subscriptions.add(id, pattern, group), model.add(id, pattern, group));
      } else if (dice < 92) {
        ASSERT_EQ(subscriptions.remove(id, pattern, group), model.remove(id, pattern, group));
      } else {
        subscriptions.remove_all(id);
        model.remove_all(id);
      }
    };
    for (int signal = 0; signal < 50; ++signal) {
      for (int i = 0; i < 40; ++i) change();
      const std::string channel = names.channel();
      MatchWitness witness(model, channel);
      subscriptions.begin_match(channel);
      while (subscriptions.is_matching()) {
        Ids some;
        subscriptions.match_some(1 + random() % 4, some);
        ASSERT_EQ(witness.found(some), "");
        for (auto changes = random() % 4; changes > 0; --changes) {
          change();
          witness.changed();
        }
      }
      ASSERT_EQ(witness.over(), "");
    }
    for (SubscriberId id = 0; id < 8; ++id) subscriptions.remove_all(id);
    EXPECT_EQ(subscriptions.nodes(), 0u);
    EXPECT_EQ(subscriptions.size(), 0u);
  }
}

TEST(Pattern, MatchesTokenByToken) {
  const struct {
    const char* pattern;
    const char* channel;
    bool expected;
  } cases[] = {
      {"a", "a", true},         {"a", "b", false},        {"a", "a.b", false},
      {"a.b", "a", false},      {"a.b", "a.b", true},     {"A", "a", false},
      {"*", "a", true},         {"*", "a.b", false},      {"*.*", "a.b", true},
      {"*.b", "a.b", true},     {"a.*", "a", false},      {"a.*", "a.b", true},
      {"a.*", "a.b.c", false},  {"a.*.c", "a.b.c", true}, {"a.*.c", "a.b.d", false},
      {"*.*.c", "a.b.c", true}, {">", "a", true},         {">", "a.b.c", true},
      {"a.>", "a", false},      {"a.>", "a.b", true},     {"a.>", "a.b.c", true},
      {"a.>", "b.c", false},    {"*.>", "a", false},      {"*.>", "a.b", true},
      {"a.*.>", "a.b", false},  {"a.*.>", "a.b.c", true}, {"ab", "a", false},
      {"a", "ab", false},
  };
  for (const auto& [pattern, channel, expected] : cases) {
    EXPECT_EQ(matches(pattern, channel), expected) << pattern << " and " << channel;
  }
}

TEST(Pattern, AnEmptyTokenIsATokenLikeAnyOther) {
  EXPECT_TRUE(matches("a..b", "a..b"));
  EXPECT_FALSE(matches("a..b", "a.b"));
  EXPECT_TRUE(matches("a.*.b", "a..b"));
  EXPECT_TRUE(matches("a.*", "a."));
  EXPECT_TRUE(matches("a.>", "a."));
  EXPECT_FALSE(matches("a", "a."));
  EXPECT_FALSE(matches("a.", "a"));
  EXPECT_TRUE(matches("*.*", "."));
}

}  // namespace
}  // namespace lockd
