// A journal in memory, for tests: it forgets everything when it goes.
//
// Durability is moved by hand, so that a test can stand between an append and its sync; can fill up
// and fail; and what was appended can be replayed into another engine.
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

  // Starts as a copy of what another has made durable, as after a crash.
  explicit ForgetfulJournal(ForgetfulJournal& crashed, Sync sync = Sync::at_once);

  bool recover(const std::function<void(const Event&)>& apply) override EXCLUDES(mutex_);
  Position append(std::span<const Event> events) override EXCLUDES(mutex_);
  void commit(Position position) override EXCLUDES(mutex_);
  Position durable() const noexcept override EXCLUDES(mutex_);
  State state() const noexcept override EXCLUDES(mutex_);
  bool is_behind() const noexcept override { return behind_.load(); }
  void attach(Source* source) override EXCLUDES(source_mutex_);

  // Makes durable what has been appended, and tells the engine.
  void sync() EXCLUDES(mutex_);
  // Full, failed, or accepting again; and tells the engine.
  void set_state(State state) EXCLUDES(mutex_);
  // Whoever waits for an answer should ask for no more.
  void set_behind(bool behind) { behind_.store(behind); }

  // As if another engine had appended them; set_state(following) came before the engine was made.
  // Returns whether all were accepted.
  bool follow(std::span<const Event> events) EXCLUDES(source_mutex_);
  // Ends the following.
  void lead(Position from = 0, Duration lease_min = {}) EXCLUDES(source_mutex_);

  // Has the engine describe everything there is, as for a compaction. Returns how many events were
  // there before that.
  std::size_t describe() EXCLUDES(source_mutex_);

  // Everything appended, durable or not. The views live as long as the journal.
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
  std::deque<Kept> kept_ GUARDED_BY(mutex_);  // a deque: what the views point to stays in place
  Position durable_ GUARDED_BY(mutex_) = 0;
  State state_ GUARDED_BY(mutex_) = State::accepting;

  Mutex source_mutex_;  // held while the engine is called, so that taking it back waits
  Source* source_ GUARDED_BY(source_mutex_) = nullptr;
};

}  // namespace lockd
