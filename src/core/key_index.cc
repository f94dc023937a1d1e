#include "core/key_index.h"

#include <cassert>

namespace lockd {

KeyIndex::KeyIndex(const HashKey& hash_key)
    : hash_key_(hash_key), buckets_(std::size_t{1} << kBitsMin) {}

Semaphore* KeyIndex::find(Kind kind, std::string_view key, std::uint64_t hash) const {
  Semaphore* s = buckets_[bucket_of(hash)];
  if (s != nullptr) {
    // A semaphore spans three cache lines, and all of them will be wanted: fetch them at once.
    const char* lines = reinterpret_cast<const char*>(s);
    __builtin_prefetch(lines, 1);
    __builtin_prefetch(lines + 64, 1);
    __builtin_prefetch(lines + 128, 1);
  }
  while (s != nullptr && (s->key() != key || s->kind != kind)) s = s->index_next;
  return s;
}

void KeyIndex::insert(Semaphore* semaphore) {
  if (size_ >= buckets_.size()) resize(64 - shift_ + 1);
  const std::uint64_t rank = rank_of(*semaphore);
  Semaphore** link = &buckets_[bucket_of(rank)];
  while (*link != nullptr && rank_of(**link) < rank) link = &(*link)->index_next;
  semaphore->index_next = *link;
  *link = semaphore;
  ++size_;
}

void KeyIndex::remove(Semaphore* semaphore) {
  Semaphore** link = &buckets_[bucket_of(hash_of(semaphore->key()))];
  while (*link != semaphore) {
    assert(*link != nullptr);
    link = &(*link)->index_next;
  }
  *link = semaphore->index_next;
  --size_;
  // Far from the point of growth, so that a table at the border does not swing to and fro.
  if (size_ < buckets_.size() / 8 && 64 - shift_ > kBitsMin) resize(64 - shift_ - 2);
}

std::uint64_t KeyIndex::rank_of(const Semaphore& s) const {
  return (hash_of(s.key()) & ~std::uint64_t{1}) | static_cast<std::uint64_t>(s.kind);
}

void KeyIndex::resize(unsigned bits) {
  bits = bits < kBitsMin ? kBitsMin : bits;
  std::vector<Semaphore*> old(std::size_t{1} << bits);
  old.swap(buckets_);
  shift_ = 64 - bits;
  // The old buckets from first to last are in the order of ranks: each key goes behind the one
  // before it, if that is in the same bucket.
  Semaphore* before = nullptr;
  std::size_t bucket_before = 0;
  for (Semaphore* s : old) {
    while (s != nullptr) {
      Semaphore* next = s->index_next;
      const std::size_t bucket = bucket_of(hash_of(s->key()));
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
