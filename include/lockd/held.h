// What Engine::hold() and hold_all() give: a key, or several, held for as long as a scope lasts.
//
//   {
//     auto held = engine.hold({.key = "report", .holder = "worker-7", .ttl = 30s, .wait = 10s});
//     if (!held) return show(describe(held.outcome));
//     while (more_to_do() && held->is_held()) store.write(next_piece(), held->fence());
//   }                                                      // released
//
// The engine renews it when a third of its lease has passed, on one thread for all. When that is no
// longer possible, because an admin ended the hold, somebody released it under its holder's name,
// or the process stood still for longer than the lease, its owner is told, once, in every way there
// is: is_held() turns false, the stop token fires, and the callback that was given is called.
//
// What it is certain of. The lease runs until expires_at(), by the engine's clock; with a journal,
// that of the last renewal that is durable. Past it the hold is lost, whatever may still happen:
// is_held() compares the clock each time it is asked, and never turns true again. That somebody
// else ended the hold is noticed with the next renewal: the fence is for what happens until then.
//
// Any thread may call the const functions while another moves nothing; release, move and destroy it
// like any other value, from one thread at a time. Once the engine is gone it holds nothing.
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
  // Releases it, as release() does. Afterwards the callback is not running, and will not be called;
  // unless it is the callback that destroys it.
  ~Held();
  Held(Held&&) noexcept;
  // What it held before is released.
  Held& operator=(Held&&) noexcept;

  // Whether nobody else can have been granted it. Costs a look at the clock. False is final.
  bool is_held() const noexcept;
  // When that ends, unless it is renewed; or when it ended.
  Time expires_at() const noexcept;
  // Fires when it is known that it is lost; not for a release. Ask is_held() to know now.
  std::stop_token lost() const noexcept;
  // How it was lost: expired, stale or not_holder, as a renewal found it; closed: the engine is
  // gone. Nothing while it is held, and after a release.
  std::optional<Outcome> loss() const;

  // The number of the grant, also after its end; 0 when nothing is held.
  Fence fence() const noexcept;
  const std::vector<std::string>& keys() const noexcept;  // empty when nothing is held

  // Gives it back. ok; how it was lost, when it was lost before, a part of it too; or storage, and
  // then its lease ends it. Whatever it is, nothing is held afterwards. A second call answers as
  // the first did.
  Outcome release() noexcept;

 private:
  friend class Engine;

  explicit Held(std::shared_ptr<detail::KeptHold> hold) noexcept;

  std::shared_ptr<detail::KeptHold> hold_;  // null: holds nothing
};

// What is held, or why nothing is.
struct [[nodiscard]] HeldResult {
  Outcome outcome = Outcome::ok;
  Held held{};
  std::vector<SetConflict> conflicts{};  // who was in the way, when that is the reason

  explicit operator bool() const { return outcome == Outcome::ok; }
  Held* operator->() { return &held; }
  const Held* operator->() const { return &held; }
};

// Called at most once, with the loss, on the thread that renews: it must not block, as all renewals
// of the engine wait for it, nor throw. It may release or destroy the Held.
using OnLost = std::function<void(Outcome)>;

}  // namespace lockd
