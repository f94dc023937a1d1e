// Finds a key's semaphore, and walks through all of them in pieces.
//
// A chained hash table, the chain inside the semaphores. Buckets are ranges of the hash, in order,
// and a chain is in order too. So a walk is a position in the space of hashes: it may stop at any
// key, survives growth and shrinking between its steps, visits what was there throughout exactly
// once, and needs no memory of where it was.
//
// Not thread-safe. Owns no semaphore.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "core/key.h"

namespace lockd {

// Where a walk is. Starts at the beginning.
struct Cursor {
  std::uint64_t rank = 0;
  bool done = false;
};

class KeyIndex {
 public:
  explicit KeyIndex(const HashKey& hash_key);

  std::uint64_t hash_of(std::string_view name) const { return hash_bytes(name, hash_key_); }
  // `hash` is the key's.
  Key* find(Kind kind, std::string_view name, std::uint64_t hash) const;
  Key* find(Kind kind, std::string_view name) const { return find(kind, name, hash_of(name)); }
  void insert(Key* key);
  void remove(Key* key);
  std::size_t size() const { return size_; }

  // Calls `visit(Semaphore&)` for the next keys, at most `keys_max`; more only when several have
  // one hash. `visit` must not insert or remove keys.
  template <typename Visit>
  void walk(Cursor& cursor, std::size_t keys_max, Visit visit) const;

 private:
  // What the order goes by: the hash, its last bit replaced by the kind, so that a lock and a
  // semaphore of one name have a place each.
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
