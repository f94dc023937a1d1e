// A second implementation of LockTable's rules: simple, not fast. For tests.
//
// It searches plain containers and has no links, indexes or timers. An error in the data structures
// of LockTable shows as a difference between the two.
//
// The invariants, and what ensures them here:
//   holders-bounded         only grant() adds a hold, and only if its permits fit
//   shares-or-alone         only grant() adds a hold; a shared hold fits beside shared holds only
//   first-come              grant_waiters() takes the front of the queue, places join at the back,
//                           and no request is granted at once while there is a queue
//   fences-rise             a grant takes only a fence above all earlier ones of its key
//   all-or-none             grant_set() grants every part, end_set() ends every place
//   no-circle               a set joins all of its queues in one call, each at the back
//   settled-once            a place is settled where it is erased, and nowhere else
//   lease-honoured          only its owner or an admin ends a hold before its deadline
//   no-idle-waiter          a function that ends a hold or a place then calls grant_next()
//   replay-equals           every change of a hold has its event
//   failed-changes-nothing  every refusal returns before the first change
//   bounded                 keys by keys_max, queues by waiters_max, holds and places by holds_max
//                           and, per client, by holds_per_client_max
//
// The rules leave four choices open: the numbers of the fences; the order of a key's leases, or
// waits, that are due at one instant; how much of a backlog in other keys a call ends; and the
// order in which keys idle since one instant are forgotten. In these the model reads the choice
// from the table's effects of the same call. It requires everything else.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/lock_table.h"
#include "lockd/requests.h"

namespace lockd {

class LockModel {
 public:
  LockModel(const TableOptions& options, std::uint64_t keys_max, const HoldBudget::Caps& holds)
      : options_(options), keys_max_(keys_max), holds_(holds), last_fence_(options.last_fence) {}

  // A Holder that owns its name. Equality ignores the session of a secret, as in Holder.
  struct Owner {
    explicit Owner(const Holder& holder);
    bool operator==(const Owner& other) const { return view() == other.view(); }
    Holder view() const {
      if (!is_secret) return Holder(name);
      const Holder holder = Holder::of_secret(secret, session);
      return may_ask_again ? holder.chosen() : holder;
    }
    std::string display_name() const;

    bool is_secret;
    bool may_ask_again;
    std::string name;
    std::uint64_t secret;
    SessionId session;
  };

  struct ModelHold {
    Owner owner;
    ClientIdentity client{};
    SessionId session = 0;  // 0 once the session has ended
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    Fence fence = 0;
    Duration ttl{};
    Time deadline{};
    Time since{};
    bool two_phase = false;
    bool unacknowledged = false;
    bool renewed = false;

    Grant grant() const { return {fence, ttl, deadline, owner.secret}; }
    bool operator==(const ModelHold&) const = default;
  };

  struct ModelPlace {
    Owner owner;
    ClientIdentity client{};
    SessionId session = 0;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    Duration ttl{};
    Time since{};
    bool two_phase = false;
    bool of_set = false;           // one of several places with the same id
    std::size_t part = 0;          // the index of the place in its set
    Listener* listener = nullptr;  // null for a place without a waiter
    std::uint64_t id = 0;
    Time deadline = Time::never();

    bool operator==(const ModelPlace&) const = default;
  };

  struct ModelKey {
    bool idle() const { return holds.empty() && queue.empty(); }
    std::uint64_t permits_in_use() const;
    // Whether such a hold fits beside the existing holds.
    bool has_room(Mode mode, std::uint32_t permits) const;
    // Whether a request may name this limit.
    bool matches(std::uint32_t asked) const {
      return asked == limit || (first_limit != 0 && asked == first_limit);
    }
    // The hold, and for a secret the place, that a repeated request of this owner finds, or null.
    ModelHold* find_own(const Owner& owner);
    ModelPlace* find_place(const Owner& owner);
    bool operator==(const ModelKey&) const = default;

    Kind kind;
    std::string name;
    std::uint32_t limit = 1;
    std::uint32_t first_limit = 0;  // of a resized key: the limit that its first acquirer named
    Fence last_fence = 0;
    Time idle_since{};
    bool set_left = false;            // a set left the queue, so the next place may fit
    std::vector<ModelHold> holds{};   // in the order of their fences
    std::vector<ModelPlace> queue{};  // the first to wait first
    std::vector<SessionId> lapsed{};  // sessions whose two-phase grant ended before await_turn()
  };

  // An Event that owns its texts. Only the fields of its type are set.
  struct OwnedEvent {
    explicit OwnedEvent(const Event& event);
    bool operator==(const OwnedEvent&) const = default;

    Event::Type type;
    Kind kind;
    std::string key;
    Fence fence;
    Owner owner{Holder::of_secret(0)};
    EndCause cause = EndCause::released;
    ClientIdentity client{};
    std::uint32_t limit = 0;
    std::uint32_t first_limit = 0;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    Duration ttl{};
    Time expires_at{};
  };

  struct ModelReply {
    Outcome outcome = Outcome::ok;
    Grant grant{};
  };

  // Called before every call with the table's effects. The table gets the call first, so that the
  // model can read the choices that the rules leave open.
  void watch(const Effects& seen);

  // The calls of LockTable.
  ModelReply acquire(Time now, const KeyRequest& request, Listener* listener, std::uint64_t id,
                     bool has_spare);
  ModelReply enqueue(Time now, const KeyRequest& request, bool has_spare);
  ModelReply await_turn(Time now, SessionId session, Kind kind, std::string_view key, Duration wait,
                        Listener* listener, std::uint64_t id);
  ModelReply renew(Time now, const KeyHold& hold, std::optional<Duration> ttl);
  Outcome release(Time now, const KeyHold& hold);
  bool withdraw(Time now, const KeyHold& hold);
  bool cancel(Time now, const Listener* listener, std::uint64_t id);
  // Ends all of the holds at once, and appends their fences to `ended`.
  Outcome revoke(Time now, const LockTable::Revocation& revocation, std::vector<Fence>* ended);
  Outcome resize(Time now, std::string_view key, std::uint32_t limit);
  FenceStatus fence(Time now, std::string_view key);
  std::optional<Conflict> explain(Time now, Kind kind, std::string_view key);
  void end_session(Time now, SessionId session, bool keep_holds);
  void end_waits(Outcome why);

  // The calls of SetRules. `last` is the table's last fence after the call. `in_the_way` receives
  // the indexes of the keys that prevent a grant.
  ModelReply acquire_set(Time now, const AcquireRequest& request, Listener* listener,
                         std::uint64_t id, Fence last, std::vector<std::size_t>* in_the_way);
  ModelReply renew_set(Time now, const HoldId& set, std::optional<Duration> ttl);
  std::vector<bool> release_set(Time now, const HoldId& set);
  bool withdraw_set(Time now, const HoldId& set);
  // Called after every call: ends or grants the sets that the call affected, and grants to the
  // places behind them.
  void settle_sets(Time now);
  // Ends the leases and waits that the table has ended, and no others.
  void advance(Time now);
  // Whether the table still has a key.
  using IsLeft = std::function<bool(const ModelKey&)>;
  std::size_t forget_idle(Time since, std::size_t keys_max, const IsLeft& is_left);
  bool reclaim_idle(const IsLeft& is_left);

  const std::vector<ModelKey>& keys() const { return keys_; }
  const ModelKey* find(Kind kind, std::string_view name) const;
  bool has_session(SessionId session) const;
  Owned owned(SessionId session) const;
  // The number of holds and places: in total, and of the holder's session or, without one, its
  // name.
  std::size_t count_holds() const;
  std::size_t count_holds(const Holder& holder) const;
  // The key's latest holder and the numbers of its holders and waiters.
  static Conflict conflict(const ModelKey& key);
  Time now() const { return now_; }
  Time next_deadline() const;

  static bool is_same(const Grant& a, const Grant& b) {
    return a.fence == b.fence && a.ttl == b.ttl && a.expires_at == b.expires_at &&
           a.secret == b.secret;
  }

  // How the table differs in the effects of the last call, or in its state. Empty if it does not.
  std::string difference_of_effects(const Effects& seen) const;
  std::string difference_of_state(const LockTable& table) const;
  // How a table rebuilt from events differs. Such a table has holds only.
  std::string difference_of_holds(const LockTable& rebuilt) const;

 private:
  ModelKey* find_key(Kind kind, std::string_view name);
  ModelKey* at(Time now, Kind kind, std::string_view name);
  Outcome why_not(ModelKey* key, const KeyHold& id) const;
  std::vector<ModelKey>::iterator longest_idle(const IsLeft& is_left);

  ModelReply refuse(Time now, Outcome flaw);
  void follow(Time now);
  bool is_ahead(const ModelKey& key) const;
  bool has_ended(const ModelKey& key, const ModelHold& hold) const;
  std::size_t turn_of(const ModelPlace& place) const;
  // A lease or a wait that is due.
  struct Due {
    using Rank = std::tuple<Time, bool, std::size_t>;  // deadline; is it a wait; the table's order
    Time deadline() const { return std::get<0>(rank); }
    bool is_wait() const { return std::get<1>(rank); }

    Rank rank;
    Fence lease = 0;
    std::size_t place = 0;
  };
  std::optional<Due> next_due(const ModelKey& key) const;
  std::optional<Due> next_end_of_set(const ModelKey& key) const;
  void end_due(ModelKey& key, const Due& due);
  void end_all_due(ModelKey& key);

  ModelReply grant_new(ModelKey* key, const KeyRequest& request, bool has_spare);
  bool take_over(ModelHold& hold, const Owner& asker);
  bool take_over(ModelPlace& place, const Owner& asker);
  std::optional<ModelReply> enqueue_again(ModelKey& key, const KeyRequest& request);
  Fence next_fence(Kind kind, std::string_view name) const;
  bool is_exhausted(Kind kind, std::string_view name) const;
  ModelHold& grant(ModelKey& key, const ModelPlace& asked);
  Grant grant_again(const ModelKey& key, ModelHold& hold, Duration ttl);
  Grant refresh(const ModelKey& key, ModelHold& hold, Duration ttl);
  void end_hold(ModelKey& key, Fence fence, EndCause cause);
  void end_session(ModelKey& key, SessionId session, bool keep_holds);
  void grant_next(ModelKey& key);
  bool is_front_granted(const ModelKey& key) const;
  void grant_next_if_set_left(ModelKey& key);
  void grant_waiters(ModelKey& key);
  void grant_same_owner(ModelKey& key, ModelHold& hold);

  std::vector<ModelKey*> at_all(Time now, const KeyItems& items);
  std::vector<ModelHold*> holds_of(const HoldId& set, const std::vector<ModelKey*>& keys) const;
  bool has_binding_limit(const ModelKey& key) const;
  bool fits_limit(const ModelKey* key, const KeyItem& item, const Owner& owner) const;
  static bool may_enter(const ModelKey* key, const KeyItem& item);
  Outcome why_not_all(const std::vector<ModelKey*>& keys, const AcquireRequest& request) const;
  void make_keys(const AcquireRequest& request, Fence last);
  void join_all(const AcquireRequest& request, Listener* listener, std::uint64_t id);
  std::optional<ModelReply> grant_set_again(const std::vector<ModelKey*>& keys,
                                            const AcquireRequest& request);
  std::vector<std::pair<ModelKey*, std::size_t>> places_of(std::uint64_t id);
  bool settle_set(std::uint64_t id);
  void grant_set(std::uint64_t id);
  void end_set(std::uint64_t id, Outcome why, const Grant& grant = {});

  bool is_full(const ModelKey& key) const;
  Outcome why_no_place(bool is_full_somewhere, Duration wait) const;
  Outcome why_no_more(const Holder& holder) const;
  Duration capped(Duration ttl) const;
  ModelPlace place_of(const KeyRequest& request) const;
  void await(ModelPlace& place, Duration wait, Listener* listener, std::uint64_t id);
  void settle(ModelKey& key, std::size_t at, Outcome outcome, const Grant& grant = {});
  void leave_queue(ModelKey& key, std::size_t at, Outcome why);

  const TableOptions options_;
  const std::uint64_t keys_max_;
  const HoldBudget::Caps holds_;
  std::vector<ModelKey> keys_;
  Fence last_fence_;
  Fence known_ = 0;  // last_fence_ when the call began
  Time now_{};

  // The last call.
  const Effects* seen_ = nullptr;
  std::string broken_;  // a rule that the table's effects break
  std::vector<OwnedEvent> events_;
  std::vector<WaitResult> settled_;
  Time earliest_ = Time::never();
};

// An empty identity for a null reference.
inline ClientIdentity identity_of(const ClientRef& client) {
  return client == nullptr ? ClientIdentity{} : *client;
}

// Texts for the messages of failed tests.
std::string text(Kind kind, std::string_view key);
std::string text(const LockModel::Owner& owner);
std::string text(const ClientIdentity& client);

}  // namespace lockd
