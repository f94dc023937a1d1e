// The journal that several servers share through etcd. It has no thread: its owner calls turn().
//
// It first follows the chain and applies the leader's events to its engine. When there is no
// leader, or the leader seems dead, it campaigns. Once elected, its first append proves that it has
// followed to the end of the chain; then its engine leads, and its events are appended. When
// another node leads, or on any error, the journal is over, with the state `failed`. Its owner then
// makes a new journal and engine, which follow from the beginning. Nothing is resumed, because the
// engine may have state that never reached the chain.
//
// durable() is the end of the chain while no other node can lead, and 0 otherwise. So a process
// that was paused sends no answer before etcd has confirmed its leadership.
//
// docs/high_availability.md has the protocol and why it is right. A simulation drives this on a
// ModelEtcd, and EtcdJournal by a thread on a GrpcEtcd.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "journal/append_buffer.h"
#include "lockd/clock.h"
#include "lockd/journal.h"
#include "replication/compaction.h"
#include "replication/detector.h"
#include "replication/etcd_client.h"
#include "replication/follower.h"
#include "replication/membership.h"
#include "replication/records.h"
#include "replication/rpc_timeouts.h"
#include "replication/shared_settings.h"
#include "replication/telemetry.h"
#include "replication/term.h"
#include "replication/truncation.h"

namespace lockd {

struct ReplicatedJournalOptions {
  std::string cluster;
  // The incarnation is this journal's alone; `policy` is what all should share but `detect`, which
  // is added to it.
  LeaderRecord self;
  std::string program{};                          // its release, for people
  Duration detect = std::chrono::seconds(2);      // while it leads; else the leader's is in force
  Duration rpc = std::chrono::milliseconds(500);  // the least time that etcd is waited for
  Duration retry = std::chrono::milliseconds(50);
  std::uint64_t seed = 0;  // of the small delays before a campaign
  int ranks_below = 0;     // the best: for each it stands for election that much later
  ClusterLog log = [](Severity, std::string_view) {};
  ReplicationStats* stats = nullptr;  // outlives the journal, and others after it; null: its own

  std::size_t batch_max = std::size_t{256} << 10;
  // Nothing is granted beyond this size. Renewals may add as much again, then the journal is over.
  std::size_t pending_max = std::size_t{64} << 20;
  // A chain longer than this, and than twice the last snapshot, is replaced by a new snapshot.
  std::uint64_t snapshot_after = std::uint64_t{64} << 20;
  std::size_t describe_ahead = std::size_t{128} << 10;  // of a snapshot, in one turn
  std::int64_t page = 64;
  std::int64_t erase_at_once = 500;
  etcd::Revision revisions_max = 20'000;
};

class ReplicatedJournal final : public Journal {
 public:
  // `client` and `clock` outlive it. The clock must not stand still while the process does.
  ReplicatedJournal(etcd::Client& client, const Clock& clock, ReplicatedJournalOptions options);
  ~ReplicatedJournal() override;

  // The chain is followed instead.
  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override;
  void commit(Position) override {}
  Position durable() const noexcept override;
  State state() const noexcept override;
  bool is_behind() const noexcept override;
  void attach(Source* source) override EXCLUDES(source_mutex_);

  // It was certain to lead, and has not been for as long as it takes to be deposed. Any thread.
  bool is_cut_off() const noexcept;

  // It leads, and no other node can. Any thread.
  bool is_certain() const noexcept;

  // Takes the next step. Returns after how long to call again unless etcd answers or wanted()
  // appends wait before.
  Duration turn() EXCLUDES(source_mutex_);
  // How many appends wait to be sent. Any thread may ask.
  std::size_t waiting() const noexcept;

  // Hands over: finishes the appends and erases the leader's key. Then, or if it does not lead, the
  // journal is over. Any thread.
  void resign() { resigns_.store(true, std::memory_order_release); }

  // Hands over to `node`: the others defer to it for `detect`. Is cancelled if that node's record
  // says that it could not lead. Does nothing and returns false if this node does not lead. Any
  // thread.
  bool transfer(const std::string& node) EXCLUDES(successor_mutex_);
  // Appends a snapshot, and when it is complete moves base() to its beginning, behind the current
  // end. Does nothing and returns false if this node does not lead. Any thread.
  bool begin_snapshot();

  // Why the journal is over; empty unless it is. For the thread that calls turn(), as the rest.
  const std::string& over() const { return over_; }
  // A new journal would end for the same reason: another server has this one's address or name.
  bool is_refused() const { return refused_; }
  bool is_leading() const { return leads_; }
  // The number of waiting appends that needs another turn.
  std::size_t wanted() const;
  const CurrentLeader& leader() const { return follower_.leader(); }
  // The settings in force, which are the last leader's; and this node's own.
  const std::string& settings() const { return settings_; }
  const std::string& own_settings() const { return options_.self.policy; }
  Duration detect() const { return detect_; }
  // Position in the chain.
  Position applied() const {
    return term_.has_value() && term_->has_begun() ? term_->committed() : follower_.position();
  }
  // Changes at the last observation that the watch had not delivered.
  std::uint64_t behind() const { return behind_; }
  // It had applied the whole chain once; and since when it knows of a change that it has not
  // applied.
  bool has_caught_up() const { return leads_ || caught_up_; }
  std::optional<Time> lags_since() const { return lags_since_; }
  // Why the chain cannot be read. The journal waits for a while, and is over then.
  std::string unreadable() const { return follower_.is_unreadable() ? follower_.lost() : ""; }
  BatchId unreadable_batch() const { return follower_.unreadable_batch(); }
  // The time of etcd's last answer.
  Time answered() const { return timeouts_.last_answer(); }
  const Membership& membership() const { return membership_; }
  // The last batch applied or appended; and the ends of the chain at the last observation.
  BatchId last_batch() const { return term_.has_value() ? term_->last() : follower_.last_batch(); }
  BatchId base() const;
  BatchId head() const;
  // The revision of etcd at the last batch.
  etcd::Revision revision() const {
    return term_.has_value() ? term_->revision() : follower_.revision();
  }
  const ReplicationStats& stats() const { return stats_; }
  // The epoch of this node's term; 0 without one.
  etcd::Revision epoch() const { return term_.has_value() ? term_->epoch() : 0; }

 private:
  enum class Snapshot : std::uint8_t { none, begun, goes_on, described };

  bool is_open_for_clients() const noexcept;
  NodeRecord self() const;
  LeaderRecord candidate() const;

  Time follow(Time now);
  Time wait_unreadable(Time now);
  bool is_refused_here();
  void follow_settings_of(const CurrentLeader& leader);
  void log_leader(const CurrentLeader& leader);
  void note_lag(etcd::Revision newest, Time now);
  void observe(Time now);
  void on_observation(const etcd::Answer& answer, Time asked, etcd::Revision known);
  bool is_of_another_store(const etcd::Answer& observed, etcd::Revision known) const;
  Time next_observation() const {
    return observing_since_ ? *observing_since_ + detect_ / 2 : next_observation_at_;
  }
  Time measure_store(Time now);
  void warn_if_slow(Time now);
  Time stand_for_election(Time now);
  Time campaign_time(etcd::Revision epoch, Time now);
  void campaign(const LeaderObservation& observation);
  void begin_term();

  Time lead(Time now);
  void open_for_clients();
  void write_snapshot();
  Time hand_over(Time now);
  void check_successor(Time now) EXCLUDES(successor_mutex_);
  void cancel_transfer(const std::string& node, const std::string& why);
  void on_successor(const std::string& node, const etcd::Answer& answer) EXCLUDES(successor_mutex_);
  std::string successor() EXCLUDES(successor_mutex_);
  bool is_to_hand_over() const;

  void enter(State state);
  void end(const std::string& why);
  void notify_progress() EXCLUDES(source_mutex_);

  etcd::Client& client_;
  const Clock& clock_;
  const ReplicatedJournalOptions options_;
  const EtcdKeys keys_;
  ReplicationStats own_stats_;
  ReplicationStats& stats_;
  EtcdErrorLog errors_;
  RpcTimeouts timeouts_;  // only turn() uses it

  std::atomic<State> state_{State::following};
  std::atomic<Position> committed_{0};
  std::atomic<std::uint64_t> certain_until_ns_{0};
  std::atomic<bool> resigns_{false};
  std::atomic<bool> transfers_{false};
  std::atomic<bool> snapshot_wanted_{false};
  Mutex successor_mutex_;
  std::string successor_ GUARDED_BY(successor_mutex_);  // of a transfer
  // Made before the engine leads and appends.
  std::optional<AppendBuffer> pending_;

  // Only turn() uses the rest.
  std::string over_;
  bool refused_ = false;
  std::string settings_;
  Duration detect_;
  Follower follower_;
  Detector detector_;
  Membership membership_;
  Compaction compaction_;
  bool rights_checked_ = false;
  Time next_measure_{};
  std::uint64_t jitter_;
  std::optional<Time> observing_since_{};  // while a call is in flight
  Time next_observation_at_{};
  etcd::Revision observed_revision_ = 0;  // the newest revision observed
  std::optional<Time> slowness_logged_{};
  std::uint64_t behind_ = 0;
  etcd::Revision newest_ = 0;  // that it lags behind
  BatchId seen_base_{};
  BatchId seen_head_{};
  std::optional<Time> lags_since_{};
  bool caught_up_ = false;
  std::optional<Time> reads_again_at_{};
  etcd::Revision followed_ = 0;  // the epoch whose settings are in force
  int observations_behind_ = 0;  // consecutive observations that were ahead of the watch
  bool campaigning_ = false;
  Time next_campaign_{};
  etcd::Revision campaigned_in_ = 0;  // the epoch at the last campaign
  std::optional<Time> campaign_at_{};
  std::optional<Time> deferring_since_{};  // to a successor that the last leader has named

  std::optional<Term> term_;
  std::optional<Truncation> truncation_;
  bool leads_ = false;
  Snapshot snapshot_ = Snapshot::none;
  BatchId snapshot_base_{};
  Position snapshot_end_ = 0;
  std::uint64_t snapshot_began_ = 0;  // of the term's sent_size()
  std::uint64_t snapshot_size_ = 0;   // of the last one
  // Bytes since the base, less the term's sent_size(). At first all bytes that were followed, so a
  // node that followed for long writes its first snapshot soon.
  std::uint64_t chain_size_ = 0;
  bool checks_successor_ = false;  // a call is in flight
  Time next_successor_check_{};
  std::optional<Time> transfer_seen_at_{};  // when turn() first saw the request
  std::string ready_successor_;             // its record says that it could lead
  std::optional<Time> resigned_at_{};
  bool handing_over_ = false;
  bool etcd_is_full_ = false;
  int hand_over_tries_ = 0;
  Time next_hand_over_{};
  bool progress_ = false;

  Mutex source_mutex_;  // held during calls of the engine, so that detaching waits
  Source* source_ GUARDED_BY(source_mutex_) = nullptr;
};

}  // namespace lockd
