#include "engine/journal_source.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace lockd::detail {

JournalSource::JournalSource(Journal* journal, const Shards& shards, const Clock& clock,
                             DurableNotifier& notifier, Hooks hooks)
    : journal_(journal),
      shards_(shards),
      clock_(clock),
      notifier_(notifier),
      hooks_(std::move(hooks)) {}

void JournalSource::recover() {
  if (journal_ == nullptr) return;
  following_ = journal_->state() == Journal::State::following;
  journal_->recover([&](const Event& event) {
    if (replay(event)) return;
    throw std::runtime_error("lockd: the journal contradicts itself at key '" +
                             std::string(event.key) + "', fence " + std::to_string(event.fence));
  });
  raise_fences();
}

void JournalSource::attach() {
  if (journal_ != nullptr) journal_->attach(this);
}

void JournalSource::detach() {
  if (journal_ != nullptr) journal_->attach(nullptr);
}

bool JournalSource::replay(const Event& event, std::optional<Time> at) {
  largest_fence_ = std::max(largest_fence_, event.fence);
  if (event.type == Event::Type::fence_floor) {
    if (event.fence != 0) raise_fences();
    return true;
  }
  return shards_.of(event.key).shard.with_table(
      [&](LockTable& table) { return table.apply(event, at); });
}

// In every shard, because a key may have been in another one when the number of shards was
// different.
void JournalSource::raise_fences() {
  for (const auto& shard : shards_) {
    shard->with_table([&](LockTable& table) { table.raise_fence(largest_fence_); });
  }
}

bool JournalSource::apply(const Event& event) {
  const Time now = clock_.now();
  Event here = event;
  here.expires_at = now + (event.expires_at - Time{});
  return replay(here, now);
}

// A new cluster starts its fences like a server without a journal: when it replaces such a server,
// the protected resources have seen that server's fences.
void JournalSource::lead(Position from, Duration lease_min) {
  if (largest_fence_ == 0) largest_fence_ = fence_from_clock(clock_.now());
  raise_fences();
  leads_from_.store(from, std::memory_order_release);
  for (const auto& shard : shards_) shard->lead(clock_.now(), from, lease_min);
  following_.store(false, std::memory_order_release);
  hooks_.on_lead();
}

// A follower cannot append, and an event that it appends later would prove nothing.
Position JournalSource::append_mark() {
  const Position from = leads_from_.load(std::memory_order_acquire);
  if (from == 0 || is_following()) return from;
  const Event mark{.type = Event::Type::fence_floor};
  return journal_->append({&mark, 1});
}

void JournalSource::progressed() noexcept {
  notifier_.progressed();
  if (journal_->state() == Journal::State::failed) {
    const InFlight::Call call(notifier_.in_flight());
    hooks_.on_failed();
  }
  if (hooks_.on_durable) hooks_.on_durable();
}

bool JournalSource::describe_some(bool from_start) {
  if (from_start) {
    described_ = 0;
    described_in_shard_ = {};
  }
  shards_[described_].describe(described_in_shard_, Shard::kKeysPerLocking);
  if (described_in_shard_.done) {
    ++described_;
    described_in_shard_ = {};
  }
  return described_ < shards_.size();
}

bool JournalSource::fits(std::size_t size) {
  std::size_t sum = 0;
  for (const auto& shard : shards_) {
    for (Cursor cursor; !cursor.done;) {
      sum += shard->described_size(cursor, Shard::kKeysPerLocking);
      if (sum > size) return false;
    }
  }
  return true;
}

Fence JournalSource::fence_from_clock(Time now) {
  constexpr std::uint64_t k2020_us = 1'577'836'800'000'000;
  const std::uint64_t us = now.ns / 1000;
  return us > k2020_us ? std::min(4 * (us - k2020_us), kFenceMax) : 0;
}

}  // namespace lockd::detail
