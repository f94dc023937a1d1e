// Imports a journal in files into etcd as the chain of a new cluster. Servers that are started
// afterwards have the journal's holds.
//
// The import puts the leader's key, as an elected server does; the revision is its epoch. Guarded
// by that key it puts the batches. Readers ignore them, because there is no head. With each batch
// it puts a base behind all of them: if the import crashes and a server starts a chain of its own,
// the readers of that chain skip them. One last transaction puts the base before the first batch
// and the head at the last one, and erases the leader's key. docs/high_availability.md proves this.
//
// Has no thread and never blocks: callbacks of the client update members, and turn() acts on them.
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
  std::string name;  // random and unique
  Fence fence_floor = 0;
  std::size_t batch_max = std::size_t{256} << 10;
  ClusterLog log = [](Severity, std::string_view) {};
};

class ChainImport {
 public:
  // Locks and reads the journal, and does not modify it. All references outlive the import. Throws
  // JournalError if the journal is missing, in use or damaged.
  ChainImport(etcd::Client& client, const Clock& clock, Storage& storage,
              ChainImportOptions options);

  // Takes the next step, and returns after how long to call again unless etcd answers before.
  Duration turn();
  // The chain is complete.
  bool is_done() const { return step_ == Step::done; }
  // Why the import failed; empty unless it did.
  const std::string& error() const { return error_; }
  const StateSummary& summary() const { return summary_; }

 private:
  enum class Step : std::uint8_t { look, claim, write, finish, done };

  void read_journal();
  Time journal_time();

  void send(Time now);
  etcd::Txn next_txn() const;
  void on_answer(const etcd::Answer& answer);
  void on_look(const etcd::Answer& answer);
  void on_finish(const etcd::Answer& answer);
  // The import's first batch, and the first place behind all of its batches.
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
  std::string last_error_;  // etcd's
  EtcdErrorLog errors_;

  LogScan scan_;
  HeldState state_;
  AppendBuffer buffer_;
  std::deque<Chunk> queue_;
  bool described_any_ = false;
  bool described_all_ = false;
  StateSummary summary_;

  Step step_ = Step::look;
  bool in_flight_ = false;
  Time last_answer_;
  Time next_try_{};
  bool claimed_ = false;            // a claim was sent
  etcd::Revision seen_leader_ = 0;  // put by an unfinished import; 0: there is none
  BatchId last_{};                  // the last batch prepared, ...
  std::string batch_;               // ... and its bytes
  std::string error_;
};

}  // namespace lockd
