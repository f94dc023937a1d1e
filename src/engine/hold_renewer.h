// Keeps what Engine::hold() has taken: one thread that renews it and tells owners of what is lost.
//
// A turn of it: renew what is due, in one batch; believe in what has become durable; notify the
// owners of what is lost. It neither waits for the journal, so that a disk that hangs keeps nobody
// from being told, nor does it call anybody under its lock.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/certainty.h"
#include "base/mutex.h"
#include "engine/sweeper.h"
#include "lockd/clock.h"
#include "lockd/engine.h"
#include "lockd/held.h"

namespace lockd::detail {

class HoldRenewer;

// One grant, shared by its owner, a Held, and by the renewer.
struct KeptHold {
  KeptHold(std::shared_ptr<HoldRenewer> by, const std::vector<SetItem>& items,
           std::string_view holder, const Grant& granted, OnLost told);

  SetId id() const { return {.keys = items, .holder = holder, .fence = grant.fence}; }

  // Constant.
  const std::shared_ptr<HoldRenewer> renewer;
  const std::vector<std::string> keys;
  const std::vector<SetItem> items;  // refer to the keys
  const std::string holder;
  const Grant grant;
  const OnLost on_lost;

  // With synchronization of their own.
  Certainty<Time> certainty;
  std::stop_source lost;

  // A renewal that the journal has yet to make durable.
  struct Renewal {
    Position position = 0;
    Time expires_at{};
  };

  // Guarded by the renewer's mutex.
  Time renew_at;
  std::optional<Renewal> renewal;
  std::optional<Outcome> loss;
  std::optional<Outcome> release;  // how the owner's went
};

class HoldRenewer {
 public:
  // Throws std::system_error when the system gives no thread.
  explicit HoldRenewer(Engine& engine);

  void keep(const std::shared_ptr<KeptHold>& hold) EXCLUDES(mutex_);
  // See Held. By the owner, on the thread that has it.
  Outcome release(KeptHold& hold) EXCLUDES(mutex_);
  // Of one that is over.
  std::optional<Outcome> loss_of(const KeptHold& hold) EXCLUDES(mutex_);
  Time now() const;

  // The engine is about to go: what is held is lost by it.
  void stop() EXCLUDES(mutex_);

 private:
  using Holds = std::vector<std::shared_ptr<KeptHold>>;

  class EngineClock final : public Clock {
   public:
    explicit EngineClock(Engine& engine) : engine_(engine) {}
    Time now() const noexcept override { return engine_.now(); }

   private:
    Engine& engine_;
  };

  Time turn() EXCLUDES(mutex_);
  Holds take_due(Time now) EXCLUDES(mutex_);
  void renew(const Holds& due) EXCLUDES(mutex_);
  void take_answer(KeptHold& hold, const SetResult& answer, Position position) REQUIRES(mutex_);
  void settle(KeptHold& hold) REQUIRES(mutex_);
  // Precondition: it is kept.
  void lose(KeptHold& hold, Outcome how) REQUIRES(mutex_);
  bool tell_one() EXCLUDES(mutex_);
  void withdraw(const KeptHold& hold) REQUIRES(mutex_);
  Time next() EXCLUDES(mutex_);

  Engine& engine_;
  const EngineClock clock_;

  Mutex mutex_;
  std::condition_variable_any told_;
  std::unordered_map<const KeptHold*, std::shared_ptr<KeptHold>> holds_ GUARDED_BY(mutex_);
  std::list<std::shared_ptr<KeptHold>> unnotified_ GUARDED_BY(mutex_);  // lost; owners do not know
  const KeptHold* telling_ GUARDED_BY(mutex_) = nullptr;
  std::thread::id telling_on_ GUARDED_BY(mutex_);

  std::optional<Sweeper> thread_;  // last: it uses all of the above
};

}  // namespace lockd::detail
