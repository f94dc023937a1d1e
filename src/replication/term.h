// Term is one node's leadership for one epoch: it appends batches to the chain.
//
// An append is one transaction: if the leader's key is as this epoch put it, and the head is the
// previous batch, put the batch and the new head. So etcd decides which node leads and the order of
// batches, and a batch that is sent several times is appended once. The leader's key is compared by
// value and by revision, because an etcd that was emptied uses revisions again. One batch is in
// flight at a time, because etcd does not order concurrent ones; events that are appended meanwhile
// form the next batch. A batch without an answer is sent again, unchanged, until one of its tries
// is answered.
//
// After an append the next batch is held back for a moment, until as many appends wait as were just
// answered or waited before. Clients that were answered usually send their next request at once,
// and their events then go with this batch instead of the one after it. A single client is not
// delayed.
//
// A leader that has sent nothing for a while puts a heartbeat, under the same guard, which shows
// the others that it is alive, and confirms its leadership.
//
// Has no thread and never blocks: callbacks of the client update members, and turn() acts on them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "journal/append_buffer.h"
#include "lockd/journal.h"
#include "replication/etcd_client.h"
#include "replication/records.h"
#include "replication/rpc_timeouts.h"
#include "replication/telemetry.h"

namespace lockd {

struct TermOptions {
  Duration detect{};
  Duration retry{};  // least time between two tries
  std::uint32_t version = kChainVersion;
  std::string leader{};  // the value of the leader's key, as it was put with this epoch
};

class Term {
 public:
  // Continues the chain behind `last`, at `position`. All references outlive it.
  Term(etcd::Client& client, const EtcdKeys& keys, const TermOptions& options,
       RpcTimeouts& timeouts, ReplicationStats& stats, EtcdErrorLog& errors, etcd::Revision epoch,
       const BatchId& last, Position position);

  // Sends the next batch from `pending`, unless that is null. Returns when to call again unless
  // etcd answers before.
  Time turn(Time now, AppendBuffer* pending);

  // Why this node does not lead any more, or must not; empty while it leads.
  const std::string& ended() const { return ended_; }
  // The first batch, which has no events, is in the chain.
  bool has_begun() const { return committed_ > 0; }
  // No batch is in flight or waits.
  bool is_idle() const { return !is_sending() && !gathering_; }
  // The number of waiting appends at which turn() would send them.
  std::size_t wanted() const;

  // The end of the chain.
  Position committed() const { return committed_; }
  // No other node leads before this time.
  Time certain_until() const;
  etcd::Revision epoch() const { return epoch_; }
  // The id of the next batch.
  BatchId next() const { return {static_cast<std::uint64_t>(epoch_), next_seq_}; }
  // The last that is in the chain.
  BatchId last() const { return last_; }
  std::uint64_t sent_size() const { return sent_size_; }
  // etcd has no space.
  bool is_full() const { return full_; }
  // The latest known revision of etcd.
  etcd::Revision revision() const { return revision_; }

  // A transaction that applies only while this node leads.
  etcd::Txn guarded(std::vector<etcd::Operation> then) const;
  // Whether a guarded transaction was applied. Ends the term if the answer shows that it is over.
  bool check_guard(const etcd::Answer& answer);

 private:
  struct Append {
    etcd::Txn txn{};
    BatchId id{};
    Position end = 0;
    bool unsettled = false;  // waits to be sent, or for its answer
    Time first_sent{};
    Time sent{};  // last
    Time next_try{};
    Time refused{};  // when the first refused try was sent; zero: none
  };

  bool is_appending() const { return append_.unsettled; }
  bool is_sending() const { return is_appending() || !queue_.empty(); }
  void prepare(std::string bytes, Position position, Time now);
  void send(Time now);
  void settle(const BatchId& id, Time sent, const etcd::Answer& answer);
  void handle_rejection(Time sent, const etcd::Answer& answer);
  void settle_not_succeeded(const etcd::Answer& answer);
  void commit_append();
  void heartbeat(Time now);
  void on_heartbeat(Time sent, const etcd::Answer& answer);
  void log_heartbeat_error(Time sent, const etcd::Answer& answer);
  Time heartbeat_due() const;
  void succeeded(Time sent);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const TermOptions options_;
  RpcTimeouts& timeouts_;
  ReplicationStats& stats_;
  EtcdErrorLog& errors_;
  const etcd::Revision epoch_;

  std::string ended_;
  BatchId last_;
  BatchId previous_;  // the last batch that is in the chain, or prepared
  std::uint64_t next_seq_ = 0;
  std::deque<Chunk> queue_;
  Append append_;
  bool just_committed_ = false;  // since the last turn
  std::size_t notified_ = 0;     // appends in the last batch
  std::size_t awaited_ = 0;      // for the next batch
  bool gathering_ = false;
  Time gather_until_{};
  Position committed_ = 0;
  std::uint64_t sent_size_ = 0;

  Time heartbeat_sent_{};
  Time next_heartbeat_{};
  Time last_heartbeat_{};  // when the last successful one was sent
  Time last_success_{};    // when the last successful call was sent
  Time answered_{};        // when the batch or heartbeat answered since the last turn was sent

  etcd::Revision revision_ = 0;
  bool full_ = false;
};

}  // namespace lockd
