// ForgetfulJournal: a journal in memory, for tests.
//
// With Sync::by_hand, a test decides when events become durable. It can fill up, fail, and replay
// its events into another engine.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "lockd/journal.h"

namespace lockd {

class ForgetfulJournal : public Journal {
 public:
  enum class Sync { at_once, by_hand };

  explicit ForgetfulJournal(Sync sync = Sync::at_once) : sync_(sync) {}

  // Starts with the durable events of another journal, as after a crash.
  explicit ForgetfulJournal(ForgetfulJournal& crashed, Sync sync = Sync::at_once);

  bool recover(const std::function<void(const Event&)>& apply) override EXCLUDES(mutex_);
  Position append(std::span<const Event> events) override EXCLUDES(mutex_);
  void commit(Position position) override EXCLUDES(mutex_);
  Position durable() const noexcept override EXCLUDES(mutex_);
  State state() const noexcept override EXCLUDES(mutex_);
  bool is_behind() const noexcept override { return behind_.load(); }
  void attach(Source* source) override EXCLUDES(source_mutex_);

  // Makes all events durable and notifies the engine.
  void sync() EXCLUDES(mutex_);
  // Sets the state and notifies the engine.
  void set_state(State state) EXCLUDES(mutex_);
  void set_behind(bool behind) { behind_.store(behind); }

  // Passes events of a leader to the engine, which was created in the state `following`. Returns
  // whether the engine accepted all.
  bool follow(std::span<const Event> events) EXCLUDES(source_mutex_);
  // Makes the engine the leader.
  void lead(Position from = 0, Duration lease_min = {}) EXCLUDES(source_mutex_);

  // Lets the engine append a snapshot, as for a compaction. Returns the number of events before it.
  std::size_t describe() EXCLUDES(source_mutex_);

  // All events, durable or not. The views live as long as the journal.
  std::vector<Event> events() const EXCLUDES(mutex_);

 private:
  struct Kept {
    Event event;
    std::string key;
    std::string holder;
    ClientIdentity client;
  };

  void keep(const Event& event) REQUIRES(mutex_);
  void report() EXCLUDES(mutex_);

  const Sync sync_;

  std::atomic<bool> behind_{false};
  mutable Mutex mutex_;
  std::deque<Kept> kept_ GUARDED_BY(mutex_);  // a deque keeps the views valid
  Position durable_ GUARDED_BY(mutex_) = 0;
  State state_ GUARDED_BY(mutex_) = State::accepting;

  Mutex source_mutex_;  // held during calls of the engine, so that attach(nullptr) waits for them
  Source* source_ GUARDED_BY(source_mutex_) = nullptr;
};

}  // namespace lockd
