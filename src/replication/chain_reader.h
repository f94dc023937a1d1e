// ChainReader applies the entries of a chain in order, and checks that they form one chain: every
// batch names its predecessor and is applied only if that was applied last.
//
// A batch that does not follow the last one, or cannot be read, is unexpected: an operator may have
// put it there by hand, and then it is not part of the chain. While loading, a later batch that
// names it as its predecessor proves that it is part, and reaching the head proves the opposite.
// While watching, the Follower reads the head and calls resolve(). Reading fails if the batch is
// part of the chain.
//
// A pure state machine: the Follower passes what etcd returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "replication/replication_context.h"

namespace lockd {

// As of the last applied change.
struct ChainState {
  CurrentLeader leader{};
  std::string leader_text{};          // the value of the leader's key
  etcd::Revision leader_changed = 0;  // when that was put or erased
  std::string successor{};            // named by the last leader, while no node leads
  BatchId last_batch{};
  Position position = 0;
  etcd::Revision revision = 0;
  std::uint64_t size = 0;  // bytes of all batches applied
  // When the chain was loaded.
  etcd::StoreId store = 0;
  etcd::Revision base_revision = 0;
  BatchId base{};
  BatchId head{};
};

struct ChainFailure {
  std::string why{};        // empty: none
  bool unreadable = false;  // reading again fails too, until the chain or the program is replaced
  BatchId batch{};          // the batch that is unreadable or missing; none: another cause
};

class ChainReader {
 public:
  // Applies an event; false if it contradicts those before it.
  using Apply = std::function<bool(const Event&)>;

  struct UnexpectedBatch {
    etcd::Revision put_at = 0;
    BatchId id{};
    BatchId previous{};  // none: unreadable, or the first of the chain
    BatchId missing{};   // the batch that the chain lacks: this one, or its predecessor
    std::string why{};
    bool unreadable = false;
  };

  explicit ChainReader(ReplicationContext& context) : context_(context) {}

  // Begins to load the chain, with an answer that has its head and base.
  void begin(const etcd::Answer& answer, std::size_t head, std::size_t base);
  void apply(const etcd::Change& change, const Apply& apply);
  // All batches up to the head were applied. From now on the chain is watched.
  void finish_loading();
  // The batch that a watch delivered, and of which the head has to decide; null: none.
  const UnexpectedBatch* in_doubt() const {
    return loading_ || !unexpected_.has_value() ? nullptr : &*unexpected_;
  }
  void resolve(bool is_part);
  // Everything up to `revision` was received.
  void advance(etcd::Revision revision) { chain_.revision = std::max(chain_.revision, revision); }
  void fail(const std::string& why) { failure_.why = why; }

  const ChainState& chain() const { return chain_; }
  const ChainFailure& failure() const { return failure_; }
  bool has_failed() const { return !failure_.why.empty(); }

 private:
  void apply_leader(const etcd::Change& change);
  void apply_batch(const BatchId& id, const etcd::Entry& entry, const Apply& apply);
  void apply_events(const BatchId& id, Time made_at, std::string_view payload, const Apply& apply);
  UnexpectedBatch describe(const BatchId& id, const etcd::Entry& entry, bool is_readable,
                           const BatchHeader& header) const;
  void fail_unreadable(const std::string& why, const BatchId& batch);

  ReplicationContext& context_;
  ChainState chain_;
  ChainFailure failure_;
  std::optional<UnexpectedBatch> unexpected_;  // the first one behind the last batch
  bool loading_ = true;
};

}  // namespace lockd
