#include "golden/golden.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "crash/process.h"
#include "replication/chain_copy.h"
#include "replication/shared_settings.h"

namespace lockd::golden {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kOneSecond = 1'000'000'000;

ReplicatedJournalOptions node_options(const std::string& name) {
  ReplicatedJournalOptions options;
  options.cluster = "golden";
  options.self = {
      .incarnation = "1-" + name, .node = name, .address = name + ":6388", .policy = "as=ever"};
  options.snapshots.after = 2048;
  return options;
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

crash::Files read_files(const std::string& directory) {
  crash::Files files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files[entry.path().filename()] = read_text(entry.path());
  }
  return files;
}

std::string text_of(const crash::Holds& holds, Time since) {
  std::string text;
  for (const auto& [key, held] : holds.all()) {
    text += crash::show(key) + ": " + held.owner + crash::show(held.client) + ", limit " +
            std::to_string(held.limit) +
            (held.first_limit == 0 ? "" : " (first " + std::to_string(held.first_limit) + ")") +
            (held.mode == Mode::shared ? ", shared" : "") +
            (held.permits == 1 ? "" : ", permits " + std::to_string(held.permits)) + ", ttl " +
            std::to_string(held.ttl.count()) + ", until " +
            std::to_string(held.expires_at.ns - since.ns) + "\n";
  }
  return text + "fences up to " + std::to_string(holds.largest_fence()) + "\n";
}

std::string held_in(const crash::Files& files) {
  crash::SimulatedDisk disk(files);
  crash::Process process(disk, {});
  return text_of(process.journal.describe(), process.clock.now());
}

std::string recover(const crash::Files& files) {
  crash::SimulatedDisk disk(files);
  disk.now.wall_ns += 3600 * kOneSecond;
  disk.now.boot_id = {9};
  crash::Process process(disk, {});
  return "engine time " + std::to_string(process.clock.now().ns) + "\n" +
         text_of(process.journal.describe(), Time{});
}

// A cluster.

Node::Node(etcd::ModelEtcd& etcd, const std::string& name) : Node(etcd, name, std::nullopt) {}

Node::Node(etcd::ModelEtcd& etcd, const std::string& name, std::optional<Time> stands_at)
    : etcd_(etcd),
      clock_(etcd),
      engine_clock_(etcd, stands_at),
      connection_(etcd.connect()),
      journal_(*connection_, clock_, node_options(name)),
      witness_(journal_, engine_clock_, nullptr),
      engine_({.shards = 2,
               .clock = &engine_clock_,
               .journal = &witness_,
               .sweeper = false,
               .hash_seed = 1}) {}

void Node::step() {
  etcd_.move_to(etcd_.now() + 1ms);
  connection_->deliver();
  journal_.turn();
}

// A leader whose settings say nothing of its detect is given the longest.
void Node::take_over() {
  for (const Time latest = etcd_.now() + 2 * kDetectMax; !journal_.is_leading();) {
    step();
    if (!journal_.over().empty()) throw std::runtime_error(journal_.over());
    if (etcd_.now() > latest) throw std::runtime_error("nobody leads");
  }
}

void Node::pass(Duration time) {
  for (const Time end = etcd_.now() + time; etcd_.now() < end;) step();
}

std::string Node::holds() { return text_of(witness_.describe(), engine_clock_.now()); }

void Node::resign() {
  journal_.resign();
  while (journal_.over().empty()) step();
}

std::string line_of(const etcd::Change& change) {
  std::string line = std::to_string(change.entry.modified) + " " + change.entry.key;
  if (!change.erased) line += " " + to_hex(change.entry.value);
  return line + "\n";
}

void replay_history(const std::string& lines, etcd::ModelStore& store) {
  etcd::Txn txn;
  etcd::Revision due = 0;
  const auto execute = [&] {
    if (due != 0 && store.execute(txn).revision != due) {
      throw std::runtime_error("a history with a gap before revision " + std::to_string(due));
    }
    txn = {};
  };
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    etcd::Revision revision = 0;
    std::string key;
    std::string value;
    words >> revision >> key;
    if (revision != due) execute();
    due = revision;
    txn.then.push_back(words >> value ? etcd::put(key, from_hex(value)) : etcd::erase(key));
  }
  execute();
}

std::string take_over(const std::string& lines) {
  etcd::ModelEtcd etcd(1, etcd::kNoFaults);
  etcd.move_to(Time{5'000'000'000});  // a machine of its own, with a clock of its own
  replay_history(lines, etcd.store);
  Node node = Node::of_no_time(etcd, "reader");
  node.take_over();
  return node.holds();
}

// Copies.

namespace {

// On a connection of its own, until it is done; throws with its error.
template <typename Copy>
void finish(etcd::ModelEtcd& etcd, etcd::ModelEtcd::Connection& connection, Copy& copy,
            const std::function<void()>& step) {
  while (!copy.is_done()) {
    copy.turn();
    if (!copy.error().empty()) throw std::runtime_error(copy.error());
    etcd.move_to(etcd.now() + 1ms);
    connection.deliver();
    step();
  }
}

}  // namespace

crash::Files export_chain(etcd::ModelEtcd& etcd) {
  const ManualClock clock;
  const auto connection = etcd.connect();
  ChainExport chain(*connection, clock, {.cluster = "golden"});
  finish(etcd, *connection, chain, [] {});
  crash::SimulatedDisk disk;
  chain.write(disk);
  return *disk.after_power_failure(crash::Survival::way(0));
}

void import_chain(etcd::ModelEtcd& etcd, const crash::Files& files,
                  const std::function<void()>& step) {
  crash::SimulatedDisk disk(files);
  import_chain(etcd, disk, step);
}

StateSummary import_chain(etcd::ModelEtcd& etcd, Storage& journal,
                          const std::function<void()>& step) {
  static int imports = 0;
  const ManualClock clock;
  const auto connection = etcd.connect();
  ChainImport chain(*connection, clock, journal,
                    {.cluster = "golden", .name = std::to_string(++imports), .batch_max = 2048});
  finish(etcd, *connection, chain, step);
  return chain.summary();
}

}  // namespace lockd::golden
