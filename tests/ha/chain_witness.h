// Sees every change at etcd when it is made, and knows nothing of the nodes: what the chain says,
// and whether it is one. Violations (see violation.h in crash/) that it finds by itself:
//
//   one-chain         each batch follows the last one, and is put once
//   deposed-is-final  no batch is put by a node whose epoch is over
//   lease-honoured    no lease is said to have run out before a client's belief in it
//   truth-is-kept     nothing that the chain needs is erased
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "crash/holds.h"
#include "lockd/journal.h"
#include "replication/etcd_client.h"
#include "replication/records.h"

namespace lockd::ha_test {

class ChainWitness {
 public:
  // `on_expired` is told when the chain says that a lease ran out.
  ChainWitness(const EtcdKeys& keys, std::function<void(const Event&)> on_expired)
      : keys_(keys), on_expired_(std::move(on_expired)) {}

  void see(const etcd::Change& change);

  // 0: nobody.
  etcd::Revision leader() const { return leader_; }
  BatchId head() const { return head_; }
  const crash::Holds& holds() const { return holds_; }
  // How far the batches of an epoch go.
  Position end_of_epoch(etcd::Revision epoch) const;

  std::uint64_t batches() const { return batches_; }
  std::uint64_t events() const { return events_; }
  std::uint64_t leaders() const { return leaders_; }

 private:
  void see_batch(const BatchId& id, const etcd::Change& change);

  const EtcdKeys& keys_;
  const std::function<void(const Event&)> on_expired_;
  etcd::Revision leader_ = 0;
  BatchId head_{};
  BatchId base_{};
  Position position_ = 0;
  crash::Holds holds_;
  std::map<etcd::Revision, Position> ends_;
  std::uint64_t batches_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t leaders_ = 0;
};

// What is held is the same, whatever is said of when leases end: each node has its own clock. Empty
// if so, else the first difference.
std::string difference(const crash::Holds& mine, const crash::Holds& expected);

}  // namespace lockd::ha_test
