// How a table finds the holds, the waiters and the two-phase acquisitions of its many keys.
//
// Not thread-safe. Of what they find only EnqueuedIndex owns it.
#pragma once

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "core/key.h"

namespace lockd {

// A holder of a key, or one that waits for it, that may ask again. Clients choose names and these
// secrets, so their hash is keyed.
struct OwnerAtKey {
  OwnerAtKey(const Key* key, const Holder& owner)
      : key(key), name(owner.name()), secret(owner.secret()) {}
  bool operator==(const OwnerAtKey&) const = default;

  const Key* key;
  std::string_view name;  // empty: the secret counts
  std::uint64_t secret;

  struct Hash {
    using is_avalanching = void;
    std::size_t operator()(const OwnerAtKey& o) const {
      const std::string_view digits(reinterpret_cast<const char*>(&o.secret), sizeof o.secret);
      return hash_bytes(o.name.empty() ? digits : o.name, key.at(o.key));
    }

    HashKey key;
  };
};

// Finds one of a key's many holds, by fence or by who may ask again. A lock that is held alone does
// not need it.
class HoldIndex {
 public:
  explicit HoldIndex(const HashKey& hash_key) : by_owner_(0, Hash{{hash_key}}) {}

  // The hold's fence and holder, its session aside, must not change while it is here.
  void insert(Hold* hold);
  void remove(Hold* hold);
  std::size_t size() const { return by_fence_.size(); }

  // A fence is unique for its key only: keys that had been in several tables, each with fences of
  // its own, may be recovered into one.
  Hold* find(const Key* key, Fence fence) const;
  Hold* find(const Key* key, const Holder& owner) const;

 private:
  struct Hash : OwnerAtKey::Hash {
    using is_transparent = void;
    using OwnerAtKey::Hash::operator();
    std::size_t operator()(const Hold* h) const { return (*this)(owner_of(h)); }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const Hold* a, const Hold* b) const { return a == b; }
    bool operator()(const OwnerAtKey& a, const Hold* b) const { return a == owner_of(b); }
    bool operator()(const Hold* a, const OwnerAtKey& b) const { return owner_of(a) == b; }
  };
  static OwnerAtKey owner_of(const Hold* h) { return {h->key, h->holder.view()}; }

  boost::unordered_flat_map<std::pair<const Key*, Fence>, Hold*> by_fence_;
  boost::unordered_flat_set<Hold*, Hash, Equal> by_owner_;
};

// Finds the places that one who may ask again has in one queue: a name any number, a secret one.
class PlaceIndex {
 public:
  explicit PlaceIndex(const HashKey& hash_key) : places_(0, OwnerAtKey::Hash{hash_key}) {}

  // The waiter's holder must not change while it is here.
  void insert(QueuePlace* place);
  // Does nothing if it is not here.
  void remove(QueuePlace* place);
  std::vector<QueuePlace*> all(const Key* key, const Holder& owner) const;
  // The first of them, or null.
  QueuePlace* find(const Key* key, const Holder& owner) const;
  std::size_t owners() const { return places_.size(); }

 private:
  using Places = List<QueuePlace, &QueuePlace::same_owner_peers>;

  static OwnerAtKey owner_of(const QueuePlace* w) { return {w->key, w->holder.view()}; }

  boost::unordered_flat_map<OwnerAtKey, Places, OwnerAtKey::Hash> places_;  // by the first's holder
};

// Gives each waiter a small number by which it can be found as long as it waits.
class PlaceSlots {
 public:
  // Sets the waiter's slot.
  void insert(QueuePlace* place) {
    if (free_.empty()) {
      place->slot = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(place);
    } else {
      place->slot = free_.back();
      free_.pop_back();
      slots_[place->slot] = place;
    }
  }

  void remove(const QueuePlace* place) {
    slots_[place->slot] = nullptr;
    free_.push_back(place->slot);
    if (free_.size() == slots_.size() && slots_.size() > 1024) {
      // A crowd has come and gone: so does the memory.
      slots_ = {};
      free_ = {};
    }
  }

  // Null when the slot is free. It may have been given to another waiter since: compare.
  QueuePlace* find(std::uint32_t slot) const {
    return slot < slots_.size() ? slots_[slot] : nullptr;
  }

  std::size_t size() const { return slots_.size() - free_.size(); }
  // Every slot is below this.
  std::size_t slots() const { return slots_.size(); }

 private:
  std::vector<QueuePlace*> slots_;
  std::vector<std::uint32_t> free_;
};

// The two-phase acquisitions of a table's sessions: one per session and key.
//
// A grant that lapsed before it was awaited is remembered, so that its session hears of it once;
// but only the latest kLapsedMax of them, and only while the key exists: nobody can make the table
// grow by never asking.
class EnqueuedIndex {
 public:
  static constexpr std::size_t kLapsedMax = 1024;

  EnqueuedIndex() = default;
  EnqueuedIndex(const EnqueuedIndex&) = delete;
  EnqueuedIndex& operator=(const EnqueuedIndex&) = delete;
  ~EnqueuedIndex();

  Enqueued* find(SessionId session, const Key* key) const;

  // Precondition: find() gives null.
  Enqueued* insert(SessionId session, Key* key);
  // Precondition: in no session's list.
  void remove(Enqueued* enqueued);

  // It has neither place nor hold any more. Returns one that is to be forgotten to make room, or
  // null; the caller takes it out of its session and removes it.
  Enqueued* lapse(Enqueued* enqueued);
  // Any lapsed one of this key, or null.
  Enqueued* find_lapsed(const Key* key) const;

  std::size_t size() const { return all_.size(); }

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

  boost::unordered_flat_set<Enqueued*, Hash, Equal> all_;
  List<Enqueued, &Enqueued::lapsed_peers> lapsed_;  // the oldest first
  std::size_t lapsed_count_ = 0;
};

}  // namespace lockd
