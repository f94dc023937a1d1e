// The rules of one LockTable, told a second time: to be read, not to be fast. For tests.
//
// Plain containers, searched from end to end; nothing is linked, indexed or armed. Where LockTable
// is quick it can be wrong, and then the two differ.
//
// Its invariants, and where they come from here:
//   holders-bounded         only grant() adds a hold, and only where its permits fit
//   shares-or-alone         likewise: a hold that shares fits beside others that do, and no other
//   first-come              promote() takes the first of the queue, places join at its end, and
//                           nobody is granted at once while there is a queue
//   fences-rise             a grant takes only a fence above all earlier ones of its key
//   all-or-none             grant_set() grants every part, end_set() ends every place
//   no-circle               a set joins all of its queues in one call, each at its end
//   settled-once            a place is settled where it is erased, and nowhere else
//   lease-honoured          a hold is ended by its owner or an admin, or once its deadline has come
//   no-idle-waiter          whatever ends a hold or a place promotes the queue before it returns
//   replay-equals           every change of a hold has its event
//   failed-changes-nothing  every refusal returns before the first change
//   bounded                 keys by keys_max, queues by waiters_max, holds and places by holds_max
//                           and, of one client, by holds_per_client_max
//
// Four things the rules leave open: the numbers of the fences; which of a key's leases, or waits,
// that are due at one instant ends first; how far the keys that a call is not about have come when
// more is due than one call does; which of the keys idle since one instant is forgotten first. In
// these the model follows the table: it is shown what the table did in the same call, and demands
// the rest.
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

  // A Holder that owns its name. As there, a secret is the same whatever its session.
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

  struct Held {
    Owner owner;
    ClientIdentity client{};
    SessionId session = 0;  // 0 once it has left the hold to its lease
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
    bool operator==(const Held&) const = default;
  };

  struct Place {
    Owner owner;
    ClientIdentity client{};
    SessionId session = 0;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    Duration ttl{};
    Time since{};
    bool two_phase = false;
    bool of_set = false;           // one of the places that have its id
    std::size_t part = 0;          // which
    Listener* listener = nullptr;  // null while nobody waits
    std::uint64_t id = 0;
    Time deadline = Time::never();

    bool operator==(const Place&) const = default;
  };

  struct ModelKey {
    bool idle() const { return holds.empty() && queue.empty(); }
    std::uint64_t permits_in_use() const;
    // Whether a hold like that may begin beside those that there are.
    bool has_room(Mode mode, std::uint32_t permits) const;
    // Whether a request may name this limit.
    bool matches(std::uint32_t asked) const {
      return asked == limit || (first_limit != 0 && asked == first_limit);
    }
    // Of one who may ask again; of a secret also its place.
    Held* find_own(const Owner& owner);
    Place* find_place(const Owner& owner);
    bool operator==(const ModelKey&) const = default;

    Kind kind;
    std::string name;
    std::uint32_t limit = 1;
    std::uint32_t first_limit = 0;  // while it is resized: what its first acquirer asked for
    Fence last_fence = 0;
    Time idle_since{};
    bool was_left = false;            // by a set: whoever is behind it may come in
    std::vector<Held> holds{};        // in the order of their fences
    std::vector<Place> queue{};       // the first to wait first
    std::vector<SessionId> lapsed{};  // whose two-phase grant ran out before it was awaited
  };

  // An Event that owns its views, with the fields of its type and no others.
  struct Happened {
    explicit Happened(const Event& event);
    bool operator==(const Happened&) const = default;

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

  struct Answer {
    Outcome outcome = Outcome::ok;
    Grant grant{};
  };

  // Goes before every call, which the table then gets first: shows where it tells what it did.
  void watch(const Effects& seen);

  // As in LockTable.
  Answer acquire(Time now, const AcquireRequest& request, Listener* listener, std::uint64_t id,
                 bool has_spare);
  Answer enqueue(Time now, const EnqueueRequest& request, bool has_spare);
  Answer await_turn(Time now, SessionId session, Kind kind, std::string_view key, Duration wait,
                    Listener* listener, std::uint64_t id);
  Answer renew(Time now, const HoldId& hold, std::optional<Duration> ttl);
  Outcome release(Time now, const HoldId& hold);
  bool withdraw(Time now, const HoldId& hold);
  bool cancel(Time now, const Listener* listener, std::uint64_t id);
  // All of the holds at once; adds to `ended` which those are.
  Outcome revoke(Time now, const LockTable::Revocation& revocation, std::vector<Fence>* ended);
  Outcome resize(Time now, std::string_view key, std::uint32_t limit);
  FenceStatus fence(Time now, std::string_view key);
  std::optional<Conflict> explain(Time now, Kind kind, std::string_view key);
  void end_session(Time now, SessionId session, bool keep_holds);
  void end_waits(Outcome why);

  // Several keys in one step, as in SetRules. `last` is the table's last fence when it was done;
  // `in_the_way` tells, if it was not granted, which keys are.
  Answer acquire_set(Time now, const AcquireSetRequest& request, Listener* listener,
                     std::uint64_t id, Fence last, std::vector<std::size_t>* in_the_way);
  Answer renew_set(Time now, const SetId& set, std::optional<Duration> ttl);
  std::vector<bool> release_set(Time now, const SetId& set);
  bool withdraw_set(Time now, const SetId& set);
  // Goes behind every call: what it has left of sets goes, those whose turn has come are granted,
  // and whoever is behind them comes in.
  void settle_sets(Time now);
  // Ends what the table has ended; what the table left is left here.
  void advance(Time now);
  // `is_left` tells whether the table still has a key.
  using IsLeft = std::function<bool(const ModelKey&)>;
  std::size_t forget_idle(Time since, std::size_t keys_max, const IsLeft& is_left);
  bool reclaim_idle(const IsLeft& is_left);

  const std::vector<ModelKey>& keys() const { return keys_; }
  const ModelKey* find(Kind kind, std::string_view name) const;
  bool has_session(SessionId session) const;
  Owned owned(SessionId session) const;
  // How many holds and places there are: in all, and of a session, if the holder has one, or name.
  std::size_t count_holds() const;
  std::size_t count_holds(const Holder& holder) const;
  // Who holds the key and how many wait.
  static Conflict conflict(const ModelKey& key);
  Time now() const { return now_; }
  Time next_deadline() const;

  static bool is_same(const Grant& a, const Grant& b) {
    return a.fence == b.fence && a.ttl == b.ttl && a.expires_at == b.expires_at &&
           a.secret == b.secret;
  }

  // In what the table differs, or an empty string: in what the last call caused; in its state.
  std::string difference_of_effects(const Effects& seen) const;
  std::string difference_of_state(const LockTable& table) const;
  // In what a table rebuilt from events differs: it has the holds, and nothing else.
  std::string difference_of_holds(const LockTable& rebuilt) const;

 private:
  ModelKey* find_key(Kind kind, std::string_view name);
  ModelKey* at(Time now, Kind kind, std::string_view name);
  Outcome why_not(ModelKey* key, const HoldId& id) const;
  std::vector<ModelKey>::iterator longest_idle(const IsLeft& is_left);

  Answer refuse(Time now, Outcome flaw);
  void follow(Time now);
  bool is_ahead(const ModelKey& key) const;
  bool has_ended(const ModelKey& key, const Held& hold) const;
  std::size_t turn_of(const Place& place) const;
  // A lease or a wait that has come to its end.
  struct Due {
    using Rank = std::tuple<Time, bool, std::size_t>;  // when; whether it is a wait; among equals
    Time deadline() const { return std::get<0>(rank); }
    bool is_wait() const { return std::get<1>(rank); }

    Rank rank;
    Fence lease = 0;
    std::size_t place = 0;
  };
  std::optional<Due> next_due(const ModelKey& key) const;
  std::optional<Due> next_end_of_set(const ModelKey& key) const;
  void run(ModelKey& key, const Due& due);
  void run_all(ModelKey& key);

  template <typename Request>
  Answer grant_new(ModelKey* key, const Request& request, bool has_spare);
  bool take_over(Held& hold, const Owner& asker);
  bool take_over(Place& place, const Owner& asker);
  std::optional<Answer> enqueue_again(ModelKey& key, const EnqueueRequest& request);
  Fence next_fence(Kind kind, std::string_view name) const;
  bool is_exhausted(Kind kind, std::string_view name) const;
  Held& grant(ModelKey& key, const Place& asked);
  Grant grant_again(const ModelKey& key, Held& hold, Duration ttl);
  Grant refresh(const ModelKey& key, Held& hold, Duration ttl);
  void end_hold(ModelKey& key, Fence fence, EndCause cause);
  void end_session(ModelKey& key, SessionId session, bool keep_holds);
  void grant_next(ModelKey& key);
  bool is_let_in(const ModelKey& key) const;
  void pass_on_if_left(ModelKey& key);
  void grant_waiters(ModelKey& key);
  void grant_same_owner(ModelKey& key, Held& hold);

  std::vector<ModelKey*> at_all(Time now, const std::vector<SetItem>& items);
  std::vector<Held*> holds_of(const SetId& set, const std::vector<ModelKey*>& keys) const;
  bool has_binding_limit(const ModelKey& key) const;
  bool fits_limit(const ModelKey* key, const SetItem& item, const Owner& owner) const;
  static bool may_enter(const ModelKey* key, const SetItem& item);
  Outcome why_not_all(const std::vector<ModelKey*>& keys, const AcquireSetRequest& request) const;
  void make_keys(const AcquireSetRequest& request, Fence last);
  void join_all(const AcquireSetRequest& request, Listener* listener, std::uint64_t id);
  std::optional<Answer> ask_again(const std::vector<ModelKey*>& keys,
                                  const AcquireSetRequest& request);
  std::vector<std::pair<ModelKey*, std::size_t>> places_of(std::uint64_t id);
  bool decide(std::uint64_t id);
  void grant_set(std::uint64_t id);
  void end_set(std::uint64_t id, Outcome why, const Grant& grant = {});

  bool is_full(const ModelKey& key) const;
  Outcome why_no_place(bool is_full_somewhere, Duration wait) const;
  Outcome why_no_more(const Holder& holder) const;
  Duration capped(Duration ttl) const;
  template <typename Request>
  Place place_of(const Request& request) const;
  void await(Place& place, Duration wait, Listener* listener, std::uint64_t id);
  void settle(ModelKey& key, std::size_t at, Outcome outcome, const Grant& grant = {});
  void leave_queue(ModelKey& key, std::size_t at, Outcome why);

  const TableOptions options_;
  const std::uint64_t keys_max_;
  const HoldBudget::Caps holds_;
  std::vector<ModelKey> keys_;
  Fence last_fence_;
  Fence known_ = 0;  // the last one when the call began
  Time now_{};

  // Of the last call.
  const Effects* seen_ = nullptr;
  std::string broken_;  // what no table may do
  std::vector<Happened> events_;
  std::vector<WaitResult> settled_;
  Time earliest_ = Time::never();
};

// Of one that does not say: an empty one.
inline ClientIdentity identity_of(const ClientRef& client) {
  return client == nullptr ? ClientIdentity{} : *client;
}

// For people who read what a test has found.
std::string text(Kind kind, std::string_view key);
std::string text(const LockModel::Owner& owner);
std::string text(const ClientIdentity& client);

}  // namespace lockd
