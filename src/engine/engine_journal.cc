// What the journal asks of an engine: to take over what it tells, to follow, to lead, to describe
// itself.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "engine/engine_core.h"

namespace lockd::detail {

void EngineCore::recover() {
  journal_->recover([&](const Event& event) {
    if (replay(event)) return;
    throw std::runtime_error("lockd: the journal contradicts itself at key '" +
                             std::string(event.key) + "', fence " + std::to_string(event.fence));
  });
  raise_fences();
}

bool EngineCore::replay(const Event& event) {
  largest_fence_ = std::max(largest_fence_, event.fence);
  if (event.type == Event::Type::fence_floor) {
    raise_fences();
    return true;
  }
  return place_of(event.key).shard.look([&](LockTable& table) { return table.apply(event); });
}

// Keys may have been in other shards when there were more or fewer of them, or in another engine.
void EngineCore::raise_fences() {
  for (const auto& shard : shards_) {
    shard->look([&](LockTable& table) { table.raise_fence(largest_fence_); });
  }
}

bool EngineCore::apply(const Event& event) { return replay(event); }

void EngineCore::lead(Position from) {
  raise_fences();
  for (const auto& shard : shards_) shard->lead(clock_.now(), from);
  following_.store(false, std::memory_order_release);
  if (sweeper_.has_value()) sweeper_->notice(Time{});
}

void EngineCore::progressed() noexcept {
  notifier_.progressed();
  if (options_.on_durable) options_.on_durable();
}

bool EngineCore::describe_some(bool from_start) {
  if (from_start) {
    described_ = 0;
    described_in_shard_ = {};
  }
  shards_[described_]->describe(described_in_shard_, kKeysPerHold);
  if (described_in_shard_.done) {
    ++described_;
    described_in_shard_ = {};
  }
  return described_ < shards_.size();
}

Journal::State EngineCore::journal_state() const {
  return journal_ == nullptr ? Journal::State::accepting : journal_->state();
}

}  // namespace lockd::detail
