// Makes a cluster's chain of a journal in files, where there is none: so that servers that are
// started afterwards hold what the journal says.
//
// It takes the leader's key, as if it were elected: the revision is its epoch. Under the guard of
// that it puts the batches, which nobody takes for a chain, since there is no head; with each of
// them a base behind them all, so that nobody who begins a chain of its own after a crash reads
// them. At last, in one transaction, it puts the base where they begin and the head where they end,
// and gives the leader's key away. docs/high_availability.md has why that is right.
//
// Without a thread, and never waits: callbacks of the client's note down, turn() goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "journal/append_buffer.h"
#include "journal/recovery.h"
#include "journal/storage.h"
#include "lockd/clock.h"
#include "replication/etcd_client.h"
#include "replication/held_state.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

struct ChainImportOptions {
  std::string cluster;
  std::string name;  // of this import alone; random
  Fence fence_floor = 0;
  std::size_t batch_max = std::size_t{256} << 10;
  ClusterLog log = [](Severity, std::string_view) {};
};

class ChainImport {
 public:
  // Reads the journal, and changes nothing in it. `client`, `clock` and `storage`, which it locks,
  // outlive it. Throws JournalError when there is none, it is in use, or damaged.
  ChainImport(etcd::Client& client, const Clock& clock, Storage& storage,
              ChainImportOptions options);

  // Does what there is to do, and returns how long it may be until the next, unless something is
  // heard before.
  Duration turn();
  // The chain is there.
  bool is_done() const { return step_ == Step::done; }
  // Why it cannot be made; empty while it can.
  const std::string& error() const { return error_; }
  const StateSummary& summary() const { return summary_; }

 private:
  enum class Step : std::uint8_t { look, claim, write, finish, done };

  void read_journal();
  Time journal_time();

  void send(Time now);
  etcd::Txn next_txn() const;
  void take(const etcd::Answer& answer);
  void take_look(const etcd::Answer& answer);
  void take_finish(const etcd::Answer& answer);
  // Of its own batches; and of any that follow in later epochs.
  BatchId first() const { return {last_.epoch, 0}; }
  BatchId behind_all() const { return {last_.epoch + 1, 0}; }
  void begin_epoch(etcd::Revision epoch);
  void prepare_batch();
  void describe_more();
  void fail(const std::string& why) { error_ = why; }
  void fail_overtaken();

  etcd::Client& client_;
  const Clock& clock_;
  Storage& storage_;
  const ChainImportOptions options_;
  const EtcdKeys keys_;
  const LeaderRecord self_;
  std::string complaint_;  // of etcd, the last
  EtcdErrorLog errors_;

  LogScan scan_;
  HeldState state_;
  AppendBuffer buffer_;
  std::deque<Chunk> queue_;
  bool described_any_ = false;
  bool described_all_ = false;
  StateSummary summary_;

  Step step_ = Step::look;
  bool on_its_way_ = false;
  Time heard_;  // of etcd, last
  Time next_try_{};
  bool claimed_ = false;            // or tried to
  etcd::Revision seen_leader_ = 0;  // of an import that did not come to its end; 0: none
  BatchId last_{};                  // that was prepared
  std::string batch_;               // that one
  std::string error_;
};

}  // namespace lockd
