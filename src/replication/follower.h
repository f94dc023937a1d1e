// Follows the chain: loads what is there at one revision, then watches what comes.
//
// Completeness is checked, not assumed. What is loaded begins with the base and ends with the head;
// every batch names its predecessor, and is passed on only if that was the last. A batch that comes
// twice is passed over.
//
// What is found under the key of a batch and does not follow the last one, or cannot be read, is in
// doubt: somebody may have put it there by hand, and it is nothing of the chain's. While loading,
// the next that follows the last one shows that, and the end that it is not so. While watching, the
// head does: a leader puts it with every batch, at one revision. What is of the chain and does not
// fit ends the following for good: whoever follows begins anew, with an empty table. So does a
// revision that was compacted before it was read.
//
// Without a thread, and never waits: callbacks of the client's note down, turn() goes on.
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
  // Takes an event; false when it contradicts those before it.
  using Apply = std::function<bool(const Event&)>;

  // All outlive it.
  Follower(etcd::Client& client, const EtcdKeys& keys, const FollowerOptions& options,
           ReplicationStats& stats, EtcdErrorLog& errors);

  // Goes on with what there is to do, and passes on what has come. Returns when to call again
  // unless something is heard before.
  Time turn(Time now, const Apply& apply);
  // Nothing more is passed on.
  void stop();

  // It has come to where the watch began, and the watch is open.
  bool is_current() const { return stage_ == Stage::watching; }
  // Why it cannot go on; empty while it can.
  const std::string& lost() const { return lost_; }
  // It is lost for as long as what is there stays as it is, or this program does.
  bool is_unreadable() const { return unreadable_; }
  // By this batch, or because it is missing; none: by something else.
  BatchId unreadable_batch() const { return unreadable_batch_; }

  // etcd's last answer was that it may not be read.
  bool is_refused() const { return refused_; }

  // As far as it has come.
  const CurrentLeader& leader() const { return leader_; }
  // The value of its key.
  const std::string& leader_text() const { return leader_text_; }
  // While nobody leads: to whom the last leader has handed over; empty: to whoever comes first.
  const std::string& successor() const { return successor_; }
  BatchId last_batch() const { return last_batch_; }
  Position position() const { return position_; }
  etcd::Revision revision() const { return revision_; }
  // When the key of who leads was last heard to be put, or erased.
  etcd::Revision leader_changed() const { return leader_changed_; }
  // That of which the chain was loaded.
  etcd::StoreId store() const { return store_; }
  std::uint64_t size_followed() const { return size_; }
  etcd::Revision base_revision() const { return base_revision_; }
  // The ends of the chain as it was when it was loaded.
  BatchId base() const { return base_; }
  BatchId head() const { return head_; }

  // The watch tells too little: it is opened again.
  void watch_again() { must_watch_ = true; }
  // Up to there nothing was watched for that is not here: a watch that is opened again need not
  // begin earlier, where it may have been compacted.
  void has_seen(etcd::Revision revision) { revision_ = std::max(revision_, revision); }

 private:
  enum class Stage : std::uint8_t { begins, loads, watching, over };

  // What does not follow the last batch, or cannot be read.
  struct Misfit {
    etcd::Revision put_at = 0;
    BatchId id{};
    BatchId previous{};  // none: it cannot be read, or is the first of all
    BatchId missing{};   // what the chain lacks: itself, or one before it
    std::string why{};
    bool unreadable = false;
  };

  bool is_in_doubt() const { return stage_ == Stage::watching && misfit_.has_value(); }
  void ask_for_head_of_misfit();
  void take_head_of_misfit(const etcd::Answer& answer);
  void take_misfit(const Misfit& misfit);
  std::optional<Misfit> misfit_in(const BatchId& id, const etcd::Entry& entry, BatchHeader* header,
                                  std::string_view* payload) const;

  void ask_for_beginning();
  void take_beginning(const etcd::Answer& answer);
  void ask_for_page();
  void finish_loading();
  void take_page(const etcd::Answer& answer);
  bool is_done(const etcd::Answer& answer);
  void open_watch();
  void changed(const std::vector<etcd::Change>& changes) override;
  void ended(bool compacted, const std::string& why) override;

  void apply_heard(const Apply& apply);
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
  bool asking_ = false;     // an answer is on its way
  bool must_wait_ = false;  // the last one was none
  bool must_watch_ = false;
  Time next_try_{};

  // Loading.
  etcd::StoreId store_ = 0;
  etcd::Revision loads_at_ = 0;
  std::string next_key_;
  BatchId base_{};
  BatchId head_{};
  bool loaded_all_ = false;

  std::vector<etcd::Change> heard_;  // and not yet passed on
  std::optional<Misfit> misfit_;     // behind the last batch; the first
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
