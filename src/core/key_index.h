// Finds keys by kind and name, and walks over all of them in steps.
//
// A hash table with intrusive chains. A bucket is a range of hashes, and the keys in a chain are
// sorted by hash. A walk is therefore a position in the space of hashes: it may stop at any key,
// survives growth and shrinking between its steps, and visits each key that was present throughout
// exactly once.
//
// Not thread-safe. Does not own the keys.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "core/key.h"

namespace lockd {

// The position of a walk. A new cursor is at the beginning.
struct Cursor {
  std::uint64_t rank = 0;
  bool done = false;
};

class KeyIndex {
 public:
  explicit KeyIndex(const HashKey& hash_key);

  std::uint64_t hash_of(std::string_view name) const { return hash_bytes(name, hash_key_); }
  // Precondition: `hash` is hash_of(name).
  Key* find(Kind kind, std::string_view name, std::uint64_t hash) const;
  Key* find(Kind kind, std::string_view name) const { return find(kind, name, hash_of(name)); }
  void insert(Key* key);
  void remove(Key* key);
  std::size_t size() const { return size_; }

  // Calls `visit(Key&)` for the next keys: at most `keys_max`, or more if several share a hash.
  // `visit` must not insert or remove keys.
  template <typename Visit>
  void walk(Cursor& cursor, std::size_t keys_max, Visit visit) const;

 private:
  // The sort key: the hash with its last bit replaced by the kind, so that a lock and a semaphore
  // of one name differ.
  std::uint64_t rank_of(const Key& key) const;
  std::size_t bucket_of(std::uint64_t hash) const { return hash >> shift_; }
  void resize(unsigned bits);

  static constexpr unsigned kBitsMin = 3;

  const HashKey hash_key_;
  unsigned shift_ = 64 - kBitsMin;
  std::size_t size_ = 0;
  std::vector<Key*> buckets_;
};

template <typename Visit>
void KeyIndex::walk(Cursor& cursor, std::size_t keys_max, Visit visit) const {
  std::size_t visited = 0;
  std::uint64_t last = 0;
  for (std::size_t bucket = bucket_of(cursor.rank); bucket < buckets_.size(); ++bucket) {
    for (Key* s = buckets_[bucket]; s != nullptr; s = s->index_next) {
      const std::uint64_t rank = rank_of(*s);
      if (rank < cursor.rank) continue;  // the first bucket may begin before the cursor
      if (visited >= keys_max && (visited == 0 || rank != last)) {
        cursor.rank = rank;
        return;
      }
      visit(*s);
      ++visited;
      last = rank;
    }
  }
  cursor = {.rank = 0, .done = true};
}

}  // namespace lockd
