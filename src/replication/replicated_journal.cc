#include "replication/replicated_journal.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockd {
namespace {

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
    : PublishedJournal(clock, options.detect,
                       {.size_max = options.pending_max, .payload_max = options.batch_max}),
      options_(with_whole_policy(std::move(options))),
      context_{.client = client,
               .keys = EtcdKeys(options_.cluster),
               .timeouts = {options_.rpc, options_.detect},
               .retry = options_.retry,
               .stats = *options_.stats,
               .log = options_.log},
      follower_(context_, options_.page),
      watch_(context_, clock, follower_),
      membership_(context_),
      election_(context_, options_.self, membership_, options_.ranks_below, options_.seed),
      compaction_(context_),
      monitor_(context_),
      hand_over_(context_) {
  context_.stats.starts.add();
  status_.settings = status_.own_settings = options_.self.policy;
}

bool ReplicatedJournal::transfer(const std::string& node) {
  if (!is_open()) return false;
  hand_over_.transfer(node);
  return true;
}

bool ReplicatedJournal::begin_snapshot() {
  if (!is_open()) return false;
  snapshots_->request();
  return true;
}

std::size_t ReplicatedJournal::wanted() const {
  return term_.has_value() ? term_->wanted() : std::numeric_limits<std::size_t>::max();
}

Duration ReplicatedJournal::turn() {
  const Time now = clock_.now();
  Time next = Time::never();
  if (!is_over() && !term_.has_value() && hand_over_.resigns()) end("this server stops");
  if (!is_over()) next = term_.has_value() ? lead(now) : follow(now);
  update_status();
  if (!is_over()) next = std::min({next, membership_.turn(now, record()), monitor_.turn(now)});
  notify_progress();
  if (is_over()) return Duration::zero();  // the owner has to see it at once
  if (next == Time::never()) return Duration::max();
  return next > now ? next - now : Duration::zero();
}

void ReplicatedJournal::update_status() {
  const ChainState& chain = follower_.chain();
  const ChainFailure& failure = follower_.failure();
  const ChainLag& lag = watch_.lag();
  status_.leads = is_leading();
  status_.leader = chain.leader;
  status_.detect = context_.timeouts.detect();
  status_.applied = term_ && term_->has_begun() ? term_->committed() : chain.position;
  status_.last_batch = term_ ? term_->last() : chain.last_batch;
  status_.revision = term_ ? term_->guard().revision() : chain.revision;
  status_.base = snapshots_ ? snapshots_->base() : std::max(lag.base, chain.base);
  status_.head = std::max({lag.head, chain.head, status_.last_batch});
  status_.behind = lag.behind;
  status_.caught_up = is_leading() || lag.caught_up;
  status_.lags_since = lag.since;
  status_.answered = context_.timeouts.last_answer();
  status_.unreadable = failure.unreadable ? failure.why : "";
  status_.unreadable_batch = failure.batch;
  status_.not_written = membership_.why_not_written();
  const std::uint64_t answers = membership_.answers();
  if (std::exchange(status_.members_answer, answers) != answers) {
    status_.members = membership_.members();
  }
}

NodeRecord ReplicatedJournal::record() const {
  return {.node = options_.self.node,
          .address = options_.self.address,
          .leads = status_.leads,
          .applied = status_.applied,
          .behind = status_.behind,
          .program = options_.program,
          .not_ready = std::string(why_not_ready(status_, clock_.now())),
          .incarnation = options_.self.incarnation};
}

// --- Following ---

Time ReplicatedJournal::follow(Time now) {
  if (!watch_.over().empty()) return end(watch_.over());
  Time next = Time::never();
  const bool is_attached = with_source([&](Source& source) {
    next = follower_.turn(now, [&](const Event& event) { return source.apply(event); });
  });
  if (!is_attached) return next;
  const ChainFailure& failure = follower_.failure();
  if (failure.unreadable) {
    next = watch_.turn_unreadable(now);
    return watch_.over().empty() ? next : end(watch_.over());
  }
  if (!failure.why.empty()) return end(failure.why);
  if (!follower_.is_current()) return next;

  const ChainState& chain = follower_.chain();
  if (chain.leader.epoch != 0 && chain.leader.record.incarnation == options_.self.incarnation) {
    begin_term();
    return now;
  }
  if (has_conflict()) return next;
  if (chain.leader.epoch != 0 && chain.leader.epoch != settings_epoch_) {
    follow_settings(chain.leader);
  }
  compaction_.check_rights(chain.revision, now);
  next = std::min(next, watch_.turn(now));
  return std::min(next, election_.turn(now, chain, watch_.dead()));
}

// Ends the journal if another server has this one's address or name.
bool ReplicatedJournal::has_conflict() {
  const std::string other = membership_.address_conflict(record());
  const auto conflict = membership_.name_conflict();
  if (!other.empty()) {
    end("another server, " + other + ", says that clients reach it at " + options_.self.address +
            ", as this one does (--advertise-addr)",
        Phase::refused);
  } else if (conflict.has_value()) {
    end("another server, which clients reach at " + conflict->address + ", is called " +
            options_.self.node + ", as this one is (--node-id, or else --advertise-addr)",
        Phase::refused);
  }
  return is_over();
}

// The leader's settings are in force until another leads, also after it has died or handed over.
// The leader depends on it that no standby waits for less than its detect.
void ReplicatedJournal::follow_settings(const CurrentLeader& leader) {
  const LeaderRecord& record = leader.record;
  context_.log(Severity::info, "cluster: follows " + record.node + " at " + record.address +
                                   ", epoch " + std::to_string(leader.epoch));
  settings_epoch_ = leader.epoch;
  status_.settings = record.policy;
  context_.timeouts.set_detect(detect_in(record.policy));
  watch_.restart();
  const std::string settings_of = "cluster: the settings of the leader, " + record.node + ", are ";
  if (!shared_settings_in(record.policy).has_value()) {
    context_.log(Severity::warning, settings_of + "not understood: " + record.policy);
  }
  const auto differing = differences(record.policy, options_.self.policy);
  if (differing.empty()) return;
  context_.log(Severity::warning, settings_of +
                                      "in force, and are others than those of this server: " +
                                      to_text(differing, "here"));
}

// The watch has delivered this node's election, and so everything before it.
void ReplicatedJournal::begin_term() {
  phase_ = Phase::elected;
  watch_.stop();
  follower_.stop();
  context_.timeouts.set_detect(options_.detect);
  const ChainState& chain = follower_.chain();
  term_.emplace(context_,
                LeaderGuard(context_.keys, chain.leader.epoch, chain.leader_text, options_.detect),
                chain.leader.record.version, chain.last_batch, chain.position);
  snapshots_.emplace(context_, options_.snapshots, compaction_, *term_,
                     std::max(watch_.lag().base, chain.base), chain.base_revision, chain.size);
}

// --- Leading ---

Time ReplicatedJournal::lead(Time now) {
  LeaderGuard& guard = term_->guard();
  if (!hand_over_.outcome().empty()) return end(hand_over_.outcome());
  if (!guard.ended().empty()) return end(guard.ended());
  if (!is_leading() && term_->has_begun()) open_for_clients();
  if (is_leading()) {
    if (pending()->size() > 2 * options_.pending_max) {
      return end("more waits to be appended than can be kept");
    }
    if (!hand_over_.is_active()) snapshots_->turn(*this);  // an unfinished snapshot is abandoned
    enter(term_->is_full() ? State::full : State::accepting);
  }
  Time next = term_->turn(now, pending());
  bool is_idle = true;
  if (is_leading()) {
    next = std::min(next, snapshots_->truncate(now));
    const Time certain_until = hand_over_.is_erasing() ? Time{} : guard.certain_until();
    const bool is_change = publish(term_->committed(), certain_until);
    if (is_change && now >= certain_until) context_.stats.lapses.add();
    is_idle = term_->is_idle() && pending()->size() == 0;
  }
  next = std::min(next, hand_over_.turn(now, guard, *this, is_idle));
  return hand_over_.outcome().empty() ? next : end(hand_over_.outcome());
}

void ReplicatedJournal::open_for_clients() {
  const bool is_attached = with_source([&](Source& source) {
    open(term_->committed());
    // Holders could not renew for the last leader's detect or longer.
    source.lead(term_->committed(), std::max(options_.detect, detect_in(status_.settings)));
  });
  if (!is_attached) return;
  phase_ = Phase::leading;
  context_.stats.terms.add();
  context_.log(Severity::info,
               "cluster: this node leads, epoch " + std::to_string(term_->guard().epoch()));
  const std::string before = std::exchange(status_.settings, options_.self.policy);
  const auto differing = differences(status_.settings, before);
  if (differing.empty()) return;
  context_.log(Severity::info, "cluster: the settings of this server are in force from now on: " +
                                   to_text(differing, "was"));
}

Time ReplicatedJournal::end(const std::string& why, Phase phase) {
  phase_ = phase;
  status_.over = why;
  status_.refused = phase == Phase::refused;
  Severity severity = hand_over_.is_active() ? Severity::info : Severity::warning;
  if (status_.refused) severity = Severity::error;
  context_.log(severity, "cluster: " + why);
  follower_.stop();
  close();
  return Time::never();
}

}  // namespace lockd
