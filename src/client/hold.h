// One grant, shared by its owner, a HeldLock, and by the renewer that renews it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "client/certainty.h"
#include "client/cluster.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

class Hold {
 public:
  // What its owner asked for, and of whom.
  struct Terms {
    std::shared_ptr<Cluster> cluster;
    std::string key;
    Kind kind = Kind::lock;
    std::function<void(const Status&)> on_lost{};
    bool queued_again = false;
  };

  Hold(Terms agreed, LineGrant granted)
      : terms(std::move(agreed)), grant(std::move(granted)), certainty(grant.certain_until()) {}

  LineHold line_hold() const {
    return {.key = terms.key, .token = grant.token, .kind = terms.kind};
  }

  // How it was lost, if it was.
  std::optional<Status> loss() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return loss_;
  }
  void lose(Status how) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    loss_ = std::move(how);
  }
  // How its owner's release went, if there was one.
  std::optional<Status> release() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return release_;
  }
  void set_release(Status how) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    release_ = std::move(how);
  }

  // Constant.
  const Terms terms;
  const LineGrant grant;

  // With synchronization of their own.
  Certainty certainty;
  std::stop_source lost;

 private:
  mutable Mutex mutex_;
  std::optional<Status> loss_ GUARDED_BY(mutex_);
  std::optional<Status> release_ GUARDED_BY(mutex_);
};

}  // namespace lockd::client
