#include "ha/cluster_world.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <ostream>
#include <utility>

#include "crash/violation.h"

namespace lockd::ha_test {
namespace {

using crash::HoldKey;
using crash::violated;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Key {
  Kind kind;
  std::string name;
  std::uint32_t limit;
};

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> made = {{Kind::semaphore, "k-1", 1},
                             {Kind::semaphore, "pool", 3},
                             {Kind::semaphore, "pool/" + std::string(100, 'z'), 2},
                             {Kind::lock, "jobs/" + std::string(200, 'y'), 1}};
    for (int i = 0; i < 12; ++i) made.push_back({Kind::lock, "k-" + std::to_string(i), 1});
    return made;
  }();
  return all;
}

}  // namespace

ClusterWorld::ClusterWorld(const WorldOptions& options)
    : options_(options),
      chance_(options.seed),
      etcd_(options.seed * 77 + 1, options.faults),
      keys_("sim"),
      witness_(keys_, [this](const Event& event) { beliefs_.check_expired(event, now()); }) {
  etcd_.store.on_change = [this](const etcd::Change& change) { witness_.see(change); };
  etcd_.move_to(Time{1'000'000'000});
  for (std::uint64_t n = 1; n <= kNodes; ++n) {
    nodes_.push_back(
        std::make_unique<Node>(n, etcd_, options.tamper ? options.tamper(n) : Tamper{}));
  }
}

ClusterWorld::~ClusterWorld() {
  waits_.clear();  // what is settled from now on is nobody's
}

WorldStats ClusterWorld::run() {
  next_trouble_ = now() + milliseconds(500);
  while (stats_.operations < options_.operations) step();
  come_to_rest();
  for (const auto& node : nodes_) {
    node->kill();
    stats_.terms += node->terms;
    stats_.snapshots += node->snapshots;
    stats_.resends += node->resends;
    stats_.resolved += node->resolved;
    stats_.lapses += node->lapses;
    stats_.repeated += node->repeated;
    stats_.compactions += node->compactions;
  }
  stats_.leaders = witness_.leaders();
  stats_.batches = witness_.batches();
  stats_.events = witness_.events();
  return stats_;
}

void ClusterWorld::step() {
  etcd_.move_to(now() + microseconds(chance_.below(2000)));
  if (options_.trouble && now() >= next_trouble_) make_trouble();
  for (const auto& node : nodes_) {
    if (node->life == nullptr && now() >= node->stopped_until) node->start(settings());
    node->run();
  }
  Node& node = node_to_ask();
  if (node.is_up()) act(node);
  if (chance_.percent(2)) compare_with_chain(*nodes_[chance_.below(kNodes)]);
  if (!violation_.empty()) throw crash::Violation(violation_);
}

Node::Settings ClusterWorld::settings() {
  if (options_.detect_max <= options_.detect) return {.detect = options_.detect};
  const auto more = static_cast<std::uint64_t>((options_.detect_max - options_.detect).count());
  return {.detect = options_.detect + Duration(chance_.below(more)),
          .keys_max = chance_.between(keys().size() / 3, keys().size())};
}

// Mostly the leader's.
Node& ClusterWorld::node_to_ask() {
  if (chance_.percent(92)) {
    for (const auto& node : nodes_) {
      if (node->is_up() && node->life->journal.is_leading()) return *node;
    }
  }
  return *nodes_[chance_.below(kNodes)];
}

void ClusterWorld::make_trouble() {
  next_trouble_ = now() + milliseconds(chance_.between(20, 800));
  Node& random = *nodes_[chance_.below(kNodes)];
  Node& node = chance_.percent(60) ? node_to_ask() : random;
  const std::uint64_t what = chance_.below(100);
  if (what < 30) {
    ++stats_.kills;
    node.kill();
    node.stopped_until = now() + milliseconds(chance_.between(1, 1000));
  } else if (what < 65) {
    ++stats_.stops;
    node.stopped_until = now() + milliseconds(chance_.between(1, 1500));
  } else if (what < 80) {
    hand_over(node);
  } else if (what < 95) {
    ++stats_.outages;
    etcd_.fail_until(now() + milliseconds(chance_.between(1, 1200)));
  } else if (what < 98) {
    etcd_.store.full = !etcd_.store.full;
  } else if (node.is_up()) {
    node.life->journal.begin_snapshot();
  }
  if (etcd_.store.full && chance_.percent(70)) etcd_.store.full = false;
}

// To anybody, or to one in particular, who may be dead, or itself.
void ClusterWorld::hand_over(Node& node) {
  const std::string to = "node-" + std::to_string(chance_.between(1, kNodes));
  const bool names = chance_.percent(50);
  if (!node.is_up()) return;
  ReplicatedJournal& journal = node.life->journal;
  if (!names) {
    ++stats_.hand_overs;
    journal.resign();
  } else {
    stats_.transfers += journal.transfer(to);
  }
}

// --- What clients do: one batch. ---

void ClusterWorld::act(Node& node) {
  Batch batch(node.life->engine);
  for (std::uint64_t left = chance_.between(1, 12); left > 0; --left) {
    ++stats_.operations;
    const std::uint64_t what = chance_.below(100);
    if (what < 50) {
      acquire(node, batch);
    } else if (what < 75) {
      renew(node, batch);
    } else if (what < 80) {  // few enough for most leases to see other leaders
      release(node, batch);
    } else if (what < 95) {
      read(node, batch);
    } else if (what < 98) {
      cancel(node, batch);
    } else {
      end_session(node, batch);
    }
  }
  const Position rests_on = batch.commit();
  for (auto& tell : std::exchange(answers_, {})) {
    node.life->replies.push_back({rests_on, [this, &node, rests_on, tell = std::move(tell)] {
                                    check_answerer(node, rests_on);
                                    ++stats_.told;
                                    tell();
                                  }});
  }
}

void ClusterWorld::answer(Node& node, Outcome outcome, std::function<void()> tell) {
  if (outcome == Outcome::not_leader) {
    ++stats_.not_leader;
    if (node.life->journal.is_leading()) violated("answers-lead", "a leader says that it is none");
    return;
  }
  if (outcome == Outcome::storage) return;
  answers_.push_back(std::move(tell));
}

// Whoever tells anything leads now, and what it rests on is in the chain.
void ClusterWorld::check_answerer(const Node& node, Position rests_on) const {
  const etcd::Revision epoch = node.life->journal.epoch();
  if (epoch == 0 || epoch != witness_.leader()) {
    violated("answers-lead", "node " + std::to_string(node.number) + " of epoch " +
                                 std::to_string(epoch) + " tells, in the epoch " +
                                 std::to_string(witness_.leader()));
  }
  if (rests_on == 0 || rests_on > witness_.end_of_epoch(epoch)) {
    violated("answers-lead", "told what rests on " + std::to_string(rests_on) +
                                 "; the chain ends at " +
                                 std::to_string(witness_.end_of_epoch(epoch)));
  }
}

void ClusterWorld::acquire(Node& node, Batch& batch) {
  const Key& key = keys()[chance_.below(keys().size())];
  HoldKey hold{key.kind, key.name, 0};
  const std::string name = "cart-" + std::to_string(chance_.below(8));
  Session* const session =
      chance_.percent(40) ? &node.life->sessions[chance_.below(Node::kSessions)] : nullptr;
  const Holder holder = session != nullptr ? Holder(session, chance_.next()) : Holder(name);
  const std::string owner = crash::owner_of(holder);
  const SessionId of = session == nullptr ? 0 : session->id;
  const bool waits = session != nullptr && chance_.percent(60);
  if (beliefs_.lets_run(key.kind, key.name, owner, chance_, now())) return;

  const std::uint64_t id = ++last_wait_;
  const Duration ttl = milliseconds(chance_.between(5, 1500));
  const AcquireRequest request{.keys = KeyItem(key.name, key.kind, Mode::exclusive, key.limit),
                               .holder = holder,
                               .ttl = ttl,
                               .wait = waits ? milliseconds(chance_.between(5, 400)) : Duration{}};
  const std::uint64_t asked = beliefs_.asks(key.kind, key.name, owner, now() + ttl);
  const Answer got = batch.acquire(request, waits ? this : nullptr, id);
  if (got.outcome == Outcome::queued) {
    waits_[id] = {&node, node.lives, hold, owner, of, key.limit, asked, got.wait};
    return;
  }
  const Time until = node.clock.in_world(got.grant.expires_at);
  hold.fence = got.grant.fence;
  answer(node, got.outcome, [=, this, &node, limit = key.limit, ok = got.outcome == Outcome::ok] {
    if (ok && is_alive(node, of)) {
      beliefs_.told_grant(hold, {owner, of, until, got.grant.ttl}, asked, limit, now());
    }
  });
}

bool ClusterWorld::is_alive(const Node& node, SessionId session) {
  const auto& sessions = node.life->sessions;
  return session == 0 || std::any_of(sessions.begin(), sessions.end(),
                                     [&](const Session& s) { return s.id == session; });
}

void ClusterWorld::renew(Node& node, Batch& batch) {
  const auto* const picked = beliefs_.pick(chance_, now());
  if (picked == nullptr) return;
  const HoldKey key = picked->first;
  const std::string owner = picked->second.owner;
  std::optional<Duration> ttl;
  if (chance_.percent(50)) ttl = milliseconds(chance_.between(5, 1500));
  // Some outlast a failover, and what was granted.
  if (ttl.has_value() && *ttl % milliseconds(4) == Duration{}) *ttl *= 20;
  const std::uint64_t asked =
      beliefs_.asks(key.kind, key.key, owner, now() + ttl.value_or(picked->second.ttl));
  const Answer got =
      batch.renew({KeyItem(key.key, key.kind), crash::holder_of(owner), key.fence}, ttl);
  const Time until = node.clock.in_world(got.grant.expires_at);
  answer(node, got.outcome, [=, this, ok = got.outcome == Outcome::ok] {
    if (ok) beliefs_.told_renewal(key, until, asked);
  });
}

void ClusterWorld::release(Node& node, Batch& batch) {
  const auto* const picked = beliefs_.pick(chance_, now());
  if (picked == nullptr) return;
  const HoldKey key = picked->first;
  const std::string owner = picked->second.owner;
  const KeyItem item(key.key, key.kind);
  const Outcome outcome = batch.release({item, crash::holder_of(owner), key.fence}).outcome;
  if (outcome == Outcome::not_leader) return answer(node, outcome, {});
  beliefs_.gives_up(key);
  answer(node, outcome, [] {});
}

void ClusterWorld::read(Node& node, Batch& batch) {
  const Key& key = keys()[chance_.below(keys().size())];
  if (node.life->journal.state() == Journal::State::following) return;
  if (key.kind != Kind::lock) return;
  const Fence at_least = beliefs_.largest(key.kind, key.name);
  const FenceStatus status = batch.fence(key.name);
  answer(node, Outcome::ok, [=, this, name = key.name] {
    beliefs_.told_fence(Kind::lock, name, status.fence, at_least);
  });
}

void ClusterWorld::cancel(Node& node, Batch& batch) {
  if (waits_.empty()) return;
  const auto wait = std::next(waits_.begin(), static_cast<int>(chance_.below(waits_.size())));
  if (wait->second.node != &node || wait->second.life != node.lives) return;
  batch.cancel(wait->second.id);
}

void ClusterWorld::end_session(Node& node, Batch& batch) {
  Session& session = node.life->sessions[chance_.below(Node::kSessions)];
  beliefs_.session_ends(session.id);
  std::erase_if(waits_, [&](const auto& wait) { return wait.second.session == session.id; });
  batch.end_session(session);
  session = {.id = session.id + Node::kSessions};
}

// The engine says so when it is durable: told, then and there.
void ClusterWorld::on_wait_done(const WaitResult& result) noexcept {
  const auto found = waits_.find(result.id);
  if (found == waits_.end()) return;
  Wait wait = std::move(found->second);
  waits_.erase(found);
  if (wait.node->life == nullptr || wait.life != wait.node->lives) return;  // it is dying
  if (result.outcome != Outcome::ok) return;
  ++stats_.settled;
  wait.key.fence = result.grant.fence;
  try {
    check_answerer(*wait.node, 1);
    const Time until = wait.node->clock.in_world(result.grant.expires_at);
    beliefs_.told_grant(wait.key, {wait.owner, wait.session, until, result.grant.ttl}, wait.asked,
                        wait.limit, now());
  } catch (const crash::Violation& violation) {
    violation_ = violation.what();
  }
}

// --- Nodes and the chain. ---

void ClusterWorld::compare_with_chain(Node& node) {
  if (!node.is_up() || node.life->journal.state() != Journal::State::following) return;
  if (node.life->journal.status().last_batch != witness_.head()) return;
  ++stats_.compared;
  const std::string differs = difference(node.life->witnessed.describe(), witness_.holds());
  if (differs.empty()) return;
  violated("replay-equals", "node " + std::to_string(node.number) + ": " + differs);
}

// Without any more trouble a leader is found, it serves, and the others hold what it says.
void ClusterWorld::come_to_rest() {
  etcd_.store.full = false;
  next_trouble_ = Time::never();
  for (const auto& node : nodes_) node->stopped_until = std::min(node->stopped_until, now());
  const std::uint64_t told = stats_.told;
  const Duration patience = 40 * std::max(options_.detect, options_.detect_max);
  const Time deadline = now() + patience;
  while (stats_.told < told + 100) {
    if (now() >= deadline) violated("somebody-leads", "and nobody does");
    step();
  }
  const std::uint64_t compared = stats_.compared;
  while (stats_.compared < compared + 5) {
    if (now() >= deadline + patience) violated("replay-equals", "nobody catches up");
    step();
  }
}

WorldStats& WorldStats::operator+=(const WorldStats& more) {
  operations += more.operations;
  told += more.told;
  settled += more.settled;
  not_leader += more.not_leader;
  kills += more.kills;
  stops += more.stops;
  hand_overs += more.hand_overs;
  transfers += more.transfers;
  outages += more.outages;
  compared += more.compared;
  leaders += more.leaders;
  batches += more.batches;
  events += more.events;
  terms += more.terms;
  snapshots += more.snapshots;
  resends += more.resends;
  resolved += more.resolved;
  lapses += more.lapses;
  repeated += more.repeated;
  compactions += more.compactions;
  return *this;
}

std::ostream& operator<<(std::ostream& out, const WorldStats& f) {
  return out << f.operations << " operations, " << f.told << " told, " << f.settled
             << " waits granted, " << f.not_leader << " asked of a follower; " << f.leaders
             << " leaders elected, " << f.terms << " terms; " << f.kills << " kills, " << f.stops
             << " stops, " << f.hand_overs << " hand-overs, " << f.transfers << " transfers, "
             << f.outages << " outages; " << f.batches << " batches, " << f.events << " events, "
             << f.resends << " resends, " << f.resolved << " resolved, " << f.lapses << " lapses, "
             << f.repeated << " repeated by the watch; " << f.snapshots << " snapshots, "
             << f.compactions << " compactions, " << f.compared << " comparisons with the chain";
}

}  // namespace lockd::ha_test
