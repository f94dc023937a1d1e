#include "replication/records.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include "base/coding.h"
#include "base/crc.h"
#include "base/text.h"

namespace lockd {
namespace {

constexpr std::size_t kDigits = 16;

constexpr std::string_view kMark = "LkB";
constexpr std::size_t kChecked = 8;  // the CRC covers the bytes from here on

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

// The end of the range of keys that begin with `prefix`.
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
    : prefix('/' + cluster + '/'),
      leader(prefix + "w/leader"),
      successor(prefix + "w/successor"),
      head(prefix + "head"),
      base(prefix + "base"),
      heartbeat(prefix + "beat"),
      batches(prefix + "w/j/"),
      watched(prefix + "w/"),
      watched_end(end_of(watched)),
      nodes(prefix + "nodes/"),
      nodes_end(end_of(nodes)) {}

std::optional<BatchId> EtcdKeys::batch_id_of(std::string_view key) const {
  if (!key.starts_with(batches)) return {};
  return parse_batch_id(key.substr(batches.size()));
}

void seal(const BatchHeader& header, std::string& bytes) {
  assert(bytes.size() >= kBatchHeaderSize);
  char* const at = bytes.data();
  std::copy(kMark.begin(), kMark.end(), at);
  at[kMark.size()] = static_cast<char>('0' + header.version);
  store(at + 8, header.previous.epoch);
  store(at + 16, header.previous.seq);
  store(at + 24, header.position);
  store(at + 32, header.made_at.ns);
  std::fill(at + 40, at + kBatchHeaderSize, '\0');
  store(at + 4, crc32c(std::string_view(bytes).substr(kChecked)));
}

bool open(std::string_view bytes, BatchHeader* header, std::string_view* payload) {
  header->version = version_of_batch(bytes);
  if (bytes.size() < kBatchHeaderSize || header->version > kChainVersion) return false;
  if (header->version == 0) return false;
  if (load<std::uint32_t>(bytes.data() + 4) != crc32c(bytes.substr(kChecked))) return false;
  header->previous = {load<std::uint64_t>(bytes.data() + 8),
                      load<std::uint64_t>(bytes.data() + 16)};
  header->position = load<std::uint64_t>(bytes.data() + 24);
  header->made_at = {load<std::uint64_t>(bytes.data() + 32)};
  *payload = bytes.substr(kBatchHeaderSize);
  return true;
}

std::uint32_t version_of_batch(std::string_view bytes) {
  if (!bytes.starts_with(kMark) || bytes.size() == kMark.size()) return 0;
  const char digit = bytes[kMark.size()];
  return digit >= '1' && digit <= '9' ? static_cast<std::uint32_t>(digit - '0') : 0;
}

std::string to_text(const LeaderRecord& record) {
  return "incarnation=" + record.incarnation + "\nnode=" + record.node +
         "\naddress=" + record.address + "\npolicy=" + record.policy + "\nhttp=" + record.http +
         "\nversion=" + std::to_string(record.version) + "\n";
}

std::optional<LeaderRecord> leader_record_in(std::string_view text) {
  LeaderRecord record;
  const bool is_complete = take_line(text, "incarnation=", &record.incarnation) &&
                           take_line(text, "node=", &record.node) &&
                           take_line(text, "address=", &record.address) &&
                           take_line(text, "policy=", &record.policy);
  if (!is_complete) return {};
  take_line(text, "http=", &record.http);  // older versions do not have it
  record.version = version_of_record(text);
  return record;
}

std::string successor_text(const std::string& node) { return "node=" + node + '\n'; }

std::string successor_in(std::string_view text) {
  std::string node;
  take_line(text, "node=", &node);
  return node;
}

std::uint32_t version_of_record(std::string_view text) {
  const auto said = line_of(text, "version=");
  if (!said.has_value()) return 1;
  return static_cast<std::uint32_t>(parse_whole(*said, 1, UINT32_MAX).value_or(UINT32_MAX));
}

std::optional<std::string_view> line_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return {};
}

}  // namespace lockd
