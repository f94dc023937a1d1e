// Several keys that a name holds, taken in one step and renewed together over the API.
//
// Its owner is told of the loss as with one lock (lockd/client/held_lock.h): what was granted or
// renewed is certain for its lease, counted from when the request was sent, and over is over. One
// thread renews, and asks again while there is no answer; another watches the clock, because a
// renewal may hang.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/certainty.h"
#include "lockctl/api/api.h"
#include "lockctl/run/held.h"
#include "lockctl/run/signals.h"
#include "lockd/client/boot_clock.h"
#include "lockd/types.h"

namespace lockd::cli {

// What was asked for, as every call about it says it.
struct SetTerms {
  std::vector<std::string> keys;
  Parameters naming;  // the keys, and the holder
};

struct SetGrant {
  Fence fence = 0;
  Duration ttl{};
  client::BootClock::time_point sent_at{};

  client::BootClock::time_point certain_until() const;
};

// Of a reply that is ok. Throws Failure when it makes no sense.
SetGrant set_grant_of(const ApiReply& reply, client::BootClock::time_point sent_at);

// Nothing when the server says that a part is not held. Throws Failure when it says neither.
std::optional<SetGrant> renew_set(Api& api, const SetTerms& terms, Fence fence);

class HeldSet final : public Held {
 public:
  // `lost` is set when they are held no more, and outlives it.
  HeldSet(std::unique_ptr<Api> api, SetTerms terms, const SetGrant& grant, const EventFd& lost);
  ~HeldSet() override;  // releases, if that was not done

  bool is_held() const override;
  std::optional<std::string> loss() const override;
  std::string name() const override;
  std::vector<std::string> variables() const override;
  std::optional<std::string> release() override;

 private:
  using Time = client::BootClock::time_point;

  void keep(const std::stop_token& stop);
  // False when the server says that a part was not held.
  bool give_back();
  void watch(const std::stop_token& stop);
  void lose(const std::string& how);
  // False when the token fires first.
  bool pause_until(Time time, const std::stop_token& stop);

  // Constant.
  const SetTerms terms_;
  const SetGrant grant_;
  const EventFd& lost_;

  // With synchronization of their own.
  mutable client::Certainty certainty_;
  const std::unique_ptr<Api> api_;  // the renewing thread's; the owner's once that has ended

  mutable std::mutex mutex_;
  std::condition_variable_any woken_;
  std::optional<std::string> loss_;  // guarded by the mutex

  std::atomic<bool> was_refused_{false};  // the server says that a part is held no more
  bool is_released_ = false;              // the owner's

  std::jthread keeper_;  // last: they use the others
  std::jthread watcher_;
};

}  // namespace lockd::cli
