// HoldRenewer renews the holds of Engine::hold() on one thread, and notifies owners of lost holds.
//
// Each turn renews the holds that are due, in one batch; extends the holds whose renewals have
// become durable; and notifies the owners of lost holds. It does not wait for the journal, so that
// a hung disk delays no notification, and it calls no owner under its lock.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/certainty.h"
#include "base/loss_notifier.h"
#include "base/mutex.h"
#include "engine/sweeper.h"
#include "lockd/batch.h"
#include "lockd/clock.h"
#include "lockd/engine.h"
#include "lockd/held.h"

namespace lockd::detail {

class HoldRenewer;

// One grant, shared by its owner (a Held) and the renewer.
struct KeptHold {
  KeptHold(std::shared_ptr<HoldRenewer> by, const KeyItems& items, std::string_view holder,
           const Grant& granted, OnLost on_loss);

  HoldId id() const { return {.keys = items, .holder = holder, .fence = grant.fence}; }

  // Constant.
  const std::shared_ptr<HoldRenewer> renewer;
  const std::vector<std::string> keys;
  const std::vector<KeyItem> items;  // views into `keys`
  const std::string holder;
  const Grant grant;
  const OnLost on_lost;

  // Thread-safe.
  Certainty<Time> certainty;
  std::stop_source lost;

  // A renewal that is not durable yet.
  struct Renewal {
    Position position = 0;
    Time expires_at{};
  };

  // Guarded by the renewer's mutex.
  Time renew_at;
  std::optional<Renewal> renewal;
  std::optional<Outcome> loss;
  std::optional<Outcome> release;  // the result of the owner's release
};

class HoldRenewer {
 public:
  // Throws std::system_error if no thread can be started.
  HoldRenewer(Engine& engine, const Clock& clock);

  void keep(const std::shared_ptr<KeptHold>& hold) EXCLUDES(mutex_);
  // See Held::release(). Called by the owner's thread.
  Outcome release(KeptHold& hold) EXCLUDES(mutex_);
  // See Held::loss(). Precondition: the hold is over.
  std::optional<Outcome> loss_of(const KeptHold& hold) EXCLUDES(mutex_);
  Time now() const { return clock_.now(); }

  // Called by the engine's destructor: all holds are lost.
  void stop() EXCLUDES(mutex_);

 private:
  using Holds = std::vector<std::shared_ptr<KeptHold>>;

  Time turn() EXCLUDES(mutex_);
  Holds settle_and_collect_due(Time now) EXCLUDES(mutex_);
  void renew(const Holds& due) EXCLUDES(mutex_);
  void apply_answer(KeptHold& hold, const Answer& answer, Position position) REQUIRES(mutex_);
  void settle(KeptHold& hold) REQUIRES(mutex_);
  // Precondition: holds_ contains the hold.
  void lose(KeptHold& hold, Outcome how) REQUIRES(mutex_);
  // Returns false if there is no owner to notify.
  bool notify_one() EXCLUDES(mutex_);
  Time next() EXCLUDES(mutex_);

  Engine& engine_;
  const Clock& clock_;  // of the engine

  LossNotifier<KeptHold> losses_;
  Mutex mutex_;
  std::unordered_map<const KeptHold*, std::shared_ptr<KeptHold>> holds_ GUARDED_BY(mutex_);

  std::optional<Sweeper> thread_;  // last: uses all of the above
};

}  // namespace lockd::detail
