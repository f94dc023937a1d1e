// How a table finds the holds, the queue places and the idle keys among its many keys.
//
// The indexes own nothing of what they find. Not thread-safe.
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

// A key and a holder that can repeat its request: a name, or a secret that the client chose.
// Clients choose both, so their hash is keyed.
struct OwnerAtKey {
  OwnerAtKey(const Key* key, const Holder& owner)
      : key(key), name(owner.name()), secret(owner.secret()) {}
  bool operator==(const OwnerAtKey&) const = default;

  const Key* key;
  std::string_view name;  // empty: the secret identifies the holder
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

// Finds one of a key's many holds, by fence or by holder. An exclusive hold of a lock is not here.
class HoldIndex {
 public:
  explicit HoldIndex(const HashKey& hash_key) : by_owner_(0, Hash{{hash_key}}) {}

  // The hold's fence and holder, except the holder's session, must not change while it is here.
  void insert(Hold* hold);
  void remove(Hold* hold);
  std::size_t size() const { return by_fence_.size(); }
  std::size_t shared() const { return shared_; }  // holds of locks

  // A fence is unique only within its key: recovery may merge the keys of several tables, each of
  // which had its own fences.
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
  std::size_t shared_ = 0;
};

// Finds queue places: by slot, a small number that is the place's own while it waits; and by
// holder, of which a name may have several in one queue and a secret has one.
class PlaceIndex {
 public:
  explicit PlaceIndex(const HashKey& hash_key) : by_owner_(0, OwnerAtKey::Hash{hash_key}) {}

  // Sets the place's slot.
  void insert(QueuePlace* place);
  void remove(const QueuePlace* place);
  // Null when the slot is free. It may belong to another place than the caller knew: compare.
  QueuePlace* find(std::uint32_t slot) const {
    return slot < slots_.size() ? slots_[slot] : nullptr;
  }
  std::size_t size() const { return slots_.size() - free_.size(); }
  std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }

  // By holder. The place's holder must not change while it is linked.
  void link_owner(QueuePlace* place);
  void unlink_owner(QueuePlace* place);  // does nothing if it is not linked
  std::vector<QueuePlace*> all(const Key* key, const Holder& owner) const;
  // The first of them, or null.
  QueuePlace* find(const Key* key, const Holder& owner) const;

 private:
  using Places = List<QueuePlace, &QueuePlace::same_owner_peers>;

  static OwnerAtKey owner_of(const QueuePlace* w) { return {w->key, w->holder.view()}; }

  std::vector<QueuePlace*> slots_;
  std::vector<std::uint32_t> free_;
  // The key of an entry refers to the first place's holder.
  boost::unordered_flat_map<OwnerAtKey, Places, OwnerAtKey::Hash> by_owner_;
};

// The keys that are neither held nor waited for, the longest idle first.
class IdleKeys {
 public:
  void add(Key& key, Time now) {
    key.first.since = now;
    keys_.push_back(&key.first);
    ++size_;
    ++idlings_;
  }
  // Does nothing if the key is not here, as a new key.
  void remove(Key& key) {
    if (!key.first.peers.linked()) return;
    keys_.remove(&key.first);
    --size_;
  }
  // Null if none is idle.
  Key* oldest() const { return keys_.empty() ? nullptr : keys_.front()->key; }

  std::size_t size() const { return size_; }
  // How often a key has become idle.
  std::uint64_t idlings() const { return idlings_; }
  const Holds& firsts() const { return keys_; }  // the unused first holds of the keys

 private:
  Holds keys_;
  std::size_t size_ = 0;
  std::uint64_t idlings_ = 0;
};

}  // namespace lockd
