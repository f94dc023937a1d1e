// HandOver ends this node's leadership in an orderly way: because the server stops, or because an
// operator has asked to transfer the lead to another node.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "replication/published_journal.h"
#include "replication/term.h"

namespace lockd {

class HandOver {
 public:
  explicit HandOver(ReplicationContext& context) : context_(context) {}

  // Any thread.
  void resign() { resigns_.store(true, std::memory_order_release); }
  void transfer(const std::string& node) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    requested_ = node;
  }

  bool resigns() const { return resigns_.load(std::memory_order_acquire); }
  bool is_active() const { return resigns() || !successor_.empty(); }
  // The leader's key may be erased already.
  bool is_erasing() const { return erasing_; }
  // How the hand-over has ended; empty before.
  const std::string& outcome() const { return outcome_; }

  // `is_idle`: all appends are in the chain. Returns when to call again.
  Time turn(Time now, LeaderGuard& guard, PublishedJournal& journal, bool is_idle);

 private:
  void check_successor(Time now) EXCLUDES(mutex_);
  void on_successor(const std::string& node, const etcd::Answer& answer);
  void cancel_transfer(const std::string& node, const std::string& why) EXCLUDES(mutex_);
  std::string requested() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return requested_;
  }

  ReplicationContext& context_;
  std::atomic<bool> resigns_{false};
  Mutex mutex_;
  std::string requested_ GUARDED_BY(mutex_);  // to lead next; empty: none
  bool checking_ = false;
  Time next_check_{};
  std::optional<Time> requested_at_{};
  std::string successor_;  // its record says that it could lead
  std::optional<Time> began_at_{};
  bool erasing_ = false;
  bool etcd_is_full_ = false;
  int tries_ = 0;
  Time next_try_{};
  std::string outcome_;
};

}  // namespace lockd
