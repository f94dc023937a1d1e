// A LockTable with a clock of its own and short ways to ask it, for the tests of the rules.
//
// After every call the invariants are checked and what was settled is kept by id.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "core/lock_table.h"

namespace lockd {

inline constexpr Kind kSemaphore = Kind::semaphore;

using namespace std::chrono_literals;

// GoogleTest's way of showing a value.
inline void PrintTo(Outcome outcome, std::ostream* out) { *out << describe(outcome); }

class LockTableTest : public ::testing::Test, public Listener {
 protected:
  static constexpr Duration kTtl = 30s;

  void SetUp() override { reset({}); }

  void reset(const TableOptions& options, std::uint64_t keys_max = 1'000) {
    table_.reset();
    budget_.emplace(keys_max);
    table_.emplace(options, *budget_);
  }

  struct Ask {
    Kind kind = Kind::lock;
    std::uint32_t limit = 1;
    Duration ttl = kTtl;
    Duration wait = 0s;
    std::uint64_t id = 0;
    std::string_view note{};
    std::string_view peer{};
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
  };

  LockTable::Reply acquire(std::string_view key, const Holder& holder, Ask ask) {
    conflict_ = {};
    const AcquireRequest request{key,       holder,   ask.ttl,  ask.wait, ask.kind,
                                 ask.limit, ask.note, ask.peer, ask.mode, ask.permits};
    const auto reply = table_->acquire(now_, request, this, ask.id, {}, &conflict_);
    collect();
    return reply;
  }
  LockTable::Reply acquire(std::string_view key, const Holder& holder) {
    return acquire(key, holder, Ask{});
  }
  Fence grant(std::string_view key, const Holder& holder) { return grant(key, holder, Ask{}); }
  Fence grant(std::string_view key, const Holder& holder, Ask ask) {
    const auto reply = acquire(key, holder, ask);
    EXPECT_EQ(reply.outcome, Outcome::ok);
    return reply.grant.fence;
  }
  // Joins the queue and waits for ten seconds, or as long as said.
  std::uint32_t queue(std::string_view key, const Holder& holder, std::uint64_t id,
                      Duration wait = 10s) {
    const auto reply = acquire(key, holder, {.wait = wait, .id = id});
    EXPECT_EQ(reply.outcome, Outcome::queued);
    return reply.slot;
  }
  LockTable::Reply enqueue(std::string_view key, const Holder& holder, Ask ask) {
    const EnqueueRequest request{key, holder, ask.ttl, ask.kind, ask.limit, ask.mode, ask.permits};
    const auto reply = table_->enqueue(now_, request);
    collect();
    return reply;
  }
  LockTable::Reply enqueue(std::string_view key, const Holder& holder) {
    return enqueue(key, holder, Ask{});
  }
  LockTable::Reply await_turn(std::string_view key, SessionId session, Ask ask) {
    const auto reply = table_->await_turn(now_, session, ask.kind, key, ask.wait, this, ask.id);
    collect();
    return reply;
  }
  LockTable::Reply await_turn(std::string_view key, SessionId session) {
    return await_turn(key, session, Ask{});
  }
  LockTable::Reply renew(std::string_view key, const Holder& holder, Fence fence,
                         std::optional<Duration> ttl = {}, Kind kind = Kind::lock) {
    const auto reply = table_->renew(now_, {key, holder, fence, kind}, ttl);
    collect();
    return reply;
  }
  Outcome release(std::string_view key, const Holder& holder, Fence fence, Kind kind = Kind::lock) {
    const Outcome outcome = table_->release(now_, {key, holder, fence, kind});
    collect();
    return outcome;
  }
  bool withdraw(std::string_view key, const Holder& holder, Fence fence, Kind kind = Kind::lock) {
    const bool done = table_->withdraw(now_, {key, holder, fence, kind});
    collect();
    return done;
  }
  bool cancel(std::uint32_t slot, std::uint64_t id) {
    const bool done = table_->cancel(now_, slot, this, id);
    collect();
    return done;
  }
  void end_session(SessionId session, bool keep_holds = false) {
    for (int budget = 8; !table_->end_session(now_, session, keep_holds, &budget); budget = 8) {
      collect();
    }
    collect();
  }
  void pass(Duration time) {
    now_ = now_ + time;
    while (!table_->advance(now_, 1'000)) collect();
    collect();
  }

  // How the wait with this id ended; queued while it has not.
  Outcome outcome_of(std::uint64_t id) const {
    const auto found = settled_.find(id);
    return found == settled_.end() ? Outcome::queued : found->second.outcome;
  }
  Fence fence_of(std::uint64_t id) const { return settled_.at(id).grant.fence; }

  static Holder secret(SessionId session, std::uint64_t value) {
    return Holder::of_secret(value, session);
  }

  // "granted b #2 ~2s": ~ is how long the wait or the hold had lasted.
  static std::string text_of(const KeyEvent& e) {
    static constexpr const char* kTypes[] = {"queued",       "granted",   "released", "expired",
                                             "disconnected", "revoked",   "gave_up",  "refused",
                                             "slow_wait",    "slow_hold", "resized"};
    std::string text = std::string(kTypes[static_cast<int>(e.type)]) + ' ' + e.holder;
    if (e.fence != 0) text += " #" + std::to_string(e.fence);
    if (e.lasted != 0s) text += " ~" + std::to_string(e.lasted / 1s) + "s";
    const bool has_outcome = e.type == KeyEvent::Type::refused || e.type == KeyEvent::Type::gave_up;
    return has_outcome ? text + ": " + std::string(describe(e.outcome)) : text;
  }

  // What the table has told since the last time.
  void collect() {
    Effects& effects = table_->effects();
    for (const WaitResult& s : effects.wait_results) {
      EXPECT_TRUE(settled_.emplace(s.id, s).second) << "settled-once: " << s.id;
    }
    events_.insert(events_.end(), effects.events.begin(), effects.events.end());
    key_events_.insert(key_events_.end(), effects.key_events.begin(), effects.key_events.end());
    effects.clear();
    EXPECT_EQ(table_->check(), "");
  }

  void on_wait_done(const WaitResult&) noexcept override {
  }  // the table never calls; collect() does

  Time now_{1'000'000'000'000};
  std::optional<KeyBudget> budget_;
  std::optional<LockTable> table_;
  std::map<std::uint64_t, WaitResult> settled_;
  // The views in these are dead; look at the rest.
  std::vector<Event> events_;
  std::vector<KeyEvent> key_events_;
  Conflict conflict_;
};

}  // namespace lockd
