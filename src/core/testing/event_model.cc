#include "core/testing/event_model.h"

#include <algorithm>
#include <utility>

namespace lockd {
namespace {

// All sessions are equal here: no event shows that one session took over the hold of another.
std::string owner_of(const std::string& holder) {
  return holder.starts_with("tcp:") ? "a session" : holder;
}

bool is_same(const Histogram& a, const Histogram& b) {
  return a.buckets() == b.buckets() && a.sum_seconds() == b.sum_seconds();
}

}  // namespace

bool EventModel::Entry::operator==(const Entry& other) const {
  return owner_of(holder) == owner_of(other.holder) && client == other.client &&
         mode == other.mode && permits == other.permits && since == other.since;
}

std::string EventModel::see(const KeyEvent& o) {
  if (o.type == KeyEvent::Type::refused) return {};  // changes nothing
  Key& key = keys_[{o.kind, std::string(o.key)}];
  std::string wrong;
  switch (o.type) {
    case KeyEvent::Type::queued:
      if (key.holds.empty()) key.limit = o.limit;
      key.queue.push_back({o.place, entry_of(o, o.at)});
      ++stats_.queued;
      break;
    case KeyEvent::Type::granted: wrong = begin_hold(key, o); break;
    case KeyEvent::Type::gave_up: wrong = leave_queue(key, o); break;
    case KeyEvent::Type::released:
    case KeyEvent::Type::expired:
    case KeyEvent::Type::disconnected:
    case KeyEvent::Type::revoked: wrong = end_hold(key, o); break;
    case KeyEvent::Type::refused: break;
    case KeyEvent::Type::slow_wait:
    case KeyEvent::Type::slow_hold: break;
    case KeyEvent::Type::resized: key.limit = o.limit; break;
  }
  if (!wrong.empty()) return wrong;
  if (o.holders != key.holds.size()) return "counted: another number of holders";
  if (o.waiters != key.queue.size()) return "counted: another number of waiters";
  return {};
}

void EventModel::recover(Kind kind, const std::string& name, Fence fence, Mode mode,
                         std::uint32_t permits, std::uint32_t limit) {
  Key& key = keys_[{kind, name}];
  key.limit = limit;
  key.last_fence = std::max(key.last_fence, fence);
  key.holds.emplace(fence, Entry{.holder = {},
                                 .client = {},
                                 .mode = mode,
                                 .permits = permits,
                                 .since = {},
                                 .is_recovered = true});
}

EventModel::Entry EventModel::entry_of(const KeyEvent& o, Time since) {
  return {o.holder, o.client == nullptr ? ClientIdentity{} : *o.client, o.mode, o.permits, since};
}

bool EventModel::has_room(Kind kind, const Key& key, Mode mode, std::uint32_t permits) {
  std::uint64_t in_use = permits;
  bool is_shared = mode == Mode::shared;
  for (const auto& [fence, hold] : key.holds) {
    in_use += hold.permits;
    is_shared = is_shared && hold.mode == Mode::shared;
  }
  return kind == Kind::lock ? key.holds.empty() || is_shared : in_use <= key.limit;
}

std::string EventModel::begin_hold(Key& key, const KeyEvent& o) {
  ++stats_.grants;
  if (std::exchange(key.limit, o.limit) != o.limit && !key.holds.empty()) {
    return "holders-bounded: another limit, and no event resized it";
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
  if (std::exchange(key.last_fence, o.fence) >= o.fence) return "fences-rise: not larger";
  if (!has_room(o.kind, key, o.mode, o.permits)) {
    return o.kind == Kind::lock ? "shares-or-alone: in a key event"
                                : "holders-bounded: in a key event";
  }
  key.holds.emplace(o.fence, entry_of(o, o.at));
  return {};
}

std::string EventModel::end_hold(Key& key, const KeyEvent& o) {
  const auto hold = key.holds.find(o.fence);
  if (hold == key.holds.end()) return "settled-once: the end of a hold that no event began";
  if (!hold->second.is_recovered && hold->second != entry_of(o, o.at - o.lasted)) {
    return "settled-once: the end of another hold";
  }
  key.holds.erase(hold);
  stats_.releases += o.type == KeyEvent::Type::released;
  stats_.expiries += o.type == KeyEvent::Type::expired;
  stats_.disconnects += o.type == KeyEvent::Type::disconnected;
  stats_.revocations += o.type == KeyEvent::Type::revoked;
  stats_.hold_time.add(o.lasted);
  return {};
}

std::string EventModel::leave_queue(Key& key, const KeyEvent& o) {
  const auto place = std::ranges::find(key.queue, std::pair(o.place, entry_of(o, o.at - o.lasted)));
  if (place == key.queue.end()) return "settled-once: the end of a place that no event began";
  key.queue.erase(place);
  stats_.timeouts += o.outcome == Outcome::timeout;
  stats_.cancels += o.outcome != Outcome::timeout && o.outcome != Outcome::ok;
  return {};
}

std::string EventModel::difference(const Stats& actual) const {
  Stats expected = stats_;
  for (const auto& [name, key] : keys_) {
    const bool is_lock = name.first == Kind::lock;
    (is_lock ? expected.locks_held : expected.semaphore_holders) += key.holds.size();
    (is_lock ? expected.lock_waiters : expected.semaphore_waiters) += key.queue.size();
    for (const auto& [fence, hold] : key.holds) expected.shared_holds += hold.mode == Mode::shared;
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
    if (actual.*field != expected.*field) return std::string("counted: ") + name;
  }
  if (!is_same(actual.wait_time, expected.wait_time)) return "counted: wait_time";
  if (!is_same(actual.hold_time, expected.hold_time)) return "counted: hold_time";
  if (actual.expiry_lag.count() != expected.expiries) return "counted: expiry_lag";
  return {};
}

}  // namespace lockd
