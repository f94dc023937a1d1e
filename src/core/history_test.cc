// Tests of the history: its encoding, the eviction of old events, and the events a table records.
#include "core/history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rate_limit.h"
#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

using Type = KeyEvent::Type;
using Sort = History::Sort;

// The encoded events of a ring, the oldest first.
std::vector<std::string> read_all(const HistoryRing& ring) {
  std::vector<std::string> blocks;
  std::string block;
  for (std::uint64_t n = ring.newest(); ring.copy(n, block); --n) {
    blocks.insert(blocks.begin(), block);
    if (n == 0) break;
  }
  std::vector<std::string> entries;
  for (const std::string& bytes : blocks) {
    for (std::string_view rest = bytes; !rest.empty();) {
      const PastEvent event(rest);
      entries.emplace_back(rest.substr(0, event.facts.size));
      rest.remove_prefix(event.facts.size);
    }
  }
  return entries;
}

std::vector<std::string> keys_of(const HistoryRing& ring) {
  std::vector<std::string> keys;
  for (const std::string& entry : read_all(ring)) keys.emplace_back(PastEvent(entry).key);
  return keys;
}

TEST(RateLimitTest, LimitsAllCallersTogetherPerSecond) {
  RateLimit limit(2);
  const Time second{5'000'000'000};
  EXPECT_TRUE(limit.admit(second.ns));
  EXPECT_TRUE(limit.admit((second + 999ms).ns));
  EXPECT_FALSE(limit.admit((second + 999ms).ns));
  EXPECT_TRUE(limit.admit((second + 1s).ns));
  EXPECT_TRUE(limit.admit(second.ns)) << "a late call counts in the current second";
  EXPECT_FALSE(limit.admit((second + 1s).ns));
}

TEST(HistoryTest, EventRoundTrips) {
  History history(64 * 1024);
  const KeyEventRecord facts{.at = Time{77},
                             .fence = kFenceMax,
                             .ttl = 30s,
                             .lasted = 5s,
                             .place = 3,
                             .limit = kLimitMax,
                             .holders = 4,
                             .waiters = 5,
                             .type = Type::revoked,
                             .kind = Kind::semaphore,
                             .outcome = Outcome::timeout};
  const std::string longest(256, 'x');
  history.add(facts, {.key = longest,
                      .holder = longest,
                      .client = {longest, "10.0.0.7:51234", longest},
                      .reason = longest,
                      .by = "ann"});
  const auto entries = read_all(history.ring(Sort::admin));
  ASSERT_EQ(entries.size(), 1u);
  const KeyEvent event = PastEvent(entries[0]).event();
  EXPECT_EQ(event.type, Type::revoked);
  EXPECT_EQ(event.kind, Kind::semaphore);
  EXPECT_EQ(event.outcome, Outcome::timeout);
  EXPECT_EQ(event.key, longest);
  EXPECT_EQ(event.holder, longest);
  EXPECT_EQ(event.session, 0u);
  ASSERT_NE(event.client, nullptr);
  EXPECT_EQ(*event.client, (ClientIdentity{longest, "10.0.0.7:51234", longest}));
  EXPECT_EQ(event.fence, kFenceMax);
  EXPECT_EQ(event.ttl, 30s);
  EXPECT_EQ(event.lasted, 5s);
  EXPECT_EQ(event.place, 3u);
  EXPECT_EQ(event.at, Time{77});
  EXPECT_EQ(event.reason, longest);
  EXPECT_EQ(event.by, "ann");
  EXPECT_EQ(event.limit, kLimitMax);
  EXPECT_EQ(event.holders, 4u);
  EXPECT_EQ(event.waiters, 5u);
}

TEST(HistoryTest, RecordsSessionsWithoutTheirSecrets) {
  History history(64 * 1024);
  history.add({.type = Type::granted}, {"k", Holder::of_secret(0x5ec2e7, 17)});
  const auto entries = read_all(history.ring(Sort::common));
  ASSERT_EQ(entries.size(), 1u);
  const KeyEvent event = PastEvent(entries[0]).event();
  EXPECT_EQ(event.holder, "tcp:17");
  EXPECT_EQ(event.session, 17u);
  EXPECT_EQ(event.client, nullptr);
  EXPECT_EQ(entries[0].find("\xe7\xc2\x5e"), std::string::npos);
}

TEST(HistoryTest, BeginWritesTheSameEventAsAdd) {
  const KeyEventRecord facts{
      .at = Time{5}, .fence = 6, .ttl = 7s, .waiters = 3, .type = Type::queued};
  for (const Holder& holder : {Holder("a name, and a long one"), Holder::of_secret(1, 17)}) {
    History two_ways(64 * 1024);
    two_ways.add(facts, {"key", holder});
    KeyEventRecord& begun = two_ways.begin(Type::queued, "key", StoredHolder(holder));
    begun.at = facts.at;
    begun.fence = facts.fence;
    begun.ttl = facts.ttl;
    begun.waiters = facts.waiters;
    auto entries = read_all(two_ways.ring(Sort::common));
    ASSERT_EQ(entries.size(), 2u);
    const KeyEvent a = PastEvent(entries[0]).event();
    const KeyEvent b = PastEvent(entries[1]).event();
    EXPECT_EQ(a.key, "key");
    EXPECT_EQ(b.key, "key");
    EXPECT_EQ(a.holder, b.holder);
    EXPECT_EQ(a.session, b.session);
    EXPECT_EQ(b.at, Time{5});
    EXPECT_EQ(b.fence, 6u);
    EXPECT_EQ(b.ttl, 7s);
    EXPECT_EQ(b.waiters, 3u);
    EXPECT_EQ(b.type, Type::queued);
  }
}

TEST(HistoryTest, TruncatesLongReasonBetweenCharacters) {
  History history(64 * 1024);
  std::string reason(255, 'x');
  reason += "\xc3\xa4";  // a character of two bytes, of which only one would fit
  history.add({.type = Type::revoked}, {.key = "k", .holder = "a", .reason = reason});
  const auto entries = read_all(history.ring(Sort::admin));
  EXPECT_EQ(PastEvent(entries.at(0)).reason, std::string(255, 'x'));
}

// The remaining events are the latest, complete and in order.
TEST(HistoryTest, OldestEventsAreEvictedFirst) {
  for (const std::size_t capacity : {1UL, 64UL * 1024, 1024UL * 1024, 4096UL * 1024}) {
    History history(capacity);
    constexpr std::size_t kCount = 100'000;
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::string key = std::to_string(i);
      if (i % 2 == 0) {
        const std::string name(1 + i % 256, 'h');
        history.begin(Type::granted, key, StoredHolder(Holder(name)));
      } else {
        history.add({.type = Type::granted}, {key, "h", {"name", "peer", "note"}});
      }
    }
    const auto keys = keys_of(history.ring(Sort::common));
    ASSERT_GT(keys.size(), 1u) << capacity;
    ASSERT_LT(keys.size(), kCount) << capacity;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(keys[i], std::to_string(kCount - keys.size() + i)) << capacity;
    }
  }
}

TEST(HistoryTest, CommonEventsDoNotEvictRareEvents) {
  History history(64 * 1024);
  history.add({.type = Type::expired}, {"lost", "a"});
  for (int i = 0; i < 100'000; ++i) {
    history.add({.type = Type::granted}, {"busy", "a"});
    history.add({.type = Type::released}, {"busy", "a"});
    history.add({.type = Type::refused}, {"crowded", "a"});
  }
  EXPECT_EQ(keys_of(history.ring(Sort::rare)), std::vector<std::string>{"lost"});
}

TEST(HistoryTest, ClientEventsDoNotEvictAdminActions) {
  History history(64 * 1024);
  history.add({.type = Type::revoked}, {"taken", "a"});
  for (int i = 0; i < 100'000; ++i) {
    for (const Type type : {Type::granted, Type::expired, Type::refused, Type::slow_hold}) {
      history.add({.type = type}, {"busy", "a"});
    }
  }
  EXPECT_EQ(keys_of(history.ring(Sort::admin)), std::vector<std::string>{"taken"});
}

TEST(HistoryTest, AFifthIsReservedForEventsThatAreNotCommon) {
  History history(1024 * 1024);
  for (int i = 0; i < 100'000; ++i) {
    history.add({.type = Type::granted}, {"k", "a"});
    history.add({.type = Type::expired}, {"k", "a"});
    history.add({.type = Type::refused}, {"k", "a"});
    history.add({.type = Type::revoked}, {"k", "a"});
  }
  const auto bytes = [&](Sort sort) {
    std::size_t sum = 0;
    for (const std::string& entry : read_all(history.ring(sort))) sum += entry.size();
    return static_cast<double>(sum) / (1024 * 1024);
  };
  EXPECT_NEAR(bytes(Sort::common), 0.8, 0.06);
  EXPECT_NEAR(bytes(Sort::rare), 0.125, 0.03);
  EXPECT_NEAR(bytes(Sort::refused), 0.025, 0.01);
  EXPECT_NEAR(bytes(Sort::admin), 0.05, 0.01);
}

// Events that a table records.
class TableHistoryTest : public LockTableTest {
 protected:
  static constexpr TableOptions kKept{.history_size = 64 * 1024};

  void SetUp() override { reset(kKept); }

  using EventTexts = std::vector<std::string>;

  // The events of all rings as "granted a #1", in the order in which they happened.
  EventTexts recorded() const {
    std::vector<std::string> entries;
    for (const Sort sort : {Sort::common, Sort::rare, Sort::refused, Sort::admin}) {
      for (auto& entry : read_all(table_->history().ring(sort))) entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return PastEvent(a).facts.number < PastEvent(b).facts.number;
    });
    EventTexts texts;
    for (const std::string& entry : entries) texts.push_back(text_of(PastEvent(entry).event()));
    return texts;
  }
};

TEST_F(TableHistoryTest, RecordsEventsWithoutAnObserver) {
  const Fence a = grant("k", "a");
  queue("k", secret(7, 1), 1);
  pass(2s);
  release("k", "a", a);
  pass(kTtl);
  EXPECT_EQ(recorded(), (EventTexts{"granted a #1", "queued tcp:7", "released a #1 ~2s",
                                    "granted tcp:7 #2 ~2s", "expired tcp:7 #2 ~30s"}));
  EXPECT_TRUE(key_events_.empty());
}

TEST_F(TableHistoryTest, RecordsNothingByDefault) {
  reset({});
  grant("k", "a");
  EXPECT_EQ(recorded(), EventTexts{});
}

TEST_F(TableHistoryTest, RecordsOnlyRefusalsByCaps) {
  TableOptions options = kKept;
  options.waiters_max = 1;
  reset(options);
  grant("k", "a");
  queue("k", "b", 1);
  acquire("k", "c");                         // held
  acquire("k", "c", {.wait = 5s, .id = 2});  // max_waiters
  enqueue("k", secret(7, 1), {.kind = kSemaphore, .limit = 3});
  enqueue("k", secret(7, 1));
  const EventTexts all = recorded();
  EXPECT_EQ(EventTexts(all.begin() + 2, all.end()),
            (EventTexts{"refused c: no room for another waiter", "granted tcp:7 #2",
                        "refused tcp:7: no room for another waiter"}));
}

TEST_F(TableHistoryTest, RecordedRefusalsAreRateLimited) {
  RateLimit limit(3);
  TableOptions options = kKept;
  options.waiters_max = 1;
  options.refusals = &limit;
  reset(options);
  grant("k", "a");
  queue("k", "b", 1);
  for (std::uint64_t i = 2; i < 10; ++i) acquire("k", "c", {.wait = 5s, .id = i});
  EXPECT_EQ(recorded().size(), 2u + 3u);
  EXPECT_EQ(table_->stats().history_dropped, 5u);
  EXPECT_EQ(table_->stats().refusals.max_waiters, 8u) << "all are counted";
}

TEST_F(TableHistoryTest, RecordsReplicatedEventsAndNotRecoveredOnes) {
  const auto granted = [&](Fence fence) {
    return Event{.type = Event::Type::granted,
                 .key = fence == 5 ? "old" : "new",
                 .holder = "a",
                 .fence = fence,
                 .ttl = 20s,
                 .expires_at = Time{} + 20s};
  };
  ASSERT_TRUE(table_->apply(granted(5)));
  ASSERT_TRUE(table_->apply(granted(6), now_));
  ASSERT_TRUE(table_->apply(
      {.type = Event::Type::ended, .cause = EndCause::expired, .key = "new", .fence = 6},
      now_ + 3s));
  EXPECT_EQ(recorded(), (EventTexts{"granted a #6", "expired a #6 ~3s"}));
}

// Slow waits and holds.

class AgesTest : public TableHistoryTest {
 protected:
  void SetUp() override {
    TableOptions options = kKept;
    options.slow_wait = 5s;
    options.slow_hold = 10s;
    reset(options);
    table_->observe(Observed::rare_events);
  }
  OldestEntries scan() {
    OldestEntries found;
    for (AgeCursor cursor; !cursor.done;) table_->scan_ages(now_, cursor, 2, found);
    pass(0s);
    return found;
  }
  EventTexts slow() const {
    EventTexts texts;
    for (const std::string& text : recorded()) {
      if (text.starts_with("slow")) texts.push_back(text);
    }
    return texts;
  }
};

TEST_F(AgesTest, SlowWaitsAndHoldsAreRecordedOnceAndNeverEarly) {
  grant("k", "a", {.ttl = 100s});
  queue("k", "b", 1, 100s);
  pass(5s - 1ns);
  scan();
  EXPECT_EQ(slow(), EventTexts{});
  pass(1ns);
  scan();
  scan();
  EXPECT_EQ(slow(), EventTexts{"slow_wait b ~5s"});
  pass(5s);
  scan();
  scan();
  EXPECT_EQ(slow(), (EventTexts{"slow_wait b ~5s", "slow_hold a #1 ~10s"}));
  EXPECT_EQ(key_events_.size(), 2u) << "the observer gets them, too";
}

// The key reuses its inline hold.
TEST_F(AgesTest, NextHoldOfAKeyIsRecordedAsSlowAgain) {
  const Fence a = grant("k", "a", {.ttl = 100s});
  pass(10s);
  scan();
  release("k", "a", a);
  grant("k", "b", {.ttl = 100s});
  scan();
  pass(10s);
  scan();
  EXPECT_EQ(slow(), (EventTexts{"slow_hold a #1 ~10s", "slow_hold b #2 ~10s"}));
}

TEST_F(AgesTest, FindsOldestHoldOldestWaitAndLongestQueue) {
  const Params permit{.kind = kSemaphore, .limit = 2, .ttl = 1000s};
  grant("s", "x", permit);
  const Time first = now_;
  pass(1s);
  grant("s", "y", permit);
  for (int i = 0; i < 20; ++i) grant("k" + std::to_string(i), "a", {.ttl = 1000s});
  queue("k7", "b", 1, 1000s);
  const Time queued_at = now_;
  pass(1s);
  for (std::uint64_t id = 2; id < 5; ++id) queue("k3", secret(id, id), id, 1000s);
  const OldestEntries found = scan();
  EXPECT_EQ(found.hold.key, "s");
  EXPECT_EQ(found.hold.since, first);
  EXPECT_EQ(found.wait.key, "k7");
  EXPECT_EQ(found.wait.since, queued_at);
  EXPECT_EQ(found.queue.key, "k3");
  EXPECT_EQ(found.queue.waiters, 3u);
}

TEST_F(AgesTest, FindsNothingInAnIdleTable) {
  release("k", "a", grant("k", "a"));
  const OldestEntries found = scan();
  EXPECT_EQ(found.hold.key + found.wait.key + found.queue.key, "");
}

}  // namespace
}  // namespace lockd
