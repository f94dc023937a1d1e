// Held: one key or several, held for a scope. Returned by Engine::hold().
//
//   {
//     auto held = engine.hold({.key = "report", .holder = "worker-7", .ttl = 30s, .wait = 10s});
//     if (!held) return show(describe(held.outcome));
//     while (more_to_do() && held->is_held()) store.write(next_piece(), held->fence());
//   }                                                      // released
//
// One thread of the engine renews each Held when a third of its lease has passed. When a hold is
// lost, because an admin revoked it, another caller released it under the holder's name, or the
// process was paused for longer than the lease, the engine notifies the owner once: is_held() turns
// false, the stop token fires, and the callback is called.
//
// Certainty: the lease lasts until expires_at() by the engine's clock; with a journal, only durable
// renewals count. After that the hold is lost for good: is_held() reads the clock on every call and
// never turns true again. The engine detects a revoked or released hold with the next renewal;
// until then the fence protects the resource.
//
// Const functions are thread-safe. Release, move and destroy a Held from one thread at a time, with
// no concurrent const call. After the engine is destroyed it holds nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lockd/requests.h"
#include "lockd/types.h"

namespace lockd {

namespace detail {
struct KeptHold;
}

class Held {
 public:
  Held() noexcept;  // holds nothing
  // Calls release(). Afterwards the callback is not running and will not be called, unless the
  // callback itself destroys the Held.
  ~Held();
  Held(Held&&) noexcept;
  // Releases the current hold first.
  Held& operator=(Held&&) noexcept;

  // Whether no other holder can have been granted the key. Reads the clock. False is final.
  bool is_held() const noexcept;
  // The end of the lease unless it is renewed, or the time at which the hold ended.
  Time expires_at() const noexcept;
  // Fires when the engine detects the loss; not on release. is_held() may be false earlier.
  std::stop_token lost() const noexcept;
  // The cause of the loss: expired, stale or not_holder, as a renewal found it; or closed, by the
  // engine's destructor. None while held and after a release.
  std::optional<Outcome> loss() const;

  // The fence of the grant, also after its end; 0 for an empty Held.
  Fence fence() const noexcept;
  const std::vector<std::string>& keys() const noexcept;  // empty for an empty Held

  // Ends the hold and returns ok; the cause of the loss, if any key was lost before; or storage, in
  // which case the lease ends the hold. Nothing is held afterwards. A second call returns the same.
  Outcome release() noexcept;

 private:
  friend class Engine;

  explicit Held(std::shared_ptr<detail::KeptHold> hold) noexcept;

  std::shared_ptr<detail::KeptHold> hold_;  // null: holds nothing
};

// A Held, or the reason for its absence.
struct [[nodiscard]] HeldResult {
  Outcome outcome = Outcome::ok;
  Held held{};
  std::vector<Conflict> conflicts{};  // the keys that prevented the grant

  explicit operator bool() const { return outcome == Outcome::ok; }
  Held* operator->() { return &held; }
  const Held* operator->() const { return &held; }
};

// Called at most once, with the cause of the loss, on the renewing thread. It must not throw, and
// must not block because it delays all renewals of the engine. It may release or destroy the Held.
using OnLost = std::function<void(Outcome)>;

}  // namespace lockd
