// Term is one node's leadership for one epoch: it appends batches to the chain.
//
// An append is one transaction: if this node leads, and the head is the previous batch, put the
// batch and the new head. So etcd decides which node leads and the order of batches. One batch is
// in flight at a time, because etcd does not order concurrent ones; events that are appended
// meanwhile form the next batch. A batch without an answer is sent again, unchanged, until one of
// its tries is answered.
//
// Has no thread and never blocks: callbacks of the client update members, and turn() acts on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "journal/append_buffer.h"
#include "replication/replication_context.h"

namespace lockd {

// Makes the transactions of one term, which apply only while this node leads, and knows until when
// no other node can lead. It compares the leader's key by value and by revision, because an etcd
// that was emptied uses revisions again.
class LeaderGuard {
 public:
  // `leader` is the value of the leader's key, which was put at revision `epoch`.
  LeaderGuard(const EtcdKeys& keys, etcd::Revision epoch, std::string leader, Duration detect)
      : keys_(keys), epoch_(epoch), leader_(std::move(leader)), detect_(detect), revision_(epoch) {}

  etcd::Txn txn(std::vector<etcd::Operation> then) const {
    return {.compare = {{keys_.leader, epoch_}, {keys_.leader, leader_}},
            .then = std::move(then),
            .otherwise = {etcd::get(keys_.leader)}};
  }
  // Whether a guarded transaction was applied. Ends the term if the answer shows that it is over.
  bool check(const etcd::Answer& answer) {
    if (answer.status != etcd::Answer::Status::done) return false;
    if (answer.revision < epoch_) ended_ = etcd::kAnotherStore;
    if (!ended_.empty()) return false;
    revision_ = std::max(revision_, answer.revision);
    if (answer.succeeded) return true;
    const std::vector<etcd::Entry>& found = answer.found.front();
    const bool leads =
        !found.empty() && found.front().modified == epoch_ && found.front().value == leader_;
    if (!leads) ended_ = "another node leads";
    return false;
  }
  void end(const std::string& why) { ended_ = why; }

  // A write that was sent at `sent` was applied. No other node can lead for detect from then on:
  // the write changed what the others observe.
  void confirm(Time sent) { last_success_ = std::max(last_success_, sent); }
  Time last_success() const { return last_success_; }
  Time certain_until() const {
    return last_success_ == Time{} ? Time{} : last_success_ + detect_ * 4 / 5;
  }

  // Why this node does not lead any more, or must not; empty while it leads.
  const std::string& ended() const { return ended_; }
  etcd::Revision epoch() const { return epoch_; }
  // The latest known revision of etcd.
  etcd::Revision revision() const { return revision_; }
  Duration detect() const { return detect_; }

 private:
  const EtcdKeys& keys_;
  const etcd::Revision epoch_;
  const std::string leader_;
  const Duration detect_;
  std::string ended_;
  etcd::Revision revision_;
  Time last_success_{};
};

// Holds the next batch back for a moment, until as many appends wait as were just answered or
// waited before. Clients that were answered usually send their next request at once, and their
// events then go with this batch instead of the one after it. A single client is not delayed.
class BatchGathering {
 public:
  // A batch was appended, after `took`, while `waiting` other appends waited.
  void on_appended(Time now, Duration took, std::size_t waiting);
  bool update(Time now, std::size_t waiting) {
    return gathering_ = now < until_ && waiting < awaited_;
  }
  void on_batch(std::size_t appends) { last_batch_ = appends; }

  bool is_gathering() const { return gathering_; }
  // The number of appends for which it waits.
  std::size_t awaited() const { return gathering_ ? awaited_ : 1; }
  Time until() const { return gathering_ ? until_ : Time::never(); }

 private:
  std::size_t last_batch_ = 0;
  std::size_t awaited_ = 0;
  bool gathering_ = false;
  Time until_{};
};

// Shows the other nodes that a leader without appends is alive, and confirms its leadership.
class Heartbeat {
 public:
  Heartbeat(ReplicationContext& context, LeaderGuard& guard) : context_(context), guard_(guard) {}

  // The last batch in flight was sent at `batch_sent`; zero: there is none, or it was refused.
  Time turn(Time now, Time batch_sent, bool is_appending);

 private:
  void send(Time now);
  void on_answer(Time sent, const etcd::Answer& answer);

  ReplicationContext& context_;
  LeaderGuard& guard_;
  bool is_appending_ = false;
  Time last_sent_{};
  Time next_{};
};

class Term {
 public:
  // Continues the chain behind `last`, at `position`, with batches of `version`.
  Term(ReplicationContext& context, LeaderGuard guard, std::uint32_t version, const BatchId& last,
       Position position);

  // Sends the next batch from `pending`, unless that is null. Returns when to call again unless
  // etcd answers before.
  Time turn(Time now, AppendBuffer* pending);

  LeaderGuard& guard() { return guard_; }
  const LeaderGuard& guard() const { return guard_; }
  // The first batch, which has no events, is in the chain.
  bool has_begun() const { return committed_ > 0; }
  // No batch is in flight or waits.
  bool is_idle() const { return !is_sending() && !gathering_.is_gathering(); }
  // The number of waiting appends at which turn() would send them.
  std::size_t wanted() const;
  // The end of the chain, and its last batch.
  Position committed() const { return committed_; }
  BatchId last() const { return last_; }
  // The id of the next batch.
  BatchId next() const { return {static_cast<std::uint64_t>(guard_.epoch()), next_seq_}; }
  std::uint64_t sent_size() const { return sent_size_; }
  // etcd has no space.
  bool is_full() const { return full_; }

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

  bool is_sending() const { return append_.unsettled || !queue_.empty(); }
  void prepare(std::string bytes, Position position, Time now);
  void send(Time now);
  void on_answer(const BatchId& id, Time sent, const etcd::Answer& answer);
  void on_refusal(Time sent, const etcd::Answer& answer);
  void on_other_head(const std::string& head);
  void commit(Time sent);

  ReplicationContext& context_;
  LeaderGuard guard_;
  const std::uint32_t version_;
  Heartbeat heartbeat_{context_, guard_};
  BatchGathering gathering_;
  std::deque<Chunk> queue_;
  Append append_;
  bool just_committed_ = false;  // since the last turn
  BatchId last_;
  BatchId previous_;  // the last batch that is in the chain, or prepared
  std::uint64_t next_seq_ = 0;
  Position committed_ = 0;
  std::uint64_t sent_size_ = 0;
  bool full_ = false;
};

}  // namespace lockd
