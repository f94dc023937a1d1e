// Journals and chains that released versions wrote, kept as they were: tests/golden/<version>/.
//
//   journal/         a run that was killed: a sealed segment with a snapshot, a later one that is
//                    not sealed, half a frame at its end
//   journal-stopped/ a run with a sync interval that was stopped
//   chain.txt        the history of a cluster in etcd: two leaders, the second killed
//   *.holds.txt      what is held when each is taken up again, and what the fences have come to
//
// write_golden makes such a directory; golden_test has every later version start from each of them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crash/simulated_disk.h"
#include "crash/witnessed_journal.h"
#include "lockd/engine.h"
#include "replication/chain_copy.h"
#include "replication/replicated_journal.h"
#include "replication/testing/model_etcd.h"

namespace lockd::golden {

std::string read_text(const std::string& path);
// Of a directory; throws if there is none.
crash::Files read_files(const std::string& directory);

// What a server holds that starts from these files, on another boot of the machine an hour after
// the first of them was made.
std::string recover(const crash::Files& files);

// What a server holds that starts from these files while no time passes. Deadlines count from then.
std::string held_in(const crash::Files& files);
// What is held, a line each, and what the fences have come to. Deadlines count from `since`.
std::string text_of(const crash::Holds& holds, Time since);

// One server of a cluster on a model of etcd.
class Node {
 public:
  Node(etcd::ModelEtcd& etcd, const std::string& name);
  // Its engine's time stands still: of leases no more passes than the history says.
  static Node of_no_time(etcd::ModelEtcd& etcd, const std::string& name) {
    return {etcd, name, etcd.now()};
  }

  // Lets a millisecond pass.
  void step();
  // Steps until it leads; throws if it takes more than a minute.
  void take_over();
  void pass(Duration time);
  void resign();

  bool is_leading() const { return journal_.is_leading(); }
  const std::string& over() const { return journal_.over(); }
  Engine& engine() { return engine_; }
  // Deadlines count from now.
  std::string holds();

 private:
  struct EtcdClock final : Clock {
    explicit EtcdClock(const etcd::ModelEtcd& model, std::optional<Time> stands = {})
        : etcd(model), stands_at(stands) {}
    Time now() const noexcept override { return stands_at.value_or(etcd.now()); }
    const etcd::ModelEtcd& etcd;
    const std::optional<Time> stands_at;
  };

  Node(etcd::ModelEtcd& etcd, const std::string& name, std::optional<Time> stands_at);

  etcd::ModelEtcd& etcd_;
  EtcdClock clock_;
  EtcdClock engine_clock_;
  std::unique_ptr<etcd::ModelEtcd::Connection> connection_;
  ReplicatedJournal journal_;
  crash::WitnessedJournal witness_;
  Engine engine_;
};

// A change of the store as a line: "<revision> <key> <value in hexadecimal>", without a value if
// the key was erased.
std::string line_of(const etcd::Change& change);
// Makes the same changes, at the same revisions.
void replay_history(const std::string& lines, etcd::ModelStore& store);

// What a server holds that takes over when such a history has come to its end.
std::string take_over(const std::string& lines);

// A journal that is made of the cluster's chain. No time passes for it. Throws with the error.
crash::Files export_chain(etcd::ModelEtcd& etcd);
// A chain that is made of a journal; `step` is called after each step, and may throw.
void import_chain(
    etcd::ModelEtcd& etcd, const crash::Files& files, const std::function<void()>& step = [] {});
StateSummary import_chain(
    etcd::ModelEtcd& etcd, Storage& journal, const std::function<void()>& step = [] {});

}  // namespace lockd::golden
