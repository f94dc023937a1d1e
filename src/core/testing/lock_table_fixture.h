// A test fixture: a LockTable with its own clock, and short forms of its calls.
//
// After every call the fixture checks the invariants and stores the results of ended waits by id.
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

// Lets GoogleTest print an Outcome.
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

  struct Params {
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

  LockTable::Reply acquire(std::string_view key, const Holder& holder, Params params) {
    conflicts_.clear();
    const KeyRequest request{key,          holder,      params.ttl,  params.wait, params.kind,
                             params.limit, params.note, params.peer, params.mode, params.permits};
    const auto reply = table_->acquire(now_, request, this, params.id, {}, &conflicts_);
    collect();
    return reply;
  }
  LockTable::Reply acquire(std::string_view key, const Holder& holder) {
    return acquire(key, holder, Params{});
  }
  Fence grant(std::string_view key, const Holder& holder) { return grant(key, holder, Params{}); }
  Fence grant(std::string_view key, const Holder& holder, Params params) {
    const auto reply = acquire(key, holder, params);
    EXPECT_EQ(reply.outcome, Outcome::ok);
    return reply.grant.fence;
  }
  // Joins the queue and waits.
  std::uint32_t queue(std::string_view key, const Holder& holder, std::uint64_t id,
                      Duration wait = 10s) {
    const auto reply = acquire(key, holder, {.wait = wait, .id = id});
    EXPECT_EQ(reply.outcome, Outcome::queued);
    return reply.slot;
  }
  LockTable::Reply enqueue(std::string_view key, const Holder& holder, Params params) {
    const KeyRequest request{.key = key,
                             .holder = holder,
                             .ttl = params.ttl,
                             .kind = params.kind,
                             .limit = params.limit,
                             .mode = params.mode,
                             .permits = params.permits};
    const auto reply = table_->enqueue(now_, request);
    collect();
    return reply;
  }
  LockTable::Reply enqueue(std::string_view key, const Holder& holder) {
    return enqueue(key, holder, Params{});
  }
  LockTable::Reply await_turn(std::string_view key, SessionId session, Params params) {
    const auto reply =
        table_->await_turn(now_, session, params.kind, key, params.wait, this, params.id);
    collect();
    return reply;
  }
  LockTable::Reply await_turn(std::string_view key, SessionId session) {
    return await_turn(key, session, Params{});
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

  // The outcome of the wait with this id, or queued while it waits.
  Outcome outcome_of(std::uint64_t id) const {
    const auto found = settled_.find(id);
    return found == settled_.end() ? Outcome::queued : found->second.outcome;
  }
  Fence fence_of(std::uint64_t id) const { return settled_.at(id).grant.fence; }

  static Holder secret(SessionId session, std::uint64_t value) {
    return Holder::of_secret(value, session);
  }

  // For example "granted b #2 ~2s", with the duration of the wait or the hold after ~.
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

  // Takes over the effects of the calls since the last collect().
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

  // Never called: a table only returns WaitResults.
  void on_wait_done(const WaitResult&) noexcept override {}

  Time now_{1'000'000'000'000};
  std::optional<KeyBudget> budget_;
  std::optional<LockTable> table_;
  std::map<std::uint64_t, WaitResult> settled_;
  // The views in these events are dead.
  std::vector<Event> events_;
  std::vector<KeyEvent> key_events_;
  std::vector<Conflict> conflicts_;
};

}  // namespace lockd
