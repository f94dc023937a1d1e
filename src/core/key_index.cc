#include "core/key_index.h"

#include <cassert>

namespace lockd {

KeyIndex::KeyIndex(const HashKey& hash_key)
    : hash_key_(hash_key), buckets_(std::size_t{1} << kBitsMin) {}

Key* KeyIndex::find(Kind kind, std::string_view name, std::uint64_t hash) const {
  Key* s = buckets_[bucket_of(hash)];
  if (s != nullptr) {
    // A key spans three cache lines, and the caller will use all of them.
    const char* lines = reinterpret_cast<const char*>(s);
    __builtin_prefetch(lines, 1);
    __builtin_prefetch(lines + 64, 1);
    __builtin_prefetch(lines + 128, 1);
  }
  while (s != nullptr && (s->name() != name || s->kind != kind)) s = s->index_next;
  return s;
}

void KeyIndex::insert(Key* key) {
  if (size_ >= buckets_.size()) resize(64 - shift_ + 1);
  const std::uint64_t rank = rank_of(*key);
  Key** link = &buckets_[bucket_of(rank)];
  while (*link != nullptr && rank_of(**link) < rank) link = &(*link)->index_next;
  key->index_next = *link;
  *link = key;
  ++size_;
}

void KeyIndex::remove(Key* key) {
  Key** link = &buckets_[bucket_of(hash_of(key->name()))];
  while (*link != key) {
    assert(*link != nullptr);
    link = &(*link)->index_next;
  }
  *link = key->index_next;
  --size_;
  // Shrinks far below the size at which it grows, so that a table near a limit does not thrash.
  if (size_ < buckets_.size() / 8 && 64 - shift_ > kBitsMin) resize(64 - shift_ - 2);
}

std::uint64_t KeyIndex::rank_of(const Key& s) const {
  return (hash_of(s.name()) & ~std::uint64_t{1}) | static_cast<std::uint64_t>(s.kind);
}

void KeyIndex::resize(unsigned bits) {
  bits = bits < kBitsMin ? kBitsMin : bits;
  std::vector<Key*> old(std::size_t{1} << bits);
  old.swap(buckets_);
  shift_ = 64 - bits;
  // The old buckets are in the order of ranks, so each key follows the one before it if both are in
  // the same new bucket.
  Key* before = nullptr;
  std::size_t bucket_before = 0;
  for (Key* s : old) {
    while (s != nullptr) {
      Key* next = s->index_next;
      const std::size_t bucket = bucket_of(hash_of(s->name()));
      const bool follows = before != nullptr && bucket == bucket_before;
      (follows ? before->index_next : buckets_[bucket]) = s;
      s->index_next = nullptr;
      before = s;
      bucket_before = bucket;
      s = next;
    }
  }
}

}  // namespace lockd
