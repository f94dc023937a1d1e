// What a cluster keeps in etcd: under which keys, and how batches and who leads are written there.
//
//   /<cluster>/w/leader             who leads; the revision at which it was put is the epoch
//   /<cluster>/w/j/<epoch>/<seq>    a batch
//   /<cluster>/w/successor          to whom the last leader has handed over, until somebody leads
//   /<cluster>/head                 the place of the last batch
//   /<cluster>/base                 the place of the first that is needed
//   /<cluster>/beat                 the heartbeat of an idle leader
//   /<cluster>/nodes/<node>         what each node says of itself
//
// Numbers are 16 hexadecimal digits, so that the order of the keys is that of the chain. Only `w/`
// is watched.
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

// Where a batch stands in the chain.
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
  // Of a batch's key; nothing for any other.
  std::optional<BatchId> batch_id_of(std::string_view key) const;

  const std::string prefix;  // of all
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

// Of batches and of the leader's record. All from 1 up to this one are read. A leader writes the
// latest that every server of the cluster reads, so that they can be replaced one after the other.
inline constexpr std::uint32_t kChainVersion = 1;

// What AppendBuffer leaves free in front of each chunk.
inline constexpr std::size_t kBatchHeaderSize = kFrameHeaderSize;
static_assert(kBatchHeaderSize == 48);

// A batch as the value of its key: a header of 48 bytes, then events as the journal's records are.
//
//   0  u32  mark, "LkB<version>"  16  u64  its predecessor's seq
//   4  u32  CRC32C of the rest    24  u64  position
//   8  u64  predecessor's epoch   32  u64  the leader's time
//                                 40       zeros
//
// Every batch names its predecessor, so a reader that missed one knows. The first of an epoch has
// no events: it says where the epoch begins.
struct BatchHeader {
  std::uint32_t version = kChainVersion;  // a digit
  BatchId previous{};                     // none: it is the first of all
  Position position = 0;                  // of its first event, over all epochs
  // When it was made, by the clock of its deadlines. Whoever leads next does so later: a lease that
  // lasts from then for what was left of it now does not end early.
  Time made_at{};
};

// Where the next one begins. An empty batch counts as one, so that there is a position behind it.
inline Position end_of(const BatchHeader& header, std::size_t payload_size) {
  return header.position + (payload_size == 0 ? 1 : payload_size);
}

// Fills in the header at the front of `bytes`, behind which the events are.
void seal(const BatchHeader& header, std::string& bytes);

// False when it is no batch, of a version that is not known, or damaged. Else `payload` points into
// `bytes`.
bool open(std::string_view bytes, BatchHeader* header, std::string_view* payload);
// As it begins; 0 when it is no batch.
std::uint32_t version_of_batch(std::string_view bytes);

// Who leads, as the value of the leader's key. As all records in etcd it is lines of
// "<name>=<value>", in a fixed order: whoever looks with etcdctl can read them. Lines that a later
// version adds behind them are passed over.
struct LeaderRecord {
  std::string incarnation;  // of one journal of one process; random
  std::string node;
  std::string address;  // for clients
  std::string policy;   // the settings that are in force while it leads: shared_settings.h
  std::string http{};   // for clients, over HTTP; empty: not there, or not known
  std::uint32_t version = kChainVersion;

  friend bool operator==(const LeaderRecord&, const LeaderRecord&) = default;
};

std::string to_text(const LeaderRecord& record);
std::optional<LeaderRecord> leader_record_in(std::string_view text);
// Of a record's text, by the line that says it. One without is of version 1.
std::uint32_t version_of_record(std::string_view text);
// The value of the line "<name><value>" that later versions have, wherever it is.
std::optional<std::string_view> line_of(std::string_view text, std::string_view name);

// Who is to lead next, as the value of the successor's key: its node. Empty: nobody in particular.
std::string successor_text(const std::string& node);
std::string successor_in(std::string_view text);

// The one in force; of nobody when `epoch` is 0.
struct CurrentLeader {
  etcd::Revision epoch = 0;
  LeaderRecord record{};
};

// Takes the line "<name><value>" from the front of `text`. False if another is there.
inline bool take_line(std::string_view& text, std::string_view name, std::string* value) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(name)) return false;
  *value = text.substr(name.size(), end - name.size());
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace lockd
