#include "core/testing/event_model.h"

#include <algorithm>
#include <utility>

namespace lockd {
namespace {

// No event tells that a session has taken over what was another's.
std::string owner_of(const std::string& holder) {
  return holder.starts_with("tcp:") ? "a session" : holder;
}

bool is_same(const Histogram& a, const Histogram& b) {
  return a.buckets() == b.buckets() && a.sum_seconds() == b.sum_seconds();
}

}  // namespace

std::string EventModel::see(const KeyEvent& o) {
  if (o.type == KeyEvent::Type::refused) return {};  // nothing has changed
  const std::pair name(o.kind, std::string(o.key));
  Key& key = keys_[name];
  std::string wrong;
  switch (o.type) {
    case KeyEvent::Type::queued:
      key.queue.push_back({o.place, entry_of(o, o.at)});
      ++stats_.queued;
      break;
    case KeyEvent::Type::granted: wrong = begin(key, o); break;
    case KeyEvent::Type::gave_up: wrong = leave(key, o); break;
    case KeyEvent::Type::released:
    case KeyEvent::Type::expired:
    case KeyEvent::Type::disconnected:
    case KeyEvent::Type::revoked: wrong = end(key, o); break;
    case KeyEvent::Type::refused: break;
    case KeyEvent::Type::slow_wait:
    case KeyEvent::Type::slow_hold: break;
    case KeyEvent::Type::resized: key.limit = o.limit; break;
  }
  if (!wrong.empty()) return wrong;
  if (o.holders != key.holds.size()) return "a key event with another number of holders";
  if (o.waiters != key.queue.size()) return "a key event with another number of waiters";
  if (key.holds.empty() && key.queue.empty()) keys_.erase(name);
  return {};
}

EventModel::Entry EventModel::entry_of(const KeyEvent& o, Time since) {
  return {owner_of(o.holder), identity_of(o.client), o.mode, o.permits, since};
}

// An empty string where there is.
std::string EventModel::why_no_room(const Key& key, const KeyEvent& o) {
  std::uint64_t permits = o.permits;
  bool is_shared = o.mode == Mode::shared;
  for (const auto& [fence, hold] : key.holds) {
    permits += hold.permits;
    is_shared = is_shared && hold.mode == Mode::shared;
  }
  if (o.kind == Kind::semaphore) return permits > o.limit ? "holders-bounded: in a key event" : "";
  return key.holds.empty() || is_shared ? "" : "shares-or-alone: in a key event";
}

std::string EventModel::begin(Key& key, const KeyEvent& o) {
  ++stats_.grants;
  if (std::exchange(key.limit, o.limit) != o.limit && !key.holds.empty()) {
    return "holders-bounded: another limit, and nobody has seen it resized";
  }
  if (o.place != 0) {
    const std::pair first(o.place, entry_of(o, o.at - o.lasted));
    if (key.queue.empty() || key.queue.front() != first) {
      return "first-come: granted, and not the first of the queue";
    }
    key.queue.erase(key.queue.begin());
    ++stats_.contended;
    stats_.wait_time.add(o.lasted);
  } else if (!key.queue.empty() || o.lasted != Duration(0)) {
    return "first-come: granted at once, past a queue";
  }
  if (!key.holds.empty() && key.holds.rbegin()->first >= o.fence) return "fences-rise: not larger";
  if (std::string wrong = why_no_room(key, o); !wrong.empty()) return wrong;
  key.holds.emplace(o.fence, entry_of(o, o.at));
  return {};
}

std::string EventModel::end(Key& key, const KeyEvent& o) {
  const auto hold = key.holds.find(o.fence);
  if (hold == key.holds.end()) return "the end of a hold that nobody has seen begin";
  if (hold->second != entry_of(o, o.at - o.lasted)) return "the end of another hold";
  key.holds.erase(hold);
  stats_.releases += o.type == KeyEvent::Type::released;
  stats_.expiries += o.type == KeyEvent::Type::expired;
  stats_.disconnects += o.type == KeyEvent::Type::disconnected;
  stats_.revocations += o.type == KeyEvent::Type::revoked;
  stats_.hold_time.add(o.lasted);
  return {};
}

std::string EventModel::leave(Key& key, const KeyEvent& o) {
  const auto place = std::ranges::find(key.queue, std::pair(o.place, entry_of(o, o.at - o.lasted)));
  if (place == key.queue.end()) return "settled-once: a place that nobody has seen taken";
  key.queue.erase(place);
  stats_.timeouts += o.outcome == Outcome::timeout;
  stats_.cancels += o.outcome != Outcome::timeout && o.outcome != Outcome::ok;
  return {};
}

std::string EventModel::difference(const LockModel& model) const {
  std::size_t in_use = 0;
  for (const LockModel::Key& key : model.keys()) {
    if (key.idle()) continue;
    ++in_use;
    const auto seen = keys_.find({key.kind, key.name});
    if (seen == keys_.end()) return "nothing was seen of " + text(key.kind, key.name);
    std::map<Fence, Entry> holds;
    for (const LockModel::Held& hold : key.holds) {
      holds.emplace(hold.fence, Entry{owner_of(hold.owner.display_name()), hold.client, hold.mode,
                                      hold.permits, hold.since});
    }
    const bool is_same_line = std::ranges::equal(
        seen->second.queue, key.queue, [](const auto& mine, const LockModel::Place& its) {
          return mine.second == Entry{owner_of(its.owner.display_name()), its.client, its.mode,
                                      its.permits, its.since};
        });
    if (seen->second.holds != holds || !is_same_line) {
      return "the key_events tell otherwise of " + text(key.kind, key.name);
    }
  }
  return in_use == keys_.size() ? "" : "a key was seen in use that is not";
}

std::string EventModel::difference(const Stats& its) const {
  Stats mine = stats_;
  for (const auto& [name, key] : keys_) {
    const bool is_lock = name.first == Kind::lock;
    (is_lock ? mine.locks_held : mine.semaphore_holders) += key.holds.size();
    (is_lock ? mine.lock_waiters : mine.semaphore_waiters) += key.queue.size();
    for (const auto& [fence, hold] : key.holds) mine.shared_holds += hold.mode == Mode::shared;
  }
  using Field = std::uint64_t Stats::*;
  const std::pair<Field, const char*> fields[] = {
      {&Stats::grants, "grants"},
      {&Stats::contended, "contended"},
      {&Stats::releases, "releases"},
      {&Stats::expiries, "expiries"},
      {&Stats::disconnects, "disconnects"},
      {&Stats::revocations, "revocations"},
      {&Stats::queued, "queued"},
      {&Stats::timeouts, "timeouts"},
      {&Stats::cancels, "cancels"},
      {&Stats::locks_held, "locks_held"},
      {&Stats::semaphore_holders, "semaphore_holders"},
      {&Stats::shared_holds, "shared_holds"},
      {&Stats::lock_waiters, "lock_waiters"},
      {&Stats::semaphore_waiters, "semaphore_waiters"},
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
