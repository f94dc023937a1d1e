// etcd as it is met over a network, for simulations: a ModelStore, and connections to it on which
// requests and answers take their time, are lost, come late, and come twice.
//
// Nothing here has a thread or a clock. The world is moved on by move_to(); what has arrived at a
// client is handed over by Connection::deliver(), which a process that is stopped does not call.
// The same seed gives the same world.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/chance.h"
#include "replication/etcd_client.h"
#include "replication/testing/model_store.h"

namespace lockd::etcd {

// How many of 10,000 fare so.
struct ModelFaults {
  std::uint64_t request_lost = 20;
  std::uint64_t answer_lost = 20;
  std::uint64_t request_late = 20;   // by up to two seconds: long after its sender gave it up
  std::uint64_t request_twice = 20;  // the second time is late
  std::uint64_t slow = 50;           // both ways
  std::uint64_t watch_broken = 20;   // at a delivery
  std::uint64_t watch_late = 50;
  std::uint64_t watch_repeats = 100;
};
inline constexpr ModelFaults kNoFaults{0, 0, 0, 0, 0, 0, 0, 0};

class ModelEtcd {
 public:
  ModelEtcd(std::uint64_t seed, const ModelFaults& faults) : faults_(faults), chance_(seed) {}

  class Connection;
  std::unique_ptr<Connection> connect();

  // Everything that happens at etcd up to `now`.
  void move_to(Time now);
  Time now() const { return now_; }
  // Nothing is answered before then.
  void fail_until(Time time) { fails_until_ = time; }
  bool is_failing() const { return now_ < fails_until_; }

  ModelStore store;
  Duration distance{};  // added to the travel time of every message

 private:
  using Action = std::function<void()>;
  using Serve = std::function<Answer(ModelStore&)>;

  std::uint64_t below(std::uint64_t n) { return chance_.below(n); }
  bool happens(std::uint64_t of_10000) { return below(10'000) < of_10000; }
  Duration travel();
  void at(Time time, Action action);
  void request(std::uint64_t connection, std::uint64_t call, Serve serve);
  void serve(std::uint64_t connection, std::uint64_t call, const Serve& serve, bool answered);

  const ModelFaults faults_;
  Chance chance_;
  Time now_{};
  Time fails_until_{};
  std::uint64_t last_id_ = 0;
  std::multimap<Time, Action> agenda_;  // of one time, the earlier made first
  std::map<std::uint64_t, Connection*> connections_;
};

class ModelEtcd::Connection final : public Client {
 public:
  Connection(ModelEtcd& etcd, std::uint64_t id) : etcd_(etcd), id_(id) {}
  ~Connection() override { etcd_.connections_.erase(id_); }

  void switch_member() override {}  // there is one alone
  void execute(const Txn& txn, Duration within, Done done) override;
  void compact(Revision revision, Duration within, Done done) override;
  void measure(Duration within, Measured measured) override;
  void watch(const std::string& key, const std::string& range_end, Revision from,
             Watcher& watcher) override;
  void unwatch() override { watch_ = {}; }

  // Hands over what has arrived by now.
  void deliver();

 private:
  friend class ModelEtcd;

  struct Call {
    Done done;
    Time deadline;
    std::unique_ptr<Answer> answer{};
  };
  struct Watch {
    Watcher* watcher = nullptr;
    std::string key{};
    std::string range_end{};
    Revision next = 0;
    Time next_delivery{};
    std::vector<Change> repeat{};
    std::vector<Change> arrived{};
    bool broken = false;
    bool compacted = false;
  };

  std::uint64_t add_call(Duration within, Done done);
  void deliver_answers();
  void deliver_changes();
  void feed_watch();

  ModelEtcd& etcd_;
  const std::uint64_t id_;
  std::map<std::uint64_t, Call> calls_;
  Watch watch_;
};

}  // namespace lockd::etcd
