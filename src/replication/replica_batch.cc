#include "replication/replica_batch.h"

#include <algorithm>
#include <cassert>

#include "base/coding.h"
#include "base/crc.h"

namespace lockd {
namespace {

constexpr std::uint32_t kMark = 0x31426b4c;  // "LkB1"
constexpr std::size_t kChecked = 8;          // what the CRC is of begins here

}  // namespace

void seal(const BatchHeader& header, std::string& bytes) {
  assert(bytes.size() >= kBatchHeaderSize);
  char* const at = bytes.data();
  store(at, kMark);
  store(at + 8, header.previous.epoch);
  store(at + 16, header.previous.seq);
  store(at + 24, header.position);
  store(at + 32, header.made_at.ns);
  std::fill(at + 40, at + kBatchHeaderSize, '\0');
  store(at + 4, crc32c(std::string_view(bytes).substr(kChecked)));
}

bool open(std::string_view bytes, BatchHeader* header, std::string_view* payload) {
  if (bytes.size() < kBatchHeaderSize || load<std::uint32_t>(bytes.data()) != kMark) return false;
  if (load<std::uint32_t>(bytes.data() + 4) != crc32c(bytes.substr(kChecked))) return false;
  header->previous = {load<std::uint64_t>(bytes.data() + 8),
                      load<std::uint64_t>(bytes.data() + 16)};
  header->position = load<std::uint64_t>(bytes.data() + 24);
  header->made_at = {load<std::uint64_t>(bytes.data() + 32)};
  *payload = bytes.substr(kBatchHeaderSize);
  return true;
}

}  // namespace lockd
