// The keys and records of a cluster in etcd.
//
//   /<cluster>/w/leader             the leader's record; the revision of its put is the epoch
//   /<cluster>/w/j/<epoch>/<seq>    a batch
//   /<cluster>/w/successor          the next leader, named by the last one; until a node leads
//   /<cluster>/head                 the id of the last batch
//   /<cluster>/base                 the id of the first batch that is needed
//   /<cluster>/beat                 the heartbeat of an idle leader
//   /<cluster>/nodes/<node>         the state of each node
//
// Numbers are 16 hexadecimal digits, so keys sort in the order of the chain. Nodes watch only `w/`.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/format.h"
#include "lockd/journal.h"
#include "replication/etcd_client.h"

namespace lockd {

// The place of a batch in the chain.
struct BatchId {
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;

  bool is_none() const { return epoch == 0; }

  friend auto operator<=>(const BatchId&, const BatchId&) = default;
};

// "000000000000002a/0000000000000007"
std::string to_text(const BatchId& id);
std::optional<BatchId> parse_batch_id(std::string_view text);

struct EtcdKeys {
  explicit EtcdKeys(const std::string& cluster);

  std::string batch(const BatchId& id) const { return batches + to_text(id); }
  // The id in a batch's key; nothing for other keys.
  std::optional<BatchId> batch_id_of(std::string_view key) const;

  const std::string prefix;  // of all keys
  const std::string leader;
  const std::string successor;
  const std::string head;
  const std::string base;
  const std::string heartbeat;
  const std::string batches;  // begins the key of every batch
  const std::string watched;
  const std::string watched_end;
  const std::string nodes;
  const std::string nodes_end;
};

// The latest version of batches and of the leader's record that this program reads. A leader writes
// the latest that every node can read, so nodes can be upgraded one by one.
inline constexpr std::uint32_t kChainVersion = 1;

inline constexpr std::size_t kBatchHeaderSize = kFrameHeaderSize;
static_assert(kBatchHeaderSize == 48);

// The first batch of an epoch has no events and marks its beginning.
struct BatchHeader {
  std::uint32_t version = kChainVersion;  // a digit
  BatchId previous{};                     // none: it is the first of the chain
  Position position = 0;                  // of its first event, over all epochs
  // When it was made, by the clock of its deadlines. A reader keeps the time that was left of a
  // lease then, and reads the batch later, so no lease ends early.
  Time made_at{};
};

// The position of the next batch. An empty batch counts as one.
inline Position end_of(const BatchHeader& header, std::size_t payload_size) {
  return header.position + (payload_size == 0 ? 1 : payload_size);
}

// Writes the header in front of the events in `bytes`.
void seal(const BatchHeader& header, std::string& bytes);

// False if `bytes` is not a batch, of an unknown version, or damaged. `payload` points into
// `bytes`.
bool open(std::string_view bytes, BatchHeader* header, std::string_view* payload);
// The version in the header; 0 if `bytes` is not a batch.
std::uint32_t version_of_batch(std::string_view bytes);

// The value of the leader's key: like all records in etcd, lines "<name>=<value>" in a fixed order.
// Lines that a later version adds at the end are ignored.
struct LeaderRecord {
  std::string incarnation;  // of one journal of one process; random
  std::string node;
  std::string address;  // for clients
  std::string policy;   // the settings in force while it leads: shared_settings.h
  std::string http{};   // for clients, over HTTP; empty: none, or unknown
  std::uint32_t version = kChainVersion;

  friend bool operator==(const LeaderRecord&, const LeaderRecord&) = default;
};

std::string to_text(const LeaderRecord& record);
std::optional<LeaderRecord> leader_record_in(std::string_view text);
// The version in a record's text; 1 if there is none.
std::uint32_t version_of_record(std::string_view text);
// The value of an optional line "<name><value>", at any place.
std::optional<std::string_view> line_of(std::string_view text, std::string_view name);

// The value of the successor's key: the node that is to lead next.
std::string successor_text(const std::string& node);
std::string successor_in(std::string_view text);

// No node leads if `epoch` is 0.
struct CurrentLeader {
  etcd::Revision epoch = 0;
  LeaderRecord record{};
};

// Removes the line "<name><value>" from the front of `text`. False if it begins with another line.
inline bool take_line(std::string_view& text, std::string_view name, std::string* value) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return false;
  *value = text.substr(name.size(), end - name.size());
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace lockd
