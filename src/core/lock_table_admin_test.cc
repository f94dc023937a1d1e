// Tests of admin actions: revoking holds and resizing semaphores.
#include <functional>
#include <string>
#include <vector>

#include "core/testing/lock_table_fixture.h"

namespace lockd {
namespace {

class AdminTest : public LockTableTest {
 protected:
  static constexpr AdminNote kNote{"stuck for hours", "ops"};

  void SetUp() override {
    LockTableTest::SetUp();
    table_->observe(Observed::everything);
  }

  // Requests one permit; waits for it if `id` is not 0.
  LockTable::Reply permit(const Holder& holder, std::uint32_t limit, std::uint64_t id = 0) {
    return acquire("s", holder,
                   {.kind = kSemaphore, .limit = limit, .wait = id == 0 ? 0s : 10s, .id = id});
  }
  Outcome revoke(std::string_view key, Fence fence) {
    const LockTable::Revocation revocation{Kind::lock, key, fence, table_->last_fence(), kNote};
    const Outcome outcome = table_->revoke(now_, revocation, 100, [](const Hold&) {});
    pass(0s);  // collects the effects
    return outcome;
  }
};

// The texts of a call's events are views into its holds, and are read after the call.
TEST_F(AdminTest, CallDoesNotEndAHoldThatItGrants) {
  const std::vector<std::function<bool(Fence)>> ends{
      [&](Fence fence) { return revoke("k", fence) == Outcome::ok; },
      [&](Fence fence) { return release("k", "b", fence) == Outcome::ok; },
      [&](Fence fence) { return withdraw("k", "b", fence); }};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Fence a = grant("k", "a");
    queue("k", "b", i, 100s);
    now_ = now_ + kTtl;  // the lease of `a` expires within the next call
    EXPECT_FALSE(ends[i](a + 1));
    EXPECT_EQ(release("k", "b", a + 1), Outcome::ok);
  }
}

TEST_F(AdminTest, RevocationEventNamesReasonAndAdmin) {
  Session ann{.id = 7};
  const Fence a = grant("k", Holder(&ann, 0xabc));
  pass(3s);
  key_events_.clear();
  revoke("k", a);
  ASSERT_EQ(key_events_.size(), 1u);
  const KeyEvent& event = key_events_[0];
  EXPECT_EQ(event.type, KeyEvent::Type::revoked);
  EXPECT_EQ(event.reason, "stuck for hours");
  EXPECT_EQ(event.by, "ops");
  EXPECT_EQ(event.session, 7u);
  EXPECT_EQ(event.secret, 0xabcu);
  EXPECT_EQ(event.lasted, 3s);
  EXPECT_EQ(event.holders, 0u);
  EXPECT_EQ(events_.back().cause, EndCause::revoked);
}

TEST_F(AdminTest, RevocationInStepsSparesLaterHolds) {
  for (const char* name : {"a", "b", "c"}) permit(name, 3);
  const LockTable::Revocation all{kSemaphore, "s", {}, table_->last_fence(), kNote};
  std::vector<Fence> ended;
  const auto note = [&](const Hold& hold) { ended.push_back(hold.fence); };
  EXPECT_EQ(table_->revoke(now_, all, 2, note), Outcome::ok);
  permit("new", 3);
  EXPECT_EQ(table_->revoke(now_, all, 2, note), Outcome::ok);
  EXPECT_EQ(ended, (std::vector<Fence>{1, 2, 3}));
  EXPECT_EQ(table_->revoke(now_, all, 2, note), Outcome::stale);
  EXPECT_EQ(table_->find(now_, kSemaphore, "s")->holders, 1u);
}

TEST_F(AdminTest, InvalidReasonIsRejected) {
  grant("k", "a");
  const std::string too_long(kNoteSizeMax + 1, 'x');
  const auto refused = [&](const AdminNote& note) {
    const LockTable::Revocation revocation{Kind::lock, "k", 1, 1, note};
    return table_->revoke(now_, revocation, 1, [](const Hold&) {}) == Outcome::invalid_note &&
           table_->resize(now_, "s", 2, note) == Outcome::invalid_note;
  };
  EXPECT_TRUE(refused({too_long, "ops"}));
  EXPECT_TRUE(refused({"why", too_long}));
  EXPECT_TRUE(refused({"two\nlines", "ops"}));
}

TEST_F(AdminTest, LargerLimitGrantsToWaiters) {
  permit("a", 1);
  permit("b", 1, 1);
  permit("c", 1, 2);
  permit("d", 1, 3);
  key_events_.clear();
  EXPECT_EQ(table_->resize(now_, "s", 3, kNote), Outcome::ok);
  pass(0s);  // collects the effects
  EXPECT_EQ(outcome_of(1), Outcome::ok);
  EXPECT_EQ(outcome_of(2), Outcome::ok);
  EXPECT_EQ(outcome_of(3), Outcome::queued);
  const KeyEvent& event = key_events_.front();
  EXPECT_EQ(event.type, KeyEvent::Type::resized);
  EXPECT_EQ(event.permits, 1u);
  EXPECT_EQ(event.limit, 3u);
  EXPECT_EQ(event.holders, 1u);
  EXPECT_EQ(event.by, "ops");
  EXPECT_EQ(key_events_.back().limit, 3u);
}

TEST_F(AdminTest, JournalWithContradictoryLimitsIsRejected) {
  KeyBudget budget(10);
  LockTable copy({}, budget);
  Event granted{.type = Event::Type::granted,
                .kind = kSemaphore,
                .limit = 3,
                .first_limit = 2,
                .key = "s",
                .holder = "a",
                .fence = 1,
                .ttl = 1s,
                .expires_at = now_ + 1s};
  ASSERT_TRUE(copy.apply(granted));
  granted.fence = 2;
  granted.first_limit = 1;
  EXPECT_FALSE(copy.apply(granted)) << "another first limit";
  EXPECT_TRUE(
      copy.apply({.type = Event::Type::resized, .kind = kSemaphore, .limit = 9, .key = "s"}));
  granted.first_limit = 2;
  EXPECT_FALSE(copy.apply(granted)) << "resized since";
  granted.limit = 9;
  EXPECT_TRUE(copy.apply(granted));
  EXPECT_FALSE(copy.apply({.type = Event::Type::resized, .limit = 9, .key = "l"})) << "a lock";
  EXPECT_TRUE(copy.apply({.type = Event::Type::resized, .kind = kSemaphore, .key = "not there"}));
  EXPECT_EQ(copy.keys(), 1u);
  EXPECT_EQ(copy.check(), "");
}

TEST_F(AdminTest, RareEventsReachEveryObserver) {
  table_->observe(Observed::rare_events);
  const Fence a = grant("k", secret(3, 33));
  revoke("k", a);
  grant("l", "b", {.ttl = 1s});
  pass(1s);
  std::vector<KeyEvent::Type> types;
  for (const KeyEvent& event : key_events_) types.push_back(event.type);
  EXPECT_EQ(types, (std::vector{KeyEvent::Type::revoked, KeyEvent::Type::expired}));
  EXPECT_EQ(key_events_[0].secret, 33u);
  EXPECT_EQ(key_events_[1].secret, 0u);
}

}  // namespace
}  // namespace lockd
