// Shards: the shards of an engine. The hash of a key selects its shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "engine/shard.h"

namespace lockd {

struct ShardRef {
  Shard& shard;
  std::uint32_t number;
  std::uint64_t key_hash;
};

// Immutable after the last add(), and then thread-safe.
class Shards {
 public:
  explicit Shards(const HashKey& hash_key) : hash_key_(hash_key) {}

  // The final number of shards must be a power of two.
  void add(std::unique_ptr<Shard> shard) { shards_.push_back(std::move(shard)); }

  ShardRef of(std::string_view key) const {
    const std::uint64_t hash = hash_bytes(key, hash_key_);
    const auto number = static_cast<std::uint32_t>(hash & (shards_.size() - 1));
    return {*shards_[number], number, hash};
  }
  // Null if there is no such shard.
  Shard* find(std::uint32_t number) const {
    return number < shards_.size() ? shards_[number].get() : nullptr;
  }
  // In the order of their numbers, without duplicates.
  std::vector<Shard*> select(std::vector<std::uint32_t> numbers) const {
    std::ranges::sort(numbers);
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    std::vector<Shard*> shards;
    for (const std::uint32_t n : numbers) shards.push_back(shards_[n].get());
    return shards;
  }

  std::size_t size() const { return shards_.size(); }
  Shard& operator[](std::size_t number) const { return *shards_[number]; }
  auto begin() const { return shards_.begin(); }
  auto end() const { return shards_.end(); }

 private:
  const HashKey hash_key_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace lockd
