// The keys and records of a cluster in etcd.
//
//   /<cluster>/w/leader             the leader's record; the revision of its put is the epoch
//   /<cluster>/w/j/<epoch>/<seq>    a batch
//   /<cluster>/w/successor          the node that the last leader named as the next, until one
//   leads
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
  const std::string batches;      // the range of the batches, ...
  const std::string batches_end;  // ... and its end
  const std::string watched;
  const std::string watched_end;
  const std::string nodes;
  const std::string nodes_end;
};

// The version of batches and of the leader's record. This program reads all versions up to it. A
// leader writes the latest version that every node can read, so nodes can be upgraded one by one.
inline constexpr std::uint32_t kChainVersion = 1;

// AppendBuffer leaves this much free in front of each chunk.
inline constexpr std::size_t kBatchHeaderSize = kFrameHeaderSize;
static_assert(kBatchHeaderSize == 48);

// A batch as the value of its key: a header of 48 bytes, then events as the journal's records are.
//
//   0  u32  mark, "LkB<version>"  16  u64  its predecessor's seq
//   4  u32  CRC32C of the rest    24  u64  position
//   8  u64  predecessor's epoch   32  u64  the leader's time
//                                 40       zeros
//
// Every batch names its predecessor, so a reader detects a missing one. The first batch of an epoch
// has no events and marks the beginning of the epoch.
struct BatchHeader {
  std::uint32_t version = kChainVersion;  // a digit
  BatchId previous{};                     // none: it is the first of the chain
  Position position = 0;                  // of its first event, over all epochs
  // The time at which the batch was made, by the clock of its deadlines. The next leader leads
  // later, so a lease that keeps the time that was left of it then does not end early.
  Time made_at{};
};

// The position of the next batch. An empty batch counts as one.
inline Position end_of(const BatchHeader& header, std::size_t payload_size) {
  return header.position + (payload_size == 0 ? 1 : payload_size);
}

// Writes the header in front of the events in `bytes`.
void seal(const BatchHeader& header, std::string& bytes);

// False if `bytes` is not a batch, of an unknown version, or damaged. Otherwise `payload` points
// into `bytes`.
bool open(std::string_view bytes, BatchHeader* header, std::string_view* payload);
// The version in the header; 0 if `bytes` is not a batch.
std::uint32_t version_of_batch(std::string_view bytes);

// The value of the leader's key. Like all records in etcd it consists of lines "<name>=<value>" in
// a fixed order, which an operator can read with etcdctl. Lines that a later version adds at the
// end are ignored.
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
