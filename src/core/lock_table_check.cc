// The invariants of lock_table.h, one function each. Slow: for tests and the simulation.
#include <array>
#include <cstdint>
#include <string>

#include "core/lock_table.h"

namespace lockd {
namespace {

// A rule returns what breaks it, or null.
class TableCheck {
 public:
  explicit TableCheck(const LockTable& table) : table_(table), state_(table.state()) {}

  std::string run() {
    std::string broken;
    table_.walk(all_, SIZE_MAX, [&](const Key& key) {
      for (const auto& [invariant, rule] : kKeyRules) {
        const char* const what = broken.empty() ? (this->*rule)(key) : nullptr;
        if (what == nullptr) continue;
        broken = std::string(invariant) + ": key '" + std::string(key.name()) + "': " + what;
      }
      count(key);
    });
    for (const auto& [invariant, rule] : kTableRules) {
      const char* const what = broken.empty() ? (this->*rule)() : nullptr;
      if (what != nullptr) broken = std::string(invariant) + ": " + what;
    }
    return broken;
  }

 private:
  struct KeyRule {
    const char* invariant;
    const char* (TableCheck::*rule)(const Key&) const;
  };
  struct TableRule {
    const char* invariant;
    const char* (TableCheck::*rule)() const;
  };
  static const std::array<KeyRule, 9> kKeyRules;
  static const std::array<TableRule, 4> kTableRules;

  template <typename Items, typename Rule>  // Rule: const char*(const Item&)
  static const char* first_broken(const Items& items, Rule rule) {
    for (const auto* item = items.front(); item != nullptr; item = items.next(item)) {
      if (const char* what = rule(*item)) return what;
    }
    return nullptr;
  }

  static std::uint64_t taken(const Key& key) {
    std::uint64_t taken = 0;
    for (const Hold* h = key.holds.front(); h != nullptr; h = key.holds.next(h)) taken += h->takes;
    return taken;
  }

  // Rules for one key.

  const char* holders_bounded(const Key& key) const {
    if (key.is_resized() && (key.kind == Kind::lock || key.idle())) {
      return "resized, and idle or a lock";
    }
    if (key.kind == Kind::lock && key.limit() != 1) return "a lock with a limit";
    if (key.in_use() != taken(key)) return "miscounted permits";
    // A semaphore that was resized down may exceed its limit until enough holds have ended.
    const bool exceeds = key.kind == Kind::semaphore && taken(key) > key.limit();
    return exceeds && !key.is_resized() ? "more permits in use than the limit" : nullptr;
  }

  const char* shares_or_alone(const Key& key) const {
    const bool exceeds = key.kind == Kind::lock && taken(key) > kWhole;
    return exceeds ? "held exclusively and by others" : nullptr;
  }

  const char* first_come(const Key& key) const {
    Time since;
    return first_broken(key.queue, [&](const QueuePlace& place) -> const char* {
      if (place.since < since) return "a queue out of order";
      since = place.since;
      return nullptr;
    });
  }

  const char* fences_rise(const Key& key) const {
    Fence before = 0;
    return first_broken(key.holds, [&](const Hold& hold) -> const char* {
      if (hold.fence <= before) return "holds out of order";
      if (hold.fence > table_.last_fence()) return "a fence from the future";
      if (state_.find_hold(&key, hold.fence) != &hold) return "a hold that its fence does not find";
      before = hold.fence;
      return nullptr;
    });
  }

  const char* lease_honoured(const Key& key) const {
    if (key.first.in_use != key.first.armed()) return "a lease without a hold";
    return first_broken(key.holds, [&](const Hold& hold) -> const char* {
      if (!hold.in_use || !hold.armed()) return "a hold without a lease";
      return is_overdue(hold) ? "an overdue lease" : nullptr;
    });
  }

  const char* settled_once(const Key& key) const {
    const char* const broken = first_broken(key.holds, [&](const Hold& hold) -> const char* {
      if (!hold.two_phase) return nullptr;
      const Enqueued* e = state_.sessions().find_enqueued(hold.holder.session_id(), &key);
      return e == nullptr || e->hold != &hold ? "a two-phase hold unknown to its session" : nullptr;
    });
    if (broken != nullptr) return broken;
    return first_broken(key.queue, [&](const QueuePlace& place) -> const char* {
      if (place.armed() != (place.listener != nullptr)) return "a wait without an end";
      if (place.listener == nullptr && !place.two_phase) return "a place that no request waits for";
      if (state_.places().find(place.slot) != &place) return "a place that its slot does not find";
      if (place.same_owner_peers.linked() != place.holder.may_ask_again()) {
        return "a place that its holder does not find";
      }
      return is_overdue(place) ? "an overdue wait" : nullptr;
    });
  }

  const char* no_idle_waiter(const Key& key) const {
    const QueuePlace* const head = key.queue.front();
    if (head != nullptr && !head->of_set && taken(key) + head->takes <= key.capacity()) {
      return "room for the head of the queue";
    }
    return first_broken(key.queue, [&](const QueuePlace& place) {
      const bool waits_for_itself =
          !place.of_set && state_.find_own(key, place.holder.view()) != nullptr;
      return waits_for_itself ? "a holder that waits for itself" : nullptr;
    });
  }

  const char* bounded(const Key& key) const {
    const std::uint32_t waiters_max = state_.options().waiters_max;
    if (waiters_max != 0 && key.waiters() > waiters_max) return "a queue beyond waiters_max";
    if (state_.keys().find(key.kind, key.name()) != &key) return "a key that is not found";
    if (!key.first.in_use && key.idle() != key.first.peers.linked()) {
      return "idle, and not among the idle keys";
    }
    if (key.idle() && key.has_extras) return "idle, and with extras";
    return nullptr;
  }

  const char* counted(const Key& key) const {
    std::uint32_t holders = 0;
    std::uint32_t waiters = 0;
    const char* broken = first_broken(key.holds, [&](const Hold& hold) {
      ++holders;
      const bool has_client = hold.client_from != ClientFrom::nowhere;
      return state_.clients().has(hold) != has_client ? "a hold with a lost client" : nullptr;
    });
    first_broken(key.queue, [&](const QueuePlace&) -> const char* {
      ++waiters;
      return nullptr;
    });
    if (holders != key.holders) broken = "miscounted holders";
    if (waiters != key.waiters()) broken = "miscounted waiters";
    return broken;
  }

  bool is_overdue(const Timer& timer) const {
    return !state_.is_late() && timer.armed() && timer.deadline <= table_.now();
  }

  // Rules for the table.

  void count(const Key& key) {
    const bool is_lock = key.kind == Kind::lock;
    (is_lock ? counts_.locks_held : counts_.semaphore_holders) += key.holders;
    (is_lock ? counts_.lock_waiters : counts_.semaphore_waiters) += key.waiters();
    counts_.shared_holds += key.is_shared() ? key.holders : 0;
    counts_.idle_keys += key.idle() ? 1U : 0U;
    ++counts_.keys;
    for (const Hold* h = key.holds.front(); h != nullptr; h = key.holds.next(h)) {
      session_holds_ += h->session_peers.linked() ? 1U : 0U;
      client_holds_ += h->client_from != ClientFrom::nowhere ? 1U : 0U;
    }
    for (const QueuePlace* w = key.queue.front(); w != nullptr; w = key.queue.next(w)) {
      session_places_ += w->session_peers.linked() ? 1U : 0U;
    }
  }

  const char* stats_counted() const {
    const Stats stats = table_.stats();
    if (stats.keys != counts_.keys || stats.idle_keys != counts_.idle_keys) return "keys";
    if (stats.locks_held != counts_.locks_held) return "locks held";
    if (stats.shared_holds != counts_.shared_holds) return "shared holds";
    if (stats.semaphore_holders != counts_.semaphore_holders) return "holders of semaphores";
    if (stats.lock_waiters != counts_.lock_waiters) return "waiters for locks";
    if (stats.semaphore_waiters != counts_.semaphore_waiters) return "waiters for semaphores";
    return client_holds_ != state_.clients().holds() ? "clients of ended holds" : nullptr;
  }

  const char* units_bounded() const {
    const std::uint64_t holders = counts_.locks_held + counts_.semaphore_holders;
    const std::uint64_t waiters = counts_.lock_waiters + counts_.semaphore_waiters;
    if (waiters != table_.waiters()) return "slots without a waiter";
    const bool adds_up =
        !state_.limits().holds().counts() ||
        state_.limits().holds().in_use() == static_cast<std::int64_t>(holders + waiters);
    return adds_up ? nullptr : "units that do not match holds and places";
  }

  const char* idle_keys_bounded() const {
    std::size_t listed = 0;
    Time since;
    const char* const broken =
        first_broken(state_.idle().firsts(), [&](const Hold& first) -> const char* {
          if (!first.key->idle() || first.in_use) return "an idle key in use";
          if (first.since < since) return "idle keys out of order";
          since = first.since;
          ++listed;
          return nullptr;
        });
    if (broken != nullptr) return broken;
    return listed != counts_.idle_keys ? "miscounted idle keys" : nullptr;
  }

  // The holds and places of the sessions are those of the keys.
  const char* sessions_settled_once() const {
    const char* broken = nullptr;
    std::size_t holds = 0;
    std::size_t places = 0;
    std::size_t enqueued = 0;
    state_.sessions().for_each([&](SessionId session, const SessionIndex::Items& items) {
      if (const char* what = check_session(session, items)) broken = what;
      holds += items.hold_count;
      places += items.place_count;
      first_broken(items.enqueued, [&](const Enqueued&) -> const char* {
        ++enqueued;
        return nullptr;
      });
    });
    if (broken != nullptr) return broken;
    if (holds != session_holds_ || places != session_places_) return "not in its session's list";
    return enqueued != state_.sessions().enqueued() ? "miscounted two-phase entries" : nullptr;
  }

  static const char* check_session(SessionId session, const SessionIndex::Items& items) {
    std::size_t holds = 0;
    std::size_t acknowledged = 0;
    std::size_t places = 0;
    const char* broken = first_broken(items.holds, [&](const Hold& hold) {
      ++holds;
      acknowledged += hold.unacknowledged ? 0U : 1U;
      return hold.holder.session_id() != session ? "a hold of another session" : nullptr;
    });
    if (broken != nullptr) return broken;
    broken = first_broken(items.places, [&](const QueuePlace& place) {
      ++places;
      return place.holder.session_id() != session ? "a place of another session" : nullptr;
    });
    if (broken != nullptr) return broken;
    if (items.hold_count != holds) return "miscounted holds of a session";
    if (items.acknowledged != acknowledged) return "miscounted acknowledged holds of a session";
    if (items.place_count != places) return "miscounted places of a session";
    return first_broken(items.enqueued, [&](const Enqueued& e) -> const char* {
      if (e.place != nullptr && e.hold != nullptr) return "enqueued with both place and hold";
      const bool lapsed = e.place == nullptr && e.hold == nullptr;
      if (lapsed != e.lapsed_peers.linked()) return "a lapsed entry that is not listed";
      return lapsed && !e.key->has_lapsed ? "a lapsed entry unknown to its key" : nullptr;
    });
  }

  const LockTable& table_;
  const TableState& state_;
  Cursor all_;
  Stats counts_;
  std::size_t session_holds_ = 0;
  std::size_t session_places_ = 0;
  std::size_t client_holds_ = 0;
};

const std::array<TableCheck::KeyRule, 9> TableCheck::kKeyRules{{
    {"holders-bounded", &TableCheck::holders_bounded},
    {"shares-or-alone", &TableCheck::shares_or_alone},
    {"first-come", &TableCheck::first_come},
    {"fences-rise", &TableCheck::fences_rise},
    {"lease-honoured", &TableCheck::lease_honoured},
    {"settled-once", &TableCheck::settled_once},
    {"no-idle-waiter", &TableCheck::no_idle_waiter},
    {"bounded", &TableCheck::bounded},
    {"counted", &TableCheck::counted},
}};

const std::array<TableCheck::TableRule, 4> TableCheck::kTableRules{{
    {"counted", &TableCheck::stats_counted},
    {"bounded", &TableCheck::units_bounded},
    {"bounded", &TableCheck::idle_keys_bounded},
    {"settled-once", &TableCheck::sessions_settled_once},
}};

}  // namespace

std::string LockTable::check() const { return TableCheck(*this).run(); }

}  // namespace lockd
