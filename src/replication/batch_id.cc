#include "replication/batch_id.h"

#include <charconv>

namespace lockd {
namespace {

constexpr std::size_t kDigits = 16;

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

}  // namespace lockd
