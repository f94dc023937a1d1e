// The journal that several servers share through etcd. It has no thread: its owner calls turn().
//
//   following ──elected──▶ elected ──first append──▶ leading ──deposed, hand-over──▶ over
//
// It follows the chain and applies the leader's events to its engine. When there is no leader, or
// the leader seems dead, it campaigns. Once elected, its first append proves that it has followed
// to the end of the chain; then its engine leads. When another node leads, or on any error, the
// journal is over, with the state `failed`. Its owner then makes a new journal and engine, which
// follow from the beginning. Nothing is resumed, because the engine may have state that never
// reached the chain.
//
// docs/high_availability.md has the protocol and why it is right. A simulation drives this on a
// ModelEtcd, and EtcdJournal by a thread on a GrpcEtcd.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "replication/cluster_journal.h"
#include "replication/compaction.h"
#include "replication/election.h"
#include "replication/follower.h"
#include "replication/hand_over.h"
#include "replication/leader_watch.h"
#include "replication/membership.h"
#include "replication/published_journal.h"
#include "replication/shared_settings.h"
#include "replication/snapshot_writer.h"

namespace lockd {

struct ReplicatedJournalOptions {
  std::string cluster;
  // The incarnation is this journal's alone; `policy` is what all should share but `detect`, which
  // is added to it.
  LeaderRecord self;
  std::string program{};                          // its release, for people
  Duration detect = std::chrono::seconds(2);      // while it leads; else the leader's is in force
  Duration rpc = std::chrono::milliseconds(500);  // least time before a call is sent again
  Duration retry = std::chrono::milliseconds(50);
  std::uint64_t seed = 0;  // of the small delays before a campaign
  int ranks_below = 0;     // the best: each delays campaigns
  ClusterLog log = [](Severity, std::string_view) {};
  std::shared_ptr<ReplicationStats> stats = std::make_shared<ReplicationStats>();

  std::size_t batch_max = std::size_t{256} << 10;
  // Nothing is granted beyond this size. Renewals may add as much again, then the journal is over.
  std::size_t pending_max = std::size_t{64} << 20;
  SnapshotOptions snapshots{};
  std::int64_t page = 64;  // batches in one answer
};

class ReplicatedJournal final : public PublishedJournal {
 public:
  // `client` and `clock` outlive it. The clock must not stand still while the process does.
  ReplicatedJournal(etcd::Client& client, const Clock& clock, ReplicatedJournalOptions options);

  // Any thread. Finishes the appends and erases the leader's key; then the journal is over.
  void resign() { hand_over_.resign(); }
  // Any thread. Hands over to `node`: the others defer to it for `detect`. Is cancelled if that
  // node's record says that it could not lead. Returns false if this node does not lead.
  bool transfer(const std::string& node);
  // Any thread. Appends a snapshot, and when it is complete moves the base to its beginning.
  // Returns false if this node does not lead.
  bool begin_snapshot();
  const ReplicationStats& stats() const { return context_.stats; }

  // Takes the next step. Returns after how long to call again unless etcd answers or wanted()
  // appends wait before.
  Duration turn();
  // The number of waiting appends that needs another turn.
  std::size_t wanted() const;
  // Why the journal is over; empty unless it is.
  const std::string& over() const { return status_.over; }
  bool is_leading() const { return phase_ == Phase::leading; }
  // The epoch of this node's term; 0 without one.
  etcd::Revision epoch() const { return term_.has_value() ? term_->guard().epoch() : 0; }
  // As of the last turn. Without `certain` and `not_ready`, which depend on the time.
  const ClusterStatus& status() const { return status_; }

 private:
  // `refused` is over as well: another server has this one's address or name, so a new journal
  // would end too.
  enum class Phase : std::uint8_t { following, elected, leading, over, refused };

  Time follow(Time now);
  bool has_conflict();
  void follow_settings(const CurrentLeader& leader);
  void begin_term();
  Time lead(Time now);
  void open_for_clients();
  Time end(const std::string& why, Phase phase = Phase::over);
  bool is_over() const { return phase_ == Phase::over || phase_ == Phase::refused; }
  void update_status();
  NodeRecord record() const;

  const ReplicatedJournalOptions options_;
  ReplicationContext context_;
  Phase phase_ = Phase::following;
  ClusterStatus status_;
  etcd::Revision settings_epoch_ = 0;  // of the leader whose settings are in force
  Follower follower_;
  LeaderWatch watch_;
  Membership membership_;
  Election election_;
  Compaction compaction_;
  EtcdMonitor monitor_;
  HandOver hand_over_;
  // From the election on.
  std::optional<Term> term_;
  std::optional<SnapshotWriter> snapshots_;
};

}  // namespace lockd
