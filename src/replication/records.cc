#include "replication/records.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include "base/coding.h"
#include "base/crc.h"

namespace lockd {
namespace {

constexpr std::size_t kDigits = 16;

constexpr std::uint32_t kMark = 0x31426b4c;  // "LkB1"
constexpr std::size_t kChecked = 8;          // what the CRC is of begins here

std::string to_hex(std::uint64_t number) {
  std::string text(kDigits, '0');
  for (std::size_t i = kDigits; number != 0; number >>= 4)
    text[--i] = "0123456789abcdef"[number & 15];
  return text;
}

bool from_hex(std::string_view text, std::uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number, 16);
  return error == std::errc() && end == text.data() + text.size();
}

// The first key behind all that begin with `prefix`.
std::string end_of(std::string prefix) {
  ++prefix.back();
  return prefix;
}

}  // namespace

std::string to_text(const BatchId& id) { return to_hex(id.epoch) + '/' + to_hex(id.seq); }

std::optional<BatchId> parse_batch_id(std::string_view text) {
  BatchId id;
  if (text.size() != 2 * kDigits + 1 || text[kDigits] != '/') return {};
  if (!from_hex(text.substr(0, kDigits), &id.epoch)) return {};
  if (!from_hex(text.substr(kDigits + 1), &id.seq)) return {};
  return id;
}

EtcdKeys::EtcdKeys(const std::string& cluster)
    : leader('/' + cluster + "/w/leader"),
      head('/' + cluster + "/head"),
      base('/' + cluster + "/base"),
      heartbeat('/' + cluster + "/beat"),
      batches('/' + cluster + "/w/j/"),
      batches_end(end_of(batches)),
      watched('/' + cluster + "/w/"),
      watched_end(end_of(watched)),
      nodes('/' + cluster + "/nodes/"),
      nodes_end(end_of(nodes)) {}

std::optional<BatchId> EtcdKeys::batch_id_of(std::string_view key) const {
  if (!key.starts_with(batches)) return {};
  return parse_batch_id(key.substr(batches.size()));
}

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

bool is_of_another_version(std::string_view bytes) {
  constexpr std::string_view kAnyVersion = "LkB";
  return bytes.size() >= sizeof kMark && bytes.starts_with(kAnyVersion) &&
         load<std::uint32_t>(bytes.data()) != kMark;
}

std::string to_text(const LeaderRecord& record) {
  return "incarnation=" + record.incarnation + "\nnode=" + record.node +
         "\naddress=" + record.address + "\npolicy=" + record.policy + "\n";
}

std::optional<LeaderRecord> leader_record_in(std::string_view text) {
  LeaderRecord record;
  if (!take_line(text, "incarnation=", &record.incarnation)) return {};
  if (!take_line(text, "node=", &record.node)) return {};
  if (!take_line(text, "address=", &record.address)) return {};
  if (!take_line(text, "policy=", &record.policy)) return {};
  return record;
}

}  // namespace lockd
