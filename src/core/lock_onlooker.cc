#include "core/lock_onlooker.h"

#include <algorithm>

namespace lockd {
namespace {

bool is_same(const Histogram& a, const Histogram& b) {
  return a.buckets() == b.buckets() && a.sum_seconds() == b.sum_seconds();
}

}  // namespace

std::string LockOnlooker::see(const Occurrence& o) {
  const std::pair name(o.kind, std::string(o.key));
  Key& key = keys_[name];
  std::string wrong;
  switch (o.type) {
    case Occurrence::Type::queued:
      key.line.push_back({o.place, {o.holder, o.at}});
      ++figures_.queued;
      break;
    case Occurrence::Type::granted: wrong = begin(key, o); break;
    case Occurrence::Type::gave_up: wrong = leave(key, o); break;
    case Occurrence::Type::released:
    case Occurrence::Type::expired:
    case Occurrence::Type::disconnected: wrong = end(key, o); break;
  }
  if (!wrong.empty()) return wrong;
  if (o.holders != key.holds.size()) return "an occurrence with another number of holders";
  if (o.waiters != key.line.size()) return "an occurrence with another number of waiters";
  if (o.holders > o.limit) return "holders-bounded: in an occurrence";
  if (key.holds.empty() && key.line.empty()) keys_.erase(name);
  return {};
}

std::string LockOnlooker::begin(Key& key, const Occurrence& o) {
  ++figures_.grants;
  if (o.place != 0) {
    const std::pair first(o.place, Entry{o.holder, o.at - o.lasted});
    if (key.line.empty() || key.line.front() != first) {
      return "first-come: granted, and not the first in line";
    }
    key.line.erase(key.line.begin());
    ++figures_.contended;
    figures_.wait_time.add(o.lasted);
  } else if (!key.line.empty() || o.lasted != Duration(0)) {
    return "first-come: granted at once, past a line";
  }
  if (!key.holds.empty() && key.holds.rbegin()->first >= o.fence) return "fences-rise: not larger";
  key.holds.emplace(o.fence, Entry{o.holder, o.at});
  return {};
}

std::string LockOnlooker::end(Key& key, const Occurrence& o) {
  const auto hold = key.holds.find(o.fence);
  if (hold == key.holds.end()) return "the end of a hold that nobody has seen begin";
  if (hold->second != Entry{o.holder, o.at - o.lasted}) return "the end of another hold";
  key.holds.erase(hold);
  figures_.releases += o.type == Occurrence::Type::released;
  figures_.expiries += o.type == Occurrence::Type::expired;
  figures_.disconnects += o.type == Occurrence::Type::disconnected;
  figures_.hold_time.add(o.lasted);
  return {};
}

std::string LockOnlooker::leave(Key& key, const Occurrence& o) {
  const auto place =
      std::ranges::find(key.line, std::pair(o.place, Entry{o.holder, o.at - o.lasted}));
  if (place == key.line.end()) return "settled-once: a place that nobody has seen taken";
  key.line.erase(place);
  figures_.timeouts += o.outcome == Outcome::timeout;
  figures_.cancels += o.outcome != Outcome::timeout && o.outcome != Outcome::ok;
  return {};
}

std::string LockOnlooker::difference(const LockModel& model) const {
  std::size_t in_use = 0;
  for (const LockModel::Key& key : model.keys()) {
    if (key.idle()) continue;
    ++in_use;
    const auto seen = keys_.find({key.kind, key.name});
    if (seen == keys_.end()) return "nothing was seen of " + text(key.kind, key.name);
    std::map<Fence, Entry> holds;
    for (const LockModel::Held& hold : key.holds) {
      holds.emplace(hold.fence, Entry{hold.owner.display_name(), hold.since});
    }
    const bool is_same_line = std::ranges::equal(
        seen->second.line, key.line, [](const auto& mine, const LockModel::Place& its) {
          return mine.second == Entry{its.owner.display_name(), its.since};
        });
    if (seen->second.holds != holds || !is_same_line) {
      return "the occurrences tell otherwise of " + text(key.kind, key.name);
    }
  }
  return in_use == keys_.size() ? "" : "a key was seen in use that is not";
}

std::string LockOnlooker::difference(const Figures& its) const {
  Figures mine = figures_;
  for (const auto& [name, key] : keys_) {
    const bool is_lock = name.first == Kind::lock;
    (is_lock ? mine.locks_held : mine.semaphore_holders) += key.holds.size();
    (is_lock ? mine.lock_waiters : mine.semaphore_waiters) += key.line.size();
  }
  using Field = std::uint64_t Figures::*;
  const std::pair<Field, const char*> fields[] = {
      {&Figures::grants, "grants"},
      {&Figures::contended, "contended"},
      {&Figures::releases, "releases"},
      {&Figures::expiries, "expiries"},
      {&Figures::disconnects, "disconnects"},
      {&Figures::queued, "queued"},
      {&Figures::timeouts, "timeouts"},
      {&Figures::cancels, "cancels"},
      {&Figures::locks_held, "locks_held"},
      {&Figures::semaphore_holders, "semaphore_holders"},
      {&Figures::lock_waiters, "lock_waiters"},
      {&Figures::semaphore_waiters, "semaphore_waiters"},
  };
  for (const auto& [field, name] : fields) {
    if (its.*field != mine.*field) return std::string("counted: ") + name;
  }
  if (!is_same(its.wait_time, mine.wait_time)) return "counted: wait_time";
  if (!is_same(its.hold_time, mine.hold_time)) return "counted: hold_time";
  if (its.expiry_lag.count() != mine.expiries) return "counted: expiry_lag";
  return {};
}

}  // namespace lockd
