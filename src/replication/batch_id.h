// Where a batch stands in the chain, and the keys under which the chain is kept.
//
//   /<cluster>/w/leader             who leads; the revision at which it was put is the epoch
//   /<cluster>/w/j/<epoch>/<seq>    a batch
//   /<cluster>/head                 the place of the last batch
//   /<cluster>/base                 the place of the first that is needed
//   /<cluster>/beat                 the heartbeat of an idle leader
//   /<cluster>/nodes/<node>         what each node says of itself
//
// Numbers are 16 hexadecimal digits, so that the order of the keys is that of the chain. Only `w/`
// is watched.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockd {

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

  const std::string leader;
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

}  // namespace lockd
