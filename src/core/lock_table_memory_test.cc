// Tests that an allocation that fails in the middle of a change ends the process, and that one that
// fails earlier changes nothing.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <exception>
#include <string_view>

#include "base/testing/scarce_memory.h"
#include "core/lock_table.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class NullListener final : public Listener {
  void on_wait_done(const WaitResult&) noexcept override {}
};

// Calls every operation of a table, with few enough allocations to fail each of them. Exceptions
// are caught and the calls continue, as in an embedding program.
class TableScenario {
 public:
  bool run() {
    table_.observe(Observed::everything);
    acquire_and_release();
    acquire_in_two_phases();
    fill_semaphore();
    use_many_keys();
    act_as_admin();
    end_sessions();
    expire_leases();
    replay();
    for (Cursor cursor; !cursor.done;) {
      step([&](LockTable& table) { table.end_waits(cursor, Outcome::closed); });
    }
    return sound_;
  }

 private:
  // Longer than a StoredHolder stores inline, so that they are allocated.
  static constexpr std::array<std::string_view, 4> kNames = {
      "the first holder of all", "the second holder", "another holder, the third",
      "one more of them"};
  static constexpr std::array<std::string_view, 12> kKeys = {"a", "b", "c", "d", "e", "f",
                                                             "g", "h", "i", "j", "k", "l"};

  static constexpr AdminNote kAdmin{"a reason of some length", "an admin of some length"};

  template <typename Operation>
  void step(Operation operation) {
    try {
      const ScarceMemory scarce;
      operation(table_);
    } catch (const std::exception&) {
    }
    table_.effects().clear();
    sound_ = sound_ && table_.check().empty();
  }

  Fence acquire(std::string_view key, const Holder& holder, Duration wait = 0s,
                Kind kind = Kind::lock, std::uint32_t limit = 1) {
    Fence fence = 0;
    conflicts_.clear();
    step([&](LockTable& table) {
      const KeyRequest request{key, holder, 10s, wait, kind, limit, "a note of some length"};
      fence = table.acquire(now_, request, &listener_, ++id_, {}, &conflicts_).grant.fence;
    });
    return fence;
  }
  void release(std::string_view key, const Holder& holder, Fence fence, Kind kind = Kind::lock) {
    step([&](LockTable& table) { table.release(now_, {key, holder, fence, kind}); });
  }
  static Holder secret(SessionId session) { return Holder::of_secret(7, session); }

  void acquire_and_release() {
    const Fence fence = acquire(kKeys[0], kNames[0]);
    acquire(kKeys[0], kNames[1], 5s);
    acquire(kKeys[0], secret(1), 5s);
    acquire(kKeys[0], kNames[2]);
    release(kKeys[0], kNames[0], fence);
    step([&](LockTable& table) { table.renew(now_, {kKeys[0], kNames[1], fence + 1}, 20s); });
    step([&](LockTable& table) { table.withdraw(now_, {kKeys[0], kNames[1], fence + 1}); });
  }
  void acquire_in_two_phases() {
    const Fence fence = acquire(kKeys[1], kNames[0]);
    for (const SessionId session : {2U, 3U}) {
      step([&](LockTable& table) { table.enqueue(now_, {kKeys[1], secret(session), 10s}); });
    }
    step([&](LockTable& table) { table.enqueue(now_, {kKeys[2], secret(2), 10s}); });
    release(kKeys[1], kNames[0], fence);
    for (const SessionId session : {2U, 3U}) {
      step([&](LockTable& table) {
        table.await_turn(now_, session, Kind::lock, kKeys[1], 5s, &listener_, ++id_);
      });
    }
  }
  void fill_semaphore() {
    Fence first = 0;
    for (const std::string_view name : kNames) {
      const Fence fence = acquire(kKeys[3], name, 5s, Kind::semaphore, 2);
      if (first == 0) first = fence;
    }
    release(kKeys[3], kNames[0], first, Kind::semaphore);
  }
  void use_many_keys() {
    for (const std::string_view key : kKeys) acquire(key, secret(4));
    step([&](LockTable& table) { table.reclaim_idle(); });
  }
  void act_as_admin() {
    step([&](LockTable& table) { table.resize(now_, kKeys[3], 3, kAdmin); });
    for (const Kind kind : {Kind::lock, Kind::semaphore}) {
      const LockTable::Revocation all{kind, kKeys[3], {}, 1'000, kAdmin};
      step([&](LockTable& table) { table.revoke(now_, all, 10, [](const Hold&) {}); });
    }
  }
  void end_sessions() {
    acquire(kKeys[8], kNames[0], 5s);
    for (const SessionId session : {1U, 2U, 3U, 4U}) {
      int budget = 1'000;
      step([&](LockTable& table) { table.end_session(now_, session, session == 3, &budget); });
    }
  }
  void expire_leases() {
    acquire(kKeys[4], kNames[0]);
    acquire(kKeys[4], kNames[1], 30s);
    now_ = now_ + 15s;
    step([&](LockTable& table) { table.fence(now_, kKeys[4]); });
    step([&](LockTable& table) { table.explain(now_, Kind::lock, kKeys[4], &conflict_); });
    now_ = now_ + 60s;
    step([&](LockTable& table) { table.advance(now_, 1'000); });
    step([&](LockTable& table) { table.forget_idle(now_, 1'000); });
  }
  void replay() {
    for (const Kind kind : {Kind::lock, Kind::semaphore}) {
      const Event granted{.type = Event::Type::granted,
                          .kind = kind,
                          .key = kKeys[5],
                          .holder = kNames[0],
                          .client = {"a name of some length", "", ""},
                          .fence = 1'000,
                          .ttl = 10s,
                          .expires_at = now_ + 10s};
      step([&](LockTable& table) { table.apply(granted); });
    }
    acquire(kKeys[5], kNames[1], 5s);
  }

  NullListener listener_;
  KeyBudget budget_{1'000};
  LockTable table_{{}, budget_};
  Time now_{1'000'000'000'000};
  std::uint64_t id_ = 0;
  Conflict conflict_;
  std::vector<Conflict> conflicts_;
  bool sound_ = true;
};

TEST(LockTableMemory, FailedAllocationLeavesNoHalfChange) {
  const std::uint64_t ended = fail_each_allocation([] { return TableScenario().run(); });
  EXPECT_GT(ended, 50u);
}

}  // namespace
}  // namespace lockd
