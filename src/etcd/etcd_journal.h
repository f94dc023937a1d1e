// The journal that several servers share through etcd: what one acknowledges, the next to lead
// knows.
//
//   EtcdJournal journal({.etcd = {.endpoints = {"10.0.0.1:2379"}}, .replication = {...}});
//   Engine engine({.clock = &journal.clock(), .journal = &journal});
//
// The engine follows, and leads when this node is elected. When journal.state() is failed, it is
// over: both are taken down, and may be made anew. The journal outlives the engine.
//
// A ReplicatedJournal on a GrpcEtcd, and the thread that takes its turns.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "etcd/grpc_etcd.h"
#include "lockd/clock.h"
#include "lockd/journal.h"
#include "replication/cluster_journal.h"
#include "replication/replicated_journal.h"

namespace lockd {

struct EtcdJournalOptions {
  GrpcEtcdOptions etcd;
  // The same as they are later, with certificates and passwords that may have changed. May throw.
  std::function<GrpcEtcdOptions()> read_again{};
  ReplicatedJournalOptions replication;  // the incarnation and the seed are chosen here
};

class EtcdJournal final : public ClusterJournal {
 public:
  explicit EtcdJournal(EtcdJournalOptions options);
  // Hands over, if it leads.
  ~EtcdJournal() override;

  Clock& clock() const override;

  bool recover(const std::function<void(const Event&)>& apply) override;
  Position append(std::span<const Event> events) override;
  void commit(Position position) override;
  Position durable() const noexcept override;
  State state() const noexcept override;
  bool is_behind() const noexcept override;
  void attach(Source* source) override;

  void resign() override;
  bool transfer(const std::string& node) override;
  bool begin_snapshot() override;
  bool is_cut_off() const noexcept override;
  std::string reload() override;
  ClusterStatus status() const override;
  const ReplicationStats& stats() const override;

 private:
  class Impl;

  const std::unique_ptr<Impl> impl_;
};

}  // namespace lockd
