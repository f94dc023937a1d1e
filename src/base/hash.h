// A fast, seeded hash of short byte strings.
//
// Every output bit depends on every input bit, so both ends of the result may be used: the engine
// takes the low bits for the shard, the key index the high bits for the bucket. The seed keeps a
// client that chooses its keys from choosing their buckets. Not for storage: it may change.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockd {

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) noexcept;

}  // namespace lockd
