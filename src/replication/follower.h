// Follower loads the chain at one revision, then watches for new batches.
//
// It checks completeness. A loaded chain begins with the base and ends with the head. Every batch
// names its predecessor and is applied only if that was applied last. A repeated batch is skipped.
//
// A batch that does not follow the last one, or cannot be read, is unexpected: an operator may have
// put it there by hand, and then it is not part of the chain. While loading, a later batch that
// follows the last one proves that; the end of the chain proves the opposite. While watching, the
// head decides: a leader puts it together with each batch, at one revision. If the unexpected batch
// is part of the chain, the follower has failed, and the journal restarts with an empty table. A
// revision that was compacted before it was read has the same result.
//
// Has no thread and never blocks: callbacks of the client update members, and turn() acts on them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/journal.h"
#include "replication/etcd_client.h"
#include "replication/records.h"
#include "replication/telemetry.h"

namespace lockd {

struct FollowerOptions {
  Duration rpc{};          // how long an answer may take; more, once it has taken longer
  Duration retry{};        // how long to wait after a failure
  std::int64_t page = 64;  // batches in one answer
};

class Follower final : private etcd::Watcher {
 public:
  // Applies an event; false if it contradicts those before it.
  using Apply = std::function<bool(const Event&)>;

  // All references outlive it.
  Follower(etcd::Client& client, const EtcdKeys& keys, const FollowerOptions& options,
           ReplicationStats& stats, EtcdErrorLog& errors);

  // Applies the received changes and sends the next request. Returns when to call again unless etcd
  // answers before.
  Time turn(Time now, const Apply& apply);
  // Applies no further events.
  void stop();

  // The chain is loaded, and the watch is open.
  bool is_current() const { return stage_ == Stage::watching; }
  // Why following has failed; empty unless it has.
  const std::string& lost() const { return lost_; }
  // A new follower would fail too, unless the chain or this program is replaced.
  bool is_unreadable() const { return unreadable_; }
  // The batch that is unreadable or missing; none: the cause is not a batch.
  BatchId unreadable_batch() const { return unreadable_batch_; }

  // etcd's last answer was that this node may not read the chain.
  bool is_refused() const { return refused_; }

  // As of the last applied change.
  const CurrentLeader& leader() const { return leader_; }
  // The value of its key.
  const std::string& leader_text() const { return leader_text_; }
  // While no node leads: the node that the last leader has named as the next; empty: none.
  const std::string& successor() const { return successor_; }
  BatchId last_batch() const { return last_batch_; }
  Position position() const { return position_; }
  etcd::Revision revision() const { return revision_; }
  // The revision at which the leader's key was last put or erased.
  etcd::Revision leader_changed() const { return leader_changed_; }
  // The store from which the chain was loaded.
  etcd::StoreId store() const { return store_; }
  std::uint64_t size_followed() const { return size_; }
  etcd::Revision base_revision() const { return base_revision_; }
  // The ends of the chain when it was loaded.
  BatchId base() const { return base_; }
  BatchId head() const { return head_; }

  // Opens the watch again, because changes are missing.
  void reopen_watch() { must_watch_ = true; }
  // Everything up to `revision` was received. A reopened watch begins there, because earlier
  // revisions may be compacted.
  void has_seen(etcd::Revision revision) { revision_ = std::max(revision_, revision); }

 private:
  enum class Stage : std::uint8_t { begins, loads, watching, over };

  // A batch that does not follow the last one, or cannot be read.
  struct UnexpectedBatch {
    etcd::Revision put_at = 0;
    BatchId id{};
    BatchId previous{};  // none: unreadable, or the first of the chain
    BatchId missing{};   // the batch that the chain lacks: this one, or its predecessor
    std::string why{};
    bool unreadable = false;
  };

  bool is_in_doubt() const { return stage_ == Stage::watching && unexpected_.has_value(); }
  void request_head();
  void on_head(const etcd::Answer& answer);
  void on_unexpected(const UnexpectedBatch& unexpected);
  std::optional<UnexpectedBatch> check_batch(const BatchId& id, const etcd::Entry& entry,
                                             BatchHeader* header, std::string_view* payload) const;

  void request_beginning();
  void on_beginning(const etcd::Answer& answer);
  void request_page();
  void finish_loading();
  void on_page(const etcd::Answer& answer);
  bool is_done(const etcd::Answer& answer);
  void open_watch();
  void changed(const std::vector<etcd::Change>& changes) override;
  void ended(bool compacted, const std::string& why) override;

  void apply_pending(const Apply& apply);
  void apply_change(const etcd::Change& change, const Apply& apply);
  void apply_leader(const etcd::Change& change);
  void apply_successor(const etcd::Change& change);
  void apply_batch(const BatchId& id, const etcd::Entry& entry, const Apply& apply);
  void apply_events(const BatchId& id, const BatchHeader& header, std::string_view payload,
                    const Apply& apply);
  void lose(const std::string& why);
  void lose_unreadable(const std::string& why, const BatchId& batch = {});

  etcd::Client& client_;
  const EtcdKeys& keys_;
  const FollowerOptions options_;
  ReplicationStats& stats_;
  EtcdErrorLog& errors_;

  Stage stage_ = Stage::begins;
  std::string lost_;
  bool unreadable_ = false;
  BatchId unreadable_batch_{};
  bool refused_ = false;
  Duration rpc_;
  bool asking_ = false;     // a call is in flight
  bool must_wait_ = false;  // the last call failed
  bool must_watch_ = false;
  Time next_try_{};

  // Loading.
  etcd::StoreId store_ = 0;
  etcd::Revision loads_at_ = 0;
  std::string next_key_;
  BatchId base_{};
  BatchId head_{};
  bool loaded_all_ = false;

  std::vector<etcd::Change> pending_;          // not applied yet
  std::optional<UnexpectedBatch> unexpected_;  // the first one behind the last batch
  CurrentLeader leader_;
  std::string leader_text_;
  etcd::Revision leader_changed_ = 0;  // put, or erased
  std::string successor_;
  BatchId last_batch_{};
  Position position_ = 0;
  etcd::Revision revision_ = 0;
  etcd::Revision base_revision_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace lockd
