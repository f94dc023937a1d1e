#include "engine/shard.h"

#include <algorithm>

namespace lockd {
namespace {

// The encoded size of an event without its strings.
constexpr std::size_t kEventSize = 64;

}  // namespace

void Shard::collect(detail::Turn& turn) noexcept {
  // Most operations have few effects.
  Effects& effects = table_.effects();
  if (!effects.events.empty()) {
    if (journal_ != nullptr) last_append_ = journal_->append(effects.events);
    effects.events.clear();
  }
  if (!effects.key_events.empty()) {
    observer_->on_key_events(effects.key_events, last_append_);
    effects.key_events.clear();
  }
  for (WaitResult& result : effects.wait_results) {
    result.position = last_append_;
    turn.wait_results.push_back(result);
  }
  effects.wait_results.clear();
  if (!effects.sets.empty()) {
    turn.sets.insert(turn.sets.end(), effects.sets.begin(), effects.sets.end());
    effects.sets.clear();
  }
  turn.position = std::max(turn.position, last_append_);
  turn.answers = std::max(turn.answers, last_append_);
  turn.earliest = std::min(turn.earliest, effects.earliest);
  if (effects.earliest < due()) due_ns_.store(effects.earliest.ns, std::memory_order_seq_cst);
  may_have_idle_.store(table_.idle().oldest() != nullptr, std::memory_order_relaxed);
  idlings_.store(table_.idle().idlings(), std::memory_order_release);
  effects.earliest = Time::never();
}

void Shard::advance(Time now, int budget, detail::Turn& turn) noexcept {
  MutexLock lock(mutex_);
  table_.observe(observed());
  table_.advance(now, budget);
  collect(turn);
  due_ns_.store(table_.next_deadline().ns, std::memory_order_seq_cst);
}

void Shard::lead(Time now, Position from, Duration lease_min) noexcept {
  MutexLock lock(mutex_);
  table_.prolong_leases(now, lease_min);
  last_append_ = std::max(last_append_, from);
}

// These events change nothing, so no answer depends on them: `last_append_` stays.
void Shard::describe(Cursor& cursor, std::size_t keys_max) noexcept {
  MutexLock lock(mutex_);
  std::vector<Event> events;
  events.reserve(keys_max + 1);
  table_.describe(cursor, keys_max, events);
  if (cursor.done) {
    events.push_back({.type = Event::Type::fence_floor, .fence = table_.last_fence()});
  }
  if (!events.empty()) journal_->append(events);
}

std::size_t Shard::described_size(Cursor& cursor, std::size_t keys_max) {
  MutexLock lock(mutex_);
  std::vector<Event> events;
  table_.describe(cursor, keys_max, events);
  std::size_t size = cursor.done ? kEventSize : 0;
  for (const Event& event : events) {
    const ClientView& client = event.client;
    size += kEventSize + event.key.size() + event.holder.name().size() + client.name.size() +
            client.peer.size() + client.note.size();
  }
  return size;
}

}  // namespace lockd
