// PublishedJournal is the part of a ReplicatedJournal that other threads use: the engine appends to
// it, and reads its state and how much is durable. The thread that calls turn() publishes both.
//
// durable() is the end of the chain while no other node can lead, and 0 otherwise. So a process
// that was paused sends no answer before etcd has confirmed its leadership.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "journal/append_buffer.h"
#include "lockd/clock.h"
#include "lockd/journal.h"

namespace lockd {

class PublishedJournal : public Journal {
 public:
  PublishedJournal(const Clock& clock, Duration detect, const AppendBufferOptions& options)
      : clock_(clock), detect_(detect), options_(options) {}

  // Any thread. The chain is followed instead of recovered.
  bool recover(const std::function<void(const Event&)>&) override { return false; }
  Position append(std::span<const Event> events) override { return pending_->append(events); }
  void commit(Position) override {}
  Position durable() const noexcept override {
    return is_certain() ? committed_.load(std::memory_order_acquire) : 0;
  }
  State state() const noexcept override {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::accepting && pending_->is_crowded() ? State::full : state;
  }
  bool is_behind() const noexcept override { return is_open() && pending_->is_behind(); }
  void attach(Source* source) override EXCLUDES(source_mutex_) {
    MutexLock lock(source_mutex_);
    source_ = source;
  }
  // It leads, and no other node can.
  bool is_certain() const noexcept {
    return clock_.now().ns < certain_until_ns_.load(std::memory_order_acquire);
  }
  // It was certain to lead, and has not been for as long as it takes to be deposed.
  bool is_cut_off() const noexcept {
    const std::uint64_t certain_until = certain_until_ns_.load(std::memory_order_acquire);
    const Duration allowance =
        std::max(detect_, std::min(kElectionAtEtcd, detect_ + kBeyondDetectMax));
    // It is certain for the first four fifths of detect.
    return certain_until != 0 && clock_.now() >= Time{certain_until} + allowance - detect_ * 4 / 5;
  }
  // The number of appends that wait to be sent.
  std::size_t waiting() const noexcept { return is_open() ? pending_->count() : 0; }

  // For the thread that calls turn(), as the rest. Calls `act` with the engine, and returns false
  // if it is detached.
  template <typename Act>
  bool with_source(Act act) EXCLUDES(source_mutex_) {
    MutexLock lock(source_mutex_);
    if (source_ != nullptr) act(*source_);
    return source_ != nullptr;
  }
  // Null until open(), which is called before the engine leads.
  AppendBuffer* pending() { return pending_.has_value() ? &*pending_ : nullptr; }
  void open(Position from) { pending_.emplace(options_, from); }
  void enter(State state) {
    progress_ |= state_.exchange(state, std::memory_order_acq_rel) != state;
  }
  // Returns whether there is a change.
  bool publish(Position committed, Time certain_until) {
    const Position old_committed = committed_.exchange(committed, std::memory_order_acq_rel);
    const std::uint64_t old_until =
        certain_until_ns_.exchange(certain_until.ns, std::memory_order_acq_rel);
    const bool is_change = old_committed != committed || old_until != certain_until.ns;
    progress_ |= is_change;
    return is_change;
  }
  // From now on nothing is durable.
  void withdraw() { certain_until_ns_.store(0, std::memory_order_release); }
  void close() {
    withdraw();
    enter(State::failed);
    if (pending_.has_value()) pending_->discard();
  }
  // Notifies the engine if something was published.
  void notify_progress() EXCLUDES(source_mutex_) {
    if (std::exchange(progress_, false)) with_source([](Source& source) { source.progressed(); });
  }

 protected:
  // It leads, and has not ended.
  bool is_open() const noexcept {
    const State state = state_.load(std::memory_order_acquire);
    return state == State::accepting || state == State::full;
  }

  const Clock& clock_;

 private:
  // With default settings etcd's members need this long to elect a leader after one of them died,
  // and no other node can lead before. Waiting clients stay connected for that, within a limit.
  static constexpr Duration kElectionAtEtcd = std::chrono::seconds(2);
  static constexpr Duration kBeyondDetectMax = std::chrono::milliseconds(800);

  const Duration detect_;
  const AppendBufferOptions options_;
  std::atomic<State> state_{State::following};
  std::atomic<Position> committed_{0};
  std::atomic<std::uint64_t> certain_until_ns_{0};
  std::optional<AppendBuffer> pending_;
  bool progress_ = false;
  Mutex source_mutex_;  // held during calls of the engine, so that detaching waits
  Source* source_ GUARDED_BY(source_mutex_) = nullptr;
};

}  // namespace lockd
