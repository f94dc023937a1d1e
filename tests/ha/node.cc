#include "ha/node.h"

#include <utility>

namespace lockd::ha_test {
namespace {

constexpr std::uint32_t kShards = 4;

// Small, so that snapshots, truncations and compactions are frequent.
ReplicatedJournalOptions options_of(const Node& node, const Node::Settings& settings) {
  ReplicatedJournalOptions options;
  options.cluster = "sim";
  options.self = {.incarnation = std::to_string(node.number) + "-" + std::to_string(node.lives),
                  .node = "node-" + std::to_string(node.number),
                  .address = "127.0.0.1:638" + std::to_string(node.number),
                  .policy = "max-locks=" + std::to_string(settings.keys_max)};
  options.detect = settings.detect;
  options.rpc = std::chrono::milliseconds(100);
  options.retry = std::chrono::milliseconds(10);
  options.seed = node.number * 1000 + node.lives;
  options.batch_max = 2048;
  options.snapshots.after = 40'000;
  options.snapshots.describe_ahead = 512;
  options.page = 7;
  options.snapshots.erase_at_once = 20;
  options.snapshots.revisions_max = 2000;
  return options;
}

}  // namespace

Node::Life::Life(etcd::ModelEtcd& etcd, NodeClock& clock, const ReplicatedJournalOptions& options,
                 std::uint64_t keys_max, std::uint64_t hash_seed, const Tamper& tamper)
    : client([&]() -> std::unique_ptr<etcd::Client> {
        auto made = etcd.connect();
        connection = made.get();
        if (tamper) return tamper(std::move(made));
        return made;
      }()),
      journal(*client, clock, options),
      witnessed(journal, clock, nullptr),
      engine({.shards = kShards,
              .keys_max = keys_max,
              .clock = &clock,
              .journal = &witnessed,
              .sweeper = false,
              .hash_seed = hash_seed}) {
  SessionId last = hash_seed << 32;
  for (Session& session : sessions) session.id = ++last;
}

Node::Node(std::uint64_t n, etcd::ModelEtcd& model, Tamper tamper)
    : number(n), etcd(model), clock(model, std::chrono::hours(n)), tamper_(std::move(tamper)) {}

void Node::start(const Settings& settings) {
  ++lives;
  life = std::make_unique<Life>(etcd, clock, options_of(*this, settings), settings.keys_max,
                                number * 100'000 + lives, tamper_);
}

void Node::run() {
  if (!is_up()) return;
  life->connection->deliver();
  life->journal.turn();
  life->engine.sweep();
  const Position durable = life->witnessed.durable();
  auto& replies = life->replies;
  std::size_t told = 0;
  while (told < replies.size() && replies[told].rests_on <= durable) replies[told++].tell();
  replies.erase(replies.begin(), replies.begin() + static_cast<std::ptrdiff_t>(told));
  if (!life->journal.over().empty()) kill();
}

void Node::kill() {
  if (life == nullptr) return;
  const ReplicationStats& stats = life->journal.stats();
  terms += stats.terms.value();
  snapshots += stats.snapshots.value();
  resends += stats.resends.value();
  resolved += stats.resolved.value();
  lapses += stats.lapses.value();
  repeated += stats.batches_repeated.value();
  compactions += stats.compactions.value();
  life.reset();
}

}  // namespace lockd::ha_test
