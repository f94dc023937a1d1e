#include "replication/replicated_journal.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "replication/cluster_journal.h"
#include "replication/records.h"

namespace lockd {

using etcd::Answer;
using Status = Answer::Status;

namespace {

constexpr std::uint64_t kJitterNs = 50'000'000;
constexpr int kObservationsBehindMax = 4;
// With default settings etcd's members need this long to elect a leader after one of them died, and
// no other node can lead before. Waiting clients stay connected for that, within a limit.
constexpr Duration kElectionAtEtcd = std::chrono::seconds(2);
constexpr Duration kBeyondDetectMax = std::chrono::milliseconds(800);
constexpr Duration kBetweenMeasures = std::chrono::seconds(10);
constexpr Duration kBetweenWarnings = std::chrono::minutes(10);
// The pause before an unreadable chain is read again; it doubles each time.
constexpr Duration kReadAgainMin = std::chrono::seconds(1);
constexpr Duration kReadAgainMax = std::chrono::minutes(1);

etcd::Operation get_key_only(const std::string& key) {
  etcd::Operation get = etcd::get(key);
  get.keys_only = true;
  return get;
}

// The leader's record has to contain the detect that the leader depends on.
ReplicatedJournalOptions with_whole_policy(ReplicatedJournalOptions options) {
  std::string& policy = options.self.policy;
  if (!policy.empty()) policy += ' ';
  policy += detect_setting(options.detect);
  return options;
}

}  // namespace

ReplicatedJournal::ReplicatedJournal(etcd::Client& client, const Clock& clock,
                                     ReplicatedJournalOptions options)
    : client_(client),
      clock_(clock),
      options_(with_whole_policy(std::move(options))),
      keys_(options_.cluster),
      stats_(options_.stats != nullptr ? *options_.stats : own_stats_),
      errors_(options_.log),
      timeouts_(options_.rpc, options_.detect),
      settings_(options_.self.policy),
      detect_(options_.detect),
      follower_(client, keys_,
                {.rpc = timeouts_.deadline(), .retry = options_.retry, .page = options_.page},
                stats_, errors_),
      detector_(options_.detect),
      membership_(client, keys_, timeouts_, options_.log),
      compaction_(client, keys_, timeouts_, stats_, options_.log),
      jitter_(options_.seed) {
  stats_.starts.add();
}

ReplicatedJournal::~ReplicatedJournal() = default;

Position ReplicatedJournal::append(std::span<const Event> events) {
  return pending_->append(events);
}

Position ReplicatedJournal::durable() const noexcept {
  return is_certain() ? committed_.load(std::memory_order_acquire) : 0;
}

bool ReplicatedJournal::is_certain() const noexcept {
  return clock_.now().ns < certain_until_ns_.load(std::memory_order_acquire);
}

Journal::State ReplicatedJournal::state() const noexcept {
  const State state = state_.load(std::memory_order_acquire);
  return state == State::accepting && pending_->is_crowded() ? State::full : state;
}

bool ReplicatedJournal::is_open_for_clients() const noexcept {
  const State state = state_.load(std::memory_order_acquire);
  return state == State::accepting || state == State::full;
}

bool ReplicatedJournal::is_behind() const noexcept {
  return is_open_for_clients() && pending_->is_behind();
}

bool ReplicatedJournal::is_cut_off() const noexcept {
  const std::uint64_t certain_until = certain_until_ns_.load(std::memory_order_acquire);
  const Duration detect = options_.detect;
  const Duration allowance = std::max(detect, std::min(kElectionAtEtcd, detect + kBeyondDetectMax));
  // It is certain for the first four fifths of detect.
  return certain_until != 0 && clock_.now() >= Time{certain_until} + allowance - detect * 4 / 5;
}

std::size_t ReplicatedJournal::waiting() const noexcept {
  return is_open_for_clients() ? pending_->count() : 0;
}

std::size_t ReplicatedJournal::wanted() const {
  return term_.has_value() ? term_->wanted() : std::numeric_limits<std::size_t>::max();
}

void ReplicatedJournal::attach(Source* source) {
  MutexLock lock(source_mutex_);
  source_ = source;
}

bool ReplicatedJournal::begin_snapshot() {
  if (!is_open_for_clients()) return false;
  snapshot_wanted_.store(true, std::memory_order_release);
  return true;
}

NodeRecord ReplicatedJournal::self() const {
  const ClusterStatus status{.detect = detect_,
                             .caught_up = has_caught_up(),
                             .lags_since = lags_since_,
                             .answered = answered(),
                             .unreadable = unreadable(),
                             .not_written = membership_.why_not_written()};
  const std::string_view why_not = why_not_ready(status, clock_.now());
  return {.node = options_.self.node,
          .address = options_.self.address,
          .leads = leads_,
          .applied = applied(),
          .behind = behind_,
          .program = options_.program,
          .not_ready = std::string(why_not),
          .incarnation = options_.self.incarnation};
}

// In a version that every known node can read.
LeaderRecord ReplicatedJournal::candidate() const {
  LeaderRecord record = options_.self;
  record.version = std::min(kChainVersion, membership_.version());
  return record;
}

BatchId ReplicatedJournal::base() const {
  return truncation_.has_value() ? truncation_->base() : std::max(seen_base_, follower_.base());
}

BatchId ReplicatedJournal::head() const {
  return std::max({seen_head_, follower_.head(), last_batch()});
}

Duration ReplicatedJournal::turn() {
  const Time now = clock_.now();
  Time next = Time::never();
  if (!term_.has_value() && resigns_.load(std::memory_order_acquire)) end("this server stops");
  if (over_.empty()) next = term_.has_value() ? lead(now) : follow(now);
  warn_if_slow(now);
  if (over_.empty()) next = std::min({next, membership_.turn(now, self()), measure_store(now)});
  notify_progress();
  if (next == Time::never()) return Duration::max();
  return next > now ? next - now : Duration::zero();
}

// --- Following, and standing for election. ---

Time ReplicatedJournal::follow(Time now) {
  Time next = Time::never();
  {
    MutexLock lock(source_mutex_);
    Source* const source = source_;
    if (source == nullptr) return next;
    next = follower_.turn(now, [&](const Event& event) { return source->apply(event); });
  }
  if (follower_.is_unreadable()) return wait_unreadable(now);
  if (!follower_.lost().empty()) end(follower_.lost());
  if (!over_.empty() || !follower_.is_current()) return next;

  const CurrentLeader& leader = follower_.leader();
  if (leader.epoch != 0 && leader.record.incarnation == options_.self.incarnation) {
    begin_term();
    return now;
  }
  if (is_refused_here()) return next;
  if (leader.epoch != 0 && leader.epoch != followed_) {
    log_leader(leader);
    follow_settings_of(leader);
  }
  note_lag(newest_, now);
  if (!std::exchange(rights_checked_, true)) {
    compaction_.check_rights(follower_.revision(), now);
  }
  observe(now);
  return std::min({next, next_observation(), stand_for_election(now)});
}

// The chain stays unreadable until an operator acts: a snapshot replaces the unreadable part.
Time ReplicatedJournal::wait_unreadable(Time now) {
  if (!reads_again_at_.has_value()) {
    stats_.unreadable.add();
    const std::uint32_t before = stats_.unreadable_in_a_row.fetch_add(1);
    const Duration pause = std::min(kReadAgainMin * (1 << std::min(before, 6U)), kReadAgainMax);
    reads_again_at_ = now + pause;
    using std::chrono::seconds;
    options_.log(Severity::error,
                 "cluster: " + follower_.lost() +
                     "; this server can neither follow nor lead, and reads it again in " +
                     std::to_string(std::chrono::duration_cast<seconds>(pause).count()) + " s");
  }
  observe(now);
  const BatchId batch = follower_.unreadable_batch();
  const bool is_needless = !batch.is_none() && seen_base_ > batch;
  if (is_needless) end("the unreadable part of the chain is needed no more");
  if (now >= *reads_again_at_) end("the unreadable chain is read again");
  return std::min(*reads_again_at_, next_observation());
}

// Another server has this one's address or name.
bool ReplicatedJournal::is_refused_here() {
  const std::string other = membership_.address_conflict(self());
  const auto conflict = membership_.name_conflict();
  if (other.empty() && !conflict.has_value()) return false;
  refused_ = true;
  if (!other.empty()) {
    end("another server, " + other + ", says that clients reach it at " + options_.self.address +
        ", as this one does (--advertise-addr)");
  } else {
    end("another server, which clients reach at " + conflict->address + ", is called " +
        options_.self.node + ", as this one is (--node-id, or else --advertise-addr)");
  }
  return true;
}

// The leader's settings are in force until another leads, also after it has died or handed over.
// The leader depends on it that no standby waits for less than its detect. The next observation is
// made at once, because it was scheduled by the detect of the last leader.
void ReplicatedJournal::follow_settings_of(const CurrentLeader& leader) {
  followed_ = leader.epoch;
  settings_ = leader.record.policy;
  detect_ = detect_in(settings_);
  detector_.use(detect_);
  timeouts_.use(detect_);
  next_observation_at_ = {};
  if (!shared_settings_in(settings_).has_value()) {
    options_.log(Severity::warning, "cluster: the settings of the leader, " + leader.record.node +
                                        ", are not understood: " + settings_);
  }
  const auto differing = differences(settings_, options_.self.policy);
  if (differing.empty()) return;
  options_.log(Severity::warning, "cluster: the settings of the leader, " + leader.record.node +
                                      ", are in force, and are others than those of this server: " +
                                      to_text(differing, "here"));
}

void ReplicatedJournal::log_leader(const CurrentLeader& leader) {
  options_.log(Severity::info, "cluster: follows " + leader.record.node + " at " +
                                   leader.record.address + ", epoch " +
                                   std::to_string(leader.epoch));
}

// The chain was at `newest` at the last observation.
void ReplicatedJournal::note_lag(etcd::Revision newest, Time now) {
  if (follower_.revision() >= newest_) {
    newest_ = newest;
    lags_since_.reset();
  }
  if (follower_.revision() < newest_ && !lags_since_.has_value()) lags_since_ = now;
}

// One observation is in flight at a time. A late answer still counts for the latency of etcd.
void ReplicatedJournal::observe(Time now) {
  if (observing_since_.has_value() && now >= *observing_since_ + detect_ / 2) {
    observing_since_.reset();
    detector_.reset();
    client_.switch_member();
  }
  if (observing_since_.has_value() || now < next_observation_at_) return;
  observing_since_ = now;
  next_observation_at_ = now + detect_ / 5;
  client_.execute({.then = {get_key_only(keys_.leader), etcd::get(keys_.head),
                            get_key_only(keys_.heartbeat), etcd::get(keys_.base)}},
                  timeouts_.deadline(),
                  [this, now, known = std::max(observed_revision_, follower_.revision())](
                      const Answer& answer) { on_observation(answer, now, known); });
}

// etcd's revision never decreases, whichever member answers: an answer is at least as new as what
// was known when the request was sent. And the watch delivers the puts of the leader's key in
// order.
bool ReplicatedJournal::is_of_another_store(const Answer& observed, etcd::Revision known) const {
  if (observed.store != follower_.store() || observed.revision < known) return true;
  if (follower_.is_unreadable()) return false;  // it may have missed a leader
  const etcd::Revision leader = observed.found[0].empty() ? 0 : observed.found[0].front().modified;
  return leader > follower_.leader_changed() && leader < follower_.revision();
}

void ReplicatedJournal::on_observation(const Answer& answer, Time asked, etcd::Revision known) {
  if (answer.status == Status::done) timeouts_.record(asked, clock_.now());
  if (observing_since_ != asked) return;
  observing_since_.reset();
  errors_.record(answer);
  if (answer.status != Status::done) return detector_.reset();
  if (is_of_another_store(answer, known)) return end(etcd::kAnotherStore);
  observed_revision_ = answer.revision;
  const auto modified = [&](std::size_t i) {
    return answer.found[i].empty() ? 0 : answer.found[i].front().modified;
  };
  const auto place = [&](std::size_t i) {
    const std::string text = answer.found[i].empty() ? "" : answer.found[i].front().value;
    return parse_batch_id(text).value_or(BatchId{});
  };
  seen_head_ = place(1);
  seen_base_ = place(3);
  if (follower_.is_unreadable()) return;
  const LeaderObservation observation{modified(0), modified(1), modified(2)};
  detector_.observe(observation, asked, clock_.now());
  const etcd::Revision last = std::max(observation.leader, observation.head);
  behind_ = static_cast<std::uint64_t>(std::max(last - follower_.revision(), etcd::Revision{0}));
  const bool has_heard = behind_ == 0 && observation.leader == follower_.leader().epoch;
  note_lag(last, clock_.now());
  if (has_heard) follower_.has_seen(answer.revision);
  if (has_heard && !std::exchange(caught_up_, true)) {
    stats_.unreadable_in_a_row = 0;
    options_.log(Severity::info,
                 "cluster: has caught up, at revision " + std::to_string(follower_.revision()));
  }
  observations_behind_ = has_heard ? 0 : observations_behind_ + 1;
  if (observations_behind_ < kObservationsBehindMax) return;
  observations_behind_ = 0;
  follower_.reopen_watch();
}

Time ReplicatedJournal::measure_store(Time now) {
  if (now < next_measure_) return next_measure_;
  next_measure_ = now + kBetweenMeasures;
  client_.measure(timeouts_.deadline(), [this](const etcd::StoreSize& size) {
    stats_.store_bytes = size.taken;
    stats_.store_bytes_needed = size.needed;
    stats_.store_quota_bytes = size.quota;
  });
  return next_measure_;
}

// A standby accepts answers within 0.5 detect. A leader is certain all the time if answers take no
// more than 0.6 detect.
void ReplicatedJournal::warn_if_slow(Time now) {
  const Duration takes = timeouts_.usual();
  if (takes <= detect_ * 2 / 5) return;
  if (slowness_logged_.has_value() && now < *slowness_logged_ + kBetweenWarnings) return;
  slowness_logged_ = now;
  using std::chrono::milliseconds;
  const auto in_ms = [](Duration time) {
    return std::to_string(std::chrono::duration_cast<milliseconds>(time).count()) + " ms";
  };
  options_.log(Severity::warning, "etcd: takes " + in_ms(takes) + " to answer, which a detect of " +
                                      in_ms(detect_) + " is too short for; it should be " +
                                      in_ms(takes * 5 / 2) + " or more, on all servers");
}

// Campaigns when no node leads or the followed leader is dead, after a short delay, so that nodes
// do not campaign at once and preferred ones are first. The watch shows the result.
Time ReplicatedJournal::stand_for_election(Time now) {
  const etcd::Revision epoch = follower_.leader().epoch;
  if (epoch != campaigned_in_) next_campaign_ = {};  // the last one has been decided
  std::optional<LeaderObservation> dead = detector_.dead();
  if (dead.has_value() && dead->leader != epoch) dead.reset();
  if (campaigning_ || (epoch != 0 && !dead.has_value())) {
    campaign_at_.reset();
    return Time::never();
  }
  if (!campaign_at_.has_value()) campaign_at_ = campaign_time(epoch, now);
  if (now < *campaign_at_) return *campaign_at_;
  campaign_at_.reset();
  next_campaign_ = now + detect_ / 2;
  campaigned_in_ = epoch;
  campaign(dead.value_or(LeaderObservation{}));
  return Time::never();
}

// The node that the last leader has named campaigns at once, the others after detect.
Time ReplicatedJournal::campaign_time(etcd::Revision epoch, Time now) {
  const Time soonest = std::max(next_campaign_, now);
  const std::string& successor = epoch == 0 ? follower_.successor() : std::string();
  if (successor == options_.self.node) return soonest;
  if (successor.empty()) {
    deferring_since_.reset();
  } else if (!deferring_since_.has_value()) {
    deferring_since_ = now;
  }
  jitter_ = jitter_ * 6364136223846793005 + 1442695040888963407;
  Time time = soonest + options_.ranks_below * (detect_ / 5);
  if (epoch != 0) time = time + Duration((jitter_ >> 33) % kJitterNs);
  if (deferring_since_.has_value()) time = std::max(time, *deferring_since_ + detect_);
  return time;
}

void ReplicatedJournal::campaign(const LeaderObservation& observation) {
  stats_.campaigns.add();
  campaigning_ = true;
  etcd::Txn txn{
      .compare = {{keys_.leader, observation.leader}},
      .then = {etcd::put(keys_.leader, to_text(candidate())), etcd::erase(keys_.successor)}};
  if (observation.leader != 0) {  // nothing has moved since it was found dead
    txn.compare.push_back({keys_.head, observation.head});
    txn.compare.push_back({keys_.heartbeat, observation.heartbeat});
  }
  client_.execute(txn, timeouts_.retry_after(), [this](const Answer& answer) {
    campaigning_ = false;
    if (answer.status != Status::done) errors_.record(answer);  // otherwise an observation logs it
  });
}

// The watch has delivered this node's election, and so everything before it.
void ReplicatedJournal::begin_term() {
  behind_ = 0;
  lags_since_.reset();
  observing_since_.reset();  // a late answer must not count
  follower_.stop();
  detect_ = options_.detect;
  timeouts_.use(detect_);
  term_.emplace(client_, keys_,
                TermOptions{.detect = detect_,
                            .retry = options_.retry,
                            .version = follower_.leader().record.version,
                            .leader = follower_.leader_text()},
                timeouts_, stats_, errors_, follower_.leader().epoch, follower_.last_batch(),
                follower_.position());
  truncation_.emplace(client_, keys_,
                      TruncationOptions{.retry = options_.retry,
                                        .batches_at_once = options_.erase_at_once,
                                        .revisions_max = options_.revisions_max},
                      timeouts_, compaction_, *term_, base(), follower_.base_revision());
  chain_size_ = follower_.size_followed();
}

// --- Leading. ---

Time ReplicatedJournal::lead(Time now) {
  if (!term_->ended().empty()) {
    end(term_->ended());
    return Time::never();
  }
  if (!leads_ && term_->has_begun()) open_for_clients();
  if (leads_ && pending_->size() > 2 * options_.pending_max) {
    end("more waits to be appended than can be kept");
    return Time::never();
  }
  if (leads_) {
    if (!is_to_hand_over()) write_snapshot();  // an unfinished snapshot is abandoned
    if (state_.load(std::memory_order_relaxed) != State::failed) {
      enter(term_->is_full() ? State::full : State::accepting);
    }
  }
  Time next = term_->turn(now, leads_ ? &*pending_ : nullptr);
  if (leads_) next = std::min(next, truncation_->turn(now));

  const Time certain_until = handing_over_ ? Time{} : term_->certain_until();
  if (leads_ && (certain_until.ns != certain_until_ns_.load(std::memory_order_relaxed) ||
                 term_->committed() != committed_.load(std::memory_order_relaxed))) {
    if (now >= certain_until) stats_.lapses.add();
    committed_.store(term_->committed(), std::memory_order_release);
    certain_until_ns_.store(certain_until.ns, std::memory_order_release);
    progress_ = true;
  }
  if (transfers_.load(std::memory_order_acquire)) check_successor(now);
  return is_to_hand_over() ? std::min(next, hand_over(now)) : next;
}

void ReplicatedJournal::open_for_clients() {
  MutexLock lock(source_mutex_);
  if (source_ == nullptr) return;
  stats_.terms.add();
  pending_.emplace(
      AppendBufferOptions{.size_max = options_.pending_max, .payload_max = options_.batch_max},
      term_->committed());
  // Holders could not renew for the last leader's detect or longer.
  source_->lead(term_->committed(), std::max(detect_, detect_in(settings_)));
  leads_ = true;
  options_.log(Severity::info, "cluster: this node leads, epoch " + std::to_string(term_->epoch()));
  const std::string before = std::exchange(settings_, options_.self.policy);
  const auto differing = differences(settings_, before);
  if (differing.empty()) return;
  options_.log(Severity::info, "cluster: the settings of this server are in force from now on: " +
                                   to_text(differing, "was"));
}

// The engine appends a description of its state, interleaved with other events. When all of it is
// in the chain, it replaces the batches before. A snapshot that is requested while another is
// written follows it, because that one may have begun too early.
void ReplicatedJournal::write_snapshot() {
  const std::uint64_t sent = term_->sent_size();
  const std::uint64_t size_max = std::max(options_.snapshot_after, 2 * snapshot_size_);
  const bool is_due =
      snapshot_wanted_.load(std::memory_order_acquire) || chain_size_ + sent > size_max;
  if (snapshot_ == Snapshot::none && truncation_->is_idle() && is_due) {
    snapshot_wanted_.store(false, std::memory_order_relaxed);
    snapshot_ = Snapshot::begun;
    snapshot_base_ = term_->next();
    snapshot_began_ = sent;
  }
  if (snapshot_ == Snapshot::begun || snapshot_ == Snapshot::goes_on) {
    MutexLock lock(source_mutex_);
    while (source_ != nullptr && snapshot_ != Snapshot::described &&
           pending_->size() < options_.describe_ahead) {
      const bool more = source_->describe_some(snapshot_ == Snapshot::begun);
      snapshot_ = more ? Snapshot::goes_on : Snapshot::described;
      snapshot_end_ = pending_->end();
    }
  }
  if (snapshot_ == Snapshot::described && term_->committed() >= snapshot_end_) {
    snapshot_ = Snapshot::none;
    snapshot_size_ = sent - snapshot_began_;
    chain_size_ = std::uint64_t{0} - snapshot_began_;  // wraps; sent_size() wraps it back
    truncation_->begin(snapshot_base_);
    stats_.snapshots.add();
  }
}

// --- The end. ---

void ReplicatedJournal::enter(State state) {
  if (state_.exchange(state, std::memory_order_acq_rel) != state) progress_ = true;
}

void ReplicatedJournal::end(const std::string& why) {
  if (!over_.empty()) return;
  over_ = why;
  Severity severity = Severity::warning;
  if (is_to_hand_over()) severity = Severity::info;
  if (refused_) severity = Severity::error;
  options_.log(severity, "cluster: " + why);
  follower_.stop();
  certain_until_ns_.store(0, std::memory_order_release);
  enter(State::failed);
  if (pending_.has_value()) pending_->discard();
}

void ReplicatedJournal::notify_progress() {
  if (!std::exchange(progress_, false)) return;
  MutexLock lock(source_mutex_);
  if (source_ != nullptr) source_->progressed();
}

}  // namespace lockd
