// Follower loads the chain at one revision, then watches for new batches. On a failure, such as a
// revision that was compacted before it was read, the journal restarts with an empty table.
//
// Has no thread and never blocks: callbacks of the client update members, and turn() acts on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replication/chain_reader.h"
#include "replication/replication_context.h"

namespace lockd {

class Follower final : private etcd::Watcher {
 public:
  // `page` is the number of batches in one answer.
  Follower(ReplicationContext& context, std::int64_t page);

  // Applies the received changes and sends the next request. Returns when to call again unless etcd
  // answers before.
  Time turn(Time now, const ChainReader::Apply& apply);
  // Applies no further events.
  void stop();

  const ChainState& chain() const { return reader_.chain(); }
  const ChainFailure& failure() const { return reader_.failure(); }
  // The chain is loaded, and the watch is open.
  bool is_current() const { return stage_ == Stage::watching; }
  // etcd's last answer was that this node may not read the chain.
  bool is_refused() const { return refused_; }

  // Opens the watch again, because changes are missing.
  void reopen_watch() { must_watch_ = true; }
  // Everything up to `revision` was received. A reopened watch begins there, because earlier
  // revisions may be compacted.
  void advance(etcd::Revision revision) { reader_.advance(revision); }

 private:
  enum class Stage : std::uint8_t { begins, loads, watching, over };

  void request(const etcd::Txn& txn, void (Follower::*on_done)(const etcd::Answer&));
  void request_next();
  void on_beginning(const etcd::Answer& answer);
  void on_page(const etcd::Answer& answer);
  void on_head(const etcd::Answer& answer);
  void open_watch();
  void changed(const std::vector<etcd::Change>& changes) override;
  void ended(bool compacted, const std::string& why) override;
  void apply_pending(const ChainReader::Apply& apply);
  void fail(const std::string& why);

  ReplicationContext& context_;
  const std::int64_t page_;
  ChainReader reader_;

  Stage stage_ = Stage::begins;
  bool refused_ = false;
  Duration deadline_;
  bool in_flight_ = false;
  bool must_wait_ = false;  // the last call failed
  bool must_watch_ = false;
  Time next_try_{};

  etcd::Revision loads_at_ = 0;
  std::string next_key_;
  bool loaded_all_ = false;
  std::vector<etcd::Change> pending_;  // not applied yet
};

}  // namespace lockd
