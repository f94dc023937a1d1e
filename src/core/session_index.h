// SessionIndex: what each session holds, waits for and has enqueued in one table.
//
// It links holds and places to their sessions and owns only the Enqueued entries. Not thread-safe.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstddef>
#include <cstdint>

#include "core/key.h"
#include "lockd/requests.h"

namespace lockd {

class SessionIndex {
 public:
  struct Items {
    List<Enqueued, &Enqueued::session_peers> enqueued;
    List<QueuePlace, &QueuePlace::session_peers> places;
    List<Hold, &Hold::session_peers> holds;
    std::size_t place_count = 0;
    std::size_t hold_count = 0;
    std::size_t acknowledged = 0;  // holds whose grant the session has received
  };

  // A lapsed Enqueued lets the session learn once that its grant lapsed. Only the latest of them
  // are kept, and only while the key exists, so that sessions that never ask cost a bounded amount
  // of memory.
  static constexpr std::size_t kLapsedMax = 1024;

  SessionIndex() = default;
  SessionIndex(const SessionIndex&) = delete;
  SessionIndex& operator=(const SessionIndex&) = delete;
  ~SessionIndex();

  // These four do nothing if the holder has no session, or is not linked.
  void add(Hold& hold);
  void remove(Hold& hold);
  void add(QueuePlace& place);
  // Also ends the two-phase acquisition that points to the place.
  void remove(QueuePlace& place);

  // Whether the session has yet to receive the grant.
  void set_unacknowledged(Hold& hold, bool unacknowledged);

  // Two-phase acquisitions.
  Enqueued* find_enqueued(SessionId session, const Key* key) const;
  // Precondition: find_enqueued() gives null.
  Enqueued& enqueue(SessionId session, Key& key);
  void remove(Enqueued& enqueued);
  // The hold has ended by its lease or by an admin. Drops the oldest lapsed entry beyond the cap.
  void lapse(Enqueued& enqueued);
  // Drops all lapsed entries of a key that is about to be deleted.
  void forget_lapsed(const Key& key);

  // Null if the session has nothing here.
  const Items* find(SessionId session) const;
  // Forgets a session without items. False if it has some.
  bool forget(SessionId session);
  Owned owned(SessionId session) const;
  bool has(SessionId session) const {
    const Owned here = owned(session);
    return here.holds > 0 || here.places > 0;
  }
  bool has_acknowledged_hold(SessionId session) const {
    const Items* const items = find(session);
    return items != nullptr && items->acknowledged > 0;
  }

  std::size_t enqueued() const { return enqueued_.size(); }
  template <typename Visit>  // Visit(SessionId, const Items&)
  void for_each(Visit visit) const {
    for (const auto& [session, items] : items_) visit(session, items);
  }

 private:
  struct Id {
    SessionId session;
    const Key* key;
    bool operator==(const Id&) const = default;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Id& id) const {
      return static_cast<std::size_t>(id.session * 0x9e3779b97f4a7c15) ^
             reinterpret_cast<std::uintptr_t>(id.key);
    }
    std::size_t operator()(const Enqueued* e) const { return (*this)(id_of(e)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Enqueued* a, const Enqueued* b) const { return a == b; }
    bool operator()(const Id& a, const Enqueued* b) const { return a == id_of(b); }
    bool operator()(const Enqueued* a, const Id& b) const { return id_of(a) == b; }
  };
  static Id id_of(const Enqueued* e) { return {e->session, e->key}; }

  boost::unordered_flat_map<SessionId, Items> items_;
  boost::unordered_flat_set<Enqueued*, Hash, Equal> enqueued_;
  List<Enqueued, &Enqueued::lapsed_peers> lapsed_;  // the oldest first
  std::size_t lapsed_count_ = 0;
};

}  // namespace lockd
