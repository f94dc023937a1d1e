// The journal that several servers share through etcd, without a thread: somebody calls turn().
//
// First it follows, passing on to its engine what the leader appends; when there is no leader,
// or the leader seems gone, it stands for election; elected, it makes sure that it has followed to
// the very end, and its engine leads; from then on it appends. When another leads, or anything else
// comes in the way, it is over: the state is `failed`, and it says nothing any more. Whoever
// made it makes another, with a new engine, which follows from the beginning. Nothing is resumed:
// memory may hold what never came to be.
//
// durable() is what is in the chain, as long as nobody else can lead, and nothing otherwise. So a
// process that was stopped and goes on answers nobody until etcd has confirmed it.
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
#include "replication/patience.h"
#include "replication/records.h"
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
  // Nothing is granted beyond that. Renewals go on, up to twice as much: then it is over.
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

  // What is there is followed: nothing is recovered here.
  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override;
  void commit(Position) override {}
  Position durable() const noexcept override;
  State state() const noexcept override;
  bool is_behind() const noexcept override;
  void attach(Source* source) override EXCLUDES(source_mutex_);

  // It was certain to lead, and has not been for as long as it takes to be deposed, or longer. Any
  // thread.
  bool is_cut_off() const noexcept;

  // It leads, and nobody else can. Any thread.
  bool is_certain() const noexcept;

  // Does what there is to do, and returns how long it may be until the next, unless something is
  // heard or appended before.
  Duration turn() EXCLUDES(source_mutex_);
  // How many appends wait to be sent. Any thread may ask.
  std::size_t waiting() const noexcept;

  // Hands over: what was appended is finished, and the leader's key is taken away. Then, or if it
  // does not lead, it is over. Any thread.
  void resign() { resigns_.store(true, std::memory_order_release); }

  // The same, to this node: the others let it stand for election first, for as long as `detect`. It
  // goes on leading if that node says, when it is looked at once more, that it could not. False
  // when it does not lead: nothing is done. Any thread.
  bool transfer(const std::string& node) EXCLUDES(successor_mutex_);
  // Has a snapshot written into the chain that begins behind all that is there now. base() is
  // behind that when it is done. False when it does not lead: nothing is done. Any thread.
  bool begin_snapshot();

  // Why it is over; empty while it is not. For the thread that calls turn(), as the rest.
  const std::string& over() const { return over_; }
  // And another journal would end likewise: another server has its address, or its name.
  bool is_refused() const { return refused_; }
  bool is_leading() const { return leads_; }
  // How many appends have to wait before another turn is wanted for them.
  std::size_t wanted() const;
  const CurrentLeader& leader() const { return follower_.leader(); }
  // The settings that are in force: of the last that led, or its own; and its own.
  const std::string& settings() const { return settings_; }
  const std::string& own_settings() const { return options_.self.policy; }
  Duration detect() const { return detect_; }
  // How far along the chain it is.
  Position applied() const {
    return term_.has_value() && term_->has_begun() ? term_->committed() : follower_.position();
  }
  // Changes that etcd had when it was last looked at, and that the watch had not shown.
  std::uint64_t behind() const { return behind_; }
  // It had everything that etcd had, once; and since when it knows of something that it has not.
  bool has_caught_up() const { return leads_ || caught_up_; }
  std::optional<Time> lags_since() const { return lags_since_; }
  // What of the chain it cannot read: it waits for a while, and is over then.
  std::string unreadable() const { return follower_.is_unreadable() ? follower_.lost() : ""; }
  BatchId unreadable_batch() const { return follower_.unreadable_batch(); }
  // When etcd answered last.
  Time answered() const { return patience_.last(); }
  const Membership& membership() const { return membership_; }
  // The last that it has applied, or put; and the ends of the chain, as etcd had them when it was
  // last looked at.
  BatchId last_batch() const { return term_.has_value() ? term_->last() : follower_.last_batch(); }
  BatchId base() const;
  BatchId head() const;
  // Of the store, as far as it has come.
  etcd::Revision revision() const {
    return term_.has_value() ? term_->revision() : follower_.revision();
  }
  const ReplicationStats& stats() const { return stats_; }
  // Of the term, if it has one.
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
  void tell_whom_it_follows(const CurrentLeader& leader);
  void note_lag(etcd::Revision newest, Time now);
  void look(Time now);
  void take_look(const etcd::Answer& answer, Time asked, etcd::Revision known);
  bool is_of_another_store(const etcd::Answer& look, etcd::Revision known) const;
  Time next_look() const { return looks_since_ ? *looks_since_ + detect_ / 2 : next_look_; }
  Time measure_store(Time now);
  void tell_of_slowness(Time now);
  Time stand_for_election(Time now);
  Time campaign_time(etcd::Revision epoch, Time now);
  void campaign(const LeaderObservation& observation);
  void begin_term();

  Time lead(Time now);
  void open_for_clients();
  void write_snapshot();
  Time hand_over(Time now);
  void check_successor(Time now) EXCLUDES(successor_mutex_);
  void stay(const std::string& node, const std::string& why);
  void take_successor(const std::string& node, const etcd::Answer& answer)
      EXCLUDES(successor_mutex_);
  std::string successor() EXCLUDES(successor_mutex_);
  bool is_to_hand_over() const;

  void enter(State state);
  void end(const std::string& why);
  void tell_progress() EXCLUDES(source_mutex_);

  etcd::Client& client_;
  const Clock& clock_;
  const ReplicatedJournalOptions options_;
  const EtcdKeys keys_;
  ReplicationStats own_stats_;
  ReplicationStats& stats_;
  EtcdErrorLog errors_;
  Patience patience_;  // the turn's alone

  std::atomic<State> state_{State::following};
  std::atomic<Position> committed_{0};
  std::atomic<std::uint64_t> certain_until_ns_{0};
  std::atomic<bool> resigns_{false};
  std::atomic<bool> transfers_{false};
  std::atomic<bool> snapshot_wanted_{false};
  Mutex successor_mutex_;
  std::string successor_ GUARDED_BY(successor_mutex_);  // to whom it is to hand over
  // Made before the engine leads, which is before anything is appended.
  std::optional<AppendBuffer> pending_;

  // The turn's alone.
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
  std::uint64_t chance_;
  std::optional<Time> looks_since_{};  // while an answer is on its way
  Time next_look_{};
  etcd::Revision looked_at_ = 0;  // the newest at which a look found the store
  std::optional<Time> told_of_slowness_{};
  std::uint64_t behind_ = 0;
  etcd::Revision newest_ = 0;  // that it lags behind
  BatchId seen_base_{};
  BatchId seen_head_{};
  std::optional<Time> lags_since_{};
  bool caught_up_ = false;
  std::optional<Time> reads_again_at_{};
  etcd::Revision followed_ = 0;  // the epoch whose settings are in force
  int looks_behind_ = 0;         // in a row, at which the watch had not told all that was seen
  bool campaigning_ = false;
  Time next_campaign_{};
  etcd::Revision campaigned_in_ = 0;  // the epoch at the last campaign
  std::optional<Time> campaign_at_{};
  std::optional<Time> gives_way_since_{};  // to a successor that the last leader has named

  std::optional<Term> term_;
  std::optional<Truncation> truncation_;
  bool leads_ = false;
  Snapshot snapshot_ = Snapshot::none;
  BatchId snapshot_base_{};
  Position snapshot_end_ = 0;
  std::uint64_t snapshot_began_ = 0;  // of the term's sent_size()
  std::uint64_t snapshot_size_ = 0;   // of the last one
  // Since the base, less the term's sent_size(). At first, of all that was followed: who followed
  // for long makes its first snapshot soon.
  std::uint64_t chain_size_ = 0;
  bool checks_successor_ = false;  // an answer is on its way
  Time next_successor_check_{};
  std::optional<Time> asked_to_transfer_{};  // when that was first seen
  std::string fit_successor_;                // it could lead
  std::optional<Time> resigned_at_{};
  bool handing_over_ = false;
  bool etcd_is_full_ = false;
  int hand_over_tries_ = 0;
  Time next_hand_over_{};
  bool progress_ = false;

  Mutex source_mutex_;  // held while the engine is called, so that taking it back waits
  Source* source_ GUARDED_BY(source_mutex_) = nullptr;
};

}  // namespace lockd
