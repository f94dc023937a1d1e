// One grant, shared by its owner, a HeldLock, and by the renewer that renews it.
#pragma once

#include <atomic>
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

// Whether the server refuses this client, which another try does not cure.
inline bool is_definite(Outcome outcome) {
  return outcome == Outcome::denied || outcome == Outcome::unauthorized;
}

class Hold {
 public:
  // What its owner asked for, and of whom.
  struct Terms {
    std::shared_ptr<Cluster> cluster;
    std::shared_ptr<const Claim> claim;  // never null
    std::function<void(const Status&)> on_lost{};
    std::function<void(const Status&)> on_suspect{};
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
  // Why it was not renewed when that was last tried: `ok` once a renewal is confirmed.
  Status last_error() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return last_error_;
  }
  void set_last_error(Status why) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    last_error_ = std::move(why);
  }
  // How it is lost when the clock says so and no server.
  Status loss_by_clock() const {
    const Status why = last_error();
    return is_definite(why.outcome) ? refusal(why) : Status{Outcome::unsure};
  }
  // How it is lost when a server refuses this client.
  Status refusal(const Status& why) const {
    return {Outcome::unauthorized, claim().name() + " cannot be renewed: " + describe(why)};
  }
  // What its owner sees while the lock is suspect.
  Status suspicion() const {
    return {Outcome::suspect,
            "the connection of " + claim().name() + " has ended: " + describe(last_error())};
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
  // Whether a server may have released it with its connection: until a renewal is confirmed.
  std::atomic<bool> is_suspect = false;
  std::stop_source lost;

 private:
  mutable Mutex mutex_;
  std::optional<Status> loss_ GUARDED_BY(mutex_);
  Status last_error_ GUARDED_BY(mutex_);
  std::optional<Status> release_ GUARDED_BY(mutex_);
};

}  // namespace lockd::client
