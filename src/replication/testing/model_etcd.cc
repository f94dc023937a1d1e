#include "replication/testing/model_etcd.h"

#include <algorithm>
#include <chrono>

namespace lockd::etcd {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kChangesAtOnce = 8;

}  // namespace

std::unique_ptr<ModelEtcd::Connection> ModelEtcd::connect() {
  const std::uint64_t id = ++last_id_;
  auto connection = std::make_unique<Connection>(*this, id);
  connections_[id] = connection.get();
  return connection;
}

void ModelEtcd::at(Time time, Action action) { agenda_.emplace(time, std::move(action)); }

void ModelEtcd::move_to(Time now) {
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    now_ = std::max(now_, agenda_.begin()->first);
    const Action action = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    action();
  }
  now_ = now;
  if (is_failing()) return;
  for (const auto& [id, connection] : connections_) connection->feed_watch();
}

Duration ModelEtcd::travel() {
  if (happens(faults_.slow)) return distance + milliseconds(below(400));
  return distance + microseconds(100 + below(900));
}

void ModelEtcd::request(std::uint64_t connection, std::uint64_t call, Serve served) {
  const Time arrives = now_ + travel();
  const Time late = arrives + milliseconds(below(2000));
  if (happens(faults_.request_lost)) return;
  if (happens(faults_.request_twice))
    at(late, [=, this] { serve(connection, call, served, false); });
  const bool answered = !happens(faults_.answer_lost);
  at(happens(faults_.request_late) ? late : arrives,
     [=, this] { serve(connection, call, served, answered); });
}

// One that arrives while etcd fails is lost, or waits in a buffer until it does not.
void ModelEtcd::serve(std::uint64_t connection, std::uint64_t call, const Serve& served,
                      bool answered) {
  if (is_failing()) {
    if (below(2) == 0) return;
    return at(fails_until_ + travel(), [=, this] { serve(connection, call, served, answered); });
  }
  const Answer answer = served(store);
  if (!answered) return;
  at(now_ + travel(), [this, connection, call, answer] {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return;
    const auto asked = found->second->calls_.find(call);
    if (asked != found->second->calls_.end()) {
      asked->second.answer = std::make_unique<Answer>(answer);
    }
  });
}

std::uint64_t ModelEtcd::Connection::add_call(Duration within, Done done) {
  const std::uint64_t call = ++etcd_.last_id_;
  calls_[call] = {std::move(done), etcd_.now_ + within};
  return call;
}

void ModelEtcd::Connection::execute(const Txn& txn, Duration within, Done done) {
  etcd_.request(id_, add_call(within, std::move(done)),
                [txn](ModelStore& store) { return store.execute(txn); });
}

void ModelEtcd::Connection::compact(Revision revision, Duration within, Done done) {
  etcd_.request(id_, add_call(within, std::move(done)), [revision](ModelStore& store) {
    if (!store.refuses_compaction) return store.compact(revision);
    return Answer{.status = Answer::Status::refused, .message = "permission denied"};
  });
}

void ModelEtcd::Connection::measure(Duration within, Measured measured) {
  const auto take = [this, measured = std::move(measured)](const Answer& answer) {
    if (answer.status != Answer::Status::done) return;
    measured({.taken = etcd_.store.size(), .needed = 0, .quota = etcd_.store.quota});
  };
  etcd_.request(id_, add_call(within, take),
                [](ModelStore&) { return Answer{.status = Answer::Status::done}; });
}

void ModelEtcd::Connection::watch(const std::string& key, const std::string& range_end,
                                  Revision from, Watcher& watcher) {
  watch_ = {.watcher = &watcher,
            .key = key,
            .range_end = range_end,
            .next = from,
            .next_delivery = etcd_.now_ + etcd_.travel()};
}

// What the watch sends, up to some of what there is.
void ModelEtcd::Connection::feed_watch() {
  Watch& watch = watch_;
  if (watch.watcher == nullptr || watch.broken || etcd_.now_ < watch.next_delivery) return;
  const bool late = etcd_.happens(etcd_.faults_.watch_late);
  watch.next_delivery =
      etcd_.now_ + (late ? milliseconds(etcd_.below(1000)) : Duration::zero()) + etcd_.travel();
  std::vector<Change> changes;
  watch.compacted = !etcd_.store.changes(watch.key, watch.range_end, &watch.next,
                                         1 + etcd_.below(kChangesAtOnce), &changes);
  watch.broken = watch.compacted || etcd_.happens(etcd_.faults_.watch_broken);
  if (etcd_.happens(etcd_.faults_.watch_repeats)) {
    watch.arrived.insert(watch.arrived.end(), watch.repeat.begin(), watch.repeat.end());
  }
  watch.arrived.insert(watch.arrived.end(), changes.begin(), changes.end());
  if (!changes.empty()) watch.repeat = std::move(changes);
}

void ModelEtcd::Connection::deliver() {
  deliver_answers();
  deliver_changes();
}

// If both an answer and its deadline have passed since the last delivery, either may come first.
void ModelEtcd::Connection::deliver_answers() {
  std::vector<std::pair<Done, Answer>> ready;
  for (auto call = calls_.begin(); call != calls_.end();) {
    const bool is_over = etcd_.now_ >= call->second.deadline;
    Answer answer{.message = "no answer in time"};
    const bool answered = call->second.answer != nullptr && (!is_over || etcd_.below(2) == 0);
    if (answered) answer = std::move(*call->second.answer);
    if (!answered && !is_over) {
      ++call;
      continue;
    }
    ready.emplace_back(std::move(call->second.done), std::move(answer));
    call = calls_.erase(call);
  }
  for (const auto& [done, answer] : ready) done(answer);
}

void ModelEtcd::Connection::deliver_changes() {
  if (watch_.watcher == nullptr) return;
  Watcher& watcher = *watch_.watcher;
  const std::vector<Change> arrived = std::exchange(watch_.arrived, {});
  const bool broken = watch_.broken;
  const bool compacted = watch_.compacted;
  if (broken) watch_ = {};
  if (!arrived.empty()) watcher.changed(arrived);
  if (broken) watcher.ended(compacted, "the stream has ended");
}

}  // namespace lockd::etcd
