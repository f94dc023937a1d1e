// One grant, shared by its owner, a HeldLock, and by the renewer that renews it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/certainty.h"
#include "base/mutex.h"
#include "client/claim.h"
#include "client/cluster.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

class Hold {
 public:
  // What its owner asked for, and of whom.
  struct Terms {
    std::shared_ptr<Cluster> cluster;
    std::shared_ptr<const Claim> claim;  // never null
    std::function<void(const Status&)> on_lost{};
    bool queued_again = false;
  };

  Hold(Terms agreed, LineGrant granted)
      : terms(std::move(agreed)), grant(std::move(granted)), certainty(grant.certain_until()) {}

  const Claim& claim() const { return *terms.claim; }

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
  Certainty<BootClock::time_point> certainty;
  std::stop_source lost;

 private:
  mutable Mutex mutex_;
  std::optional<Status> loss_ GUARDED_BY(mutex_);
  std::optional<Status> release_ GUARDED_BY(mutex_);
};

}  // namespace lockd::client
