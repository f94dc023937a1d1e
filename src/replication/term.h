// One node's leadership, of one epoch: batches that are appended to the chain one after another.
//
// An append is one transaction: if the leader's key is still as this epoch put it, and the head is
// the batch before, then the batch and the new head are put. So etcd decides both who leads and
// what follows what, and a batch that is sent any number of times is appended once. Of the leader's
// key the value is compared as well as the revision: an etcd that was emptied uses revisions again.
// One is on its way at a time, for etcd keeps no order between several; what is appended meanwhile
// makes the next one larger. A batch whose fate is unknown is sent again, as it is, for as long as
// it takes; the answer to any of its tries counts, however late.
//
// When a batch is in the chain, the next is held back until as many wait as were told now and
// waited already, for a moment at most: who is told asks for more at once, as a rule. Without it
// they would miss that batch, wait for it and then for their own, and have those of the next one
// miss theirs. One who is alone is never held back.
//
// A leader that has sent nothing for a while touches the heartbeat, under the same guard, so that
// others see that it is there, and it knows that it leads.
//
// Without a thread, and never waits: callbacks of the client's note down, turn() goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "journal/append_buffer.h"
#include "lockd/journal.h"
#include "replication/etcd_client.h"
#include "replication/patience.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

struct TermOptions {
  Duration detect{};
  Duration retry{};  // the least time between two tries
  std::uint32_t version = kChainVersion;
  std::string leader{};  // the value of the leader's key, as it was put with this epoch
};

class Term {
 public:
  // The chain is to go on from `last`, at `position`. All references outlive it.
  Term(etcd::Client& client, const EtcdKeys& keys, const TermOptions& options, Patience& patience,
       ReplicationStats& stats, EtcdErrorLog& errors, etcd::Revision epoch, const BatchId& last,
       Position position);

  // Sends what is to be sent: of `pending`, if there is one. Returns when to call again unless
  // something is heard before.
  Time turn(Time now, AppendBuffer* pending);

  // Not the leader any more, or never the right one: why. Empty while it leads.
  const std::string& ended() const { return ended_; }
  // The first batch, which has no events, is in the chain.
  bool has_begun() const { return committed_ > 0; }
  // Nothing is on its way, nor waits to be.
  bool is_idle() const { return !is_sending() && !gathering_; }
  // How many appends have to wait before turn() has something to do with them.
  std::size_t wanted() const;

  // Everything up to here is in the chain.
  Position committed() const { return committed_; }
  // Until then nobody else leads, by the clock that turn() is told.
  Time certain_until() const;
  etcd::Revision epoch() const { return epoch_; }
  // Of the next batch that is prepared.
  BatchId next() const { return {static_cast<std::uint64_t>(epoch_), next_seq_}; }
  // The last that is in the chain.
  BatchId last() const { return last_; }
  std::uint64_t sent_size() const { return sent_size_; }
  // etcd has no space.
  bool is_full() const { return full_; }
  // The latest that is known of.
  etcd::Revision revision() const { return revision_; }

  // Guarded by the epoch alone: for what is done beside the chain.
  etcd::Txn guarded(std::vector<etcd::Operation> then) const;
  // Whether it was done. If the answer says that the epoch is over, it is.
  bool take_guarded(const etcd::Answer& answer);

 private:
  struct Append {
    etcd::Txn txn{};
    BatchId id{};
    Position end = 0;
    bool unsettled = false;  // it is to be sent, or was, and its fate is unknown
    Time first_sent{};
    Time sent{};  // last
    Time next_try{};
    Time refused{};  // when the first try was sent that was; none: zero
  };

  bool is_appending() const { return append_.unsettled; }
  bool is_sending() const { return is_appending() || !queue_.empty(); }
  void prepare(std::string bytes, Position position, Time now);
  void send(Time now);
  void settle(const BatchId& id, Time sent, const etcd::Answer& answer);
  void take_refusal(Time sent, const etcd::Answer& answer);
  void settle_not_succeeded(const etcd::Answer& answer);
  void commit_append();
  void heartbeat(Time now);
  void take_heartbeat(Time sent, const etcd::Answer& answer);
  void tell_of_heartbeat(Time sent, const etcd::Answer& answer);
  Time heartbeat_due() const;
  void succeeded(Time sent);

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const TermOptions options_;
  Patience& patience_;
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
  std::size_t told_ = 0;         // appends that were taken last
  std::size_t awaited_ = 0;      // of the next ones
  bool gathering_ = false;
  Time gather_until_{};
  Position committed_ = 0;
  std::uint64_t sent_size_ = 0;

  Time heartbeat_sent_{};
  Time next_heartbeat_{};
  Time last_heartbeat_{};  // when the last that succeeded was sent
  Time last_success_{};    // when what succeeded was sent
  Time answered_{};        // when what was answered since the last turn was sent; none: zero

  etcd::Revision revision_ = 0;
  bool full_ = false;
};

}  // namespace lockd
