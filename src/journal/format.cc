#include "journal/format.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/coding.h"
#include "base/crc32c.h"

namespace lockd {
namespace {

constexpr std::string_view kSegmentMark = "LOCKDJNL";
// No text has a byte of 0xfe, so no key and no holder can look like the beginning of a frame.
constexpr std::string_view kFrameMark = "\xfeLK";

constexpr unsigned char kCompletes = 1;
constexpr unsigned char kSeals = 2;

constexpr std::string_view kNamePrefix = "journal-";
constexpr std::string_view kNameSuffix = ".log";

// The last four bytes of a header are the checksum of the others.
void store_checksum(char* header, std::size_t size) {
  store(header + size - 4, crc32c({header, size - 4}));
}

bool checksum_holds(std::string_view header) {
  return load<std::uint32_t>(header.data() + header.size() - 4) ==
         crc32c(header.substr(0, header.size() - 4));
}

}  // namespace

std::string segment_name(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return std::string(kNamePrefix) + digits + std::string(kNameSuffix);
}

std::optional<std::uint64_t> segment_number(std::string_view name) {
  if (name.size() != kNamePrefix.size() + 16 + kNameSuffix.size()) return {};
  std::uint64_t number = 0;
  for (const char c : name.substr(kNamePrefix.size(), 16)) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return {};
    number = number << 4 | digit;
  }
  if (name != segment_name(number)) return {};
  return number;
}

std::string encode(const SegmentHeader& header) {
  std::string bytes(kSegmentHeaderSize, '\0');
  char* const to = bytes.data();
  std::memcpy(to, kSegmentMark.data(), kSegmentMark.size());
  store(to + 8, kFormatVersion);
  std::memcpy(to + 16, header.journal.data(), header.journal.size());
  store(to + 32, header.number);
  store(to + 40, header.start);
  std::memcpy(to + 48, header.opened.boot_id.data(), header.opened.boot_id.size());
  store(to + 64, header.opened.boot_ns);
  store(to + 72, header.engine_time.ns);
  store(to + 80, header.opened.wall_ns);
  store_checksum(to, kSegmentHeaderSize);
  return bytes;
}

HeaderFault decode(std::string_view bytes, SegmentHeader* header, std::uint32_t* version) {
  if (bytes.size() < kSegmentHeaderSize) return HeaderFault::torn;
  bytes = bytes.substr(0, kSegmentHeaderSize);
  if (!bytes.starts_with(kSegmentMark)) return HeaderFault::torn;
  // Before the checksum: another version may have it elsewhere.
  *version = load<std::uint32_t>(bytes.data() + 8);
  if (*version != kFormatVersion) return HeaderFault::version;
  if (!checksum_holds(bytes)) return HeaderFault::torn;
  const char* const from = bytes.data();
  std::memcpy(header->journal.data(), from + 16, header->journal.size());
  header->number = load<std::uint64_t>(from + 32);
  header->start = load<std::uint64_t>(from + 40);
  std::memcpy(header->opened.boot_id.data(), from + 48, header->opened.boot_id.size());
  header->opened.boot_ns = load<std::uint64_t>(from + 64);
  header->engine_time.ns = load<std::uint64_t>(from + 72);
  header->opened.wall_ns = load<std::uint64_t>(from + 80);
  return HeaderFault::none;
}

void encode(const FrameHeader& header, char* to) {
  std::memcpy(to, kFrameMark.data(), kFrameMark.size());
  to[3] = static_cast<char>((header.completes ? kCompletes : 0) | (header.seals ? kSeals : 0));
  store(to + 4, header.payload_size);
  store(to + 8, header.payload_crc);
  store(to + 12, header.position);
  store(to + 20, header.synced);
  store(to + 28, header.engine_time.ns);
  store(to + 36, header.wall_ns);
  store_checksum(to, kFrameHeaderSize);
}

bool decode(std::string_view bytes, FrameHeader* header) {
  if (bytes.size() < kFrameHeaderSize || !bytes.starts_with(kFrameMark)) return false;
  bytes = bytes.substr(0, kFrameHeaderSize);
  if (!checksum_holds(bytes)) return false;
  const char* const from = bytes.data();
  const auto flags = static_cast<unsigned char>(from[3]);
  header->completes = (flags & kCompletes) != 0;
  header->seals = (flags & kSeals) != 0;
  header->payload_size = load<std::uint32_t>(from + 4);
  header->payload_crc = load<std::uint32_t>(from + 8);
  header->position = load<std::uint64_t>(from + 12);
  header->synced = load<std::uint64_t>(from + 20);
  header->engine_time.ns = load<std::uint64_t>(from + 28);
  header->wall_ns = load<std::uint64_t>(from + 36);
  return (flags & ~(kCompletes | kSeals)) == 0 && header->payload_size <= kPayloadMax;
}

std::size_t find_frame_mark(std::string_view bytes) { return bytes.find(kFrameMark[0]); }

}  // namespace lockd
