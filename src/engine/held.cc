#include "lockd/held.h"

#include <utility>

#include "engine/engine_core.h"
#include "engine/hold_renewer.h"
#include "lockd/engine.h"

namespace lockd {

Held::Held() noexcept = default;
Held::Held(std::shared_ptr<detail::KeptHold> hold) noexcept : hold_(std::move(hold)) {}
Held::~Held() { release(); }
Held::Held(Held&&) noexcept = default;

Held& Held::operator=(Held&& other) noexcept {
  if (this == &other) return *this;
  release();
  hold_ = std::move(other.hold_);
  return *this;
}

bool Held::is_held() const noexcept {
  // After the end of the hold the engine may be destroyed.
  if (hold_ == nullptr || hold_->certainty.is_over()) return false;
  return hold_->certainty.lasts(hold_->renewer->now());
}

Time Held::expires_at() const noexcept {
  return hold_ == nullptr ? Time{} : hold_->certainty.until();
}

std::stop_token Held::lost() const noexcept {
  return hold_ == nullptr ? std::stop_token() : hold_->lost.get_token();
}

std::optional<Outcome> Held::loss() const {
  if (hold_ == nullptr || is_held()) return {};
  return hold_->renewer->loss_of(*hold_);
}

Fence Held::fence() const noexcept { return hold_ == nullptr ? 0 : hold_->grant.fence; }

const std::vector<std::string>& Held::keys() const noexcept {
  static const std::vector<std::string> none;
  return hold_ == nullptr ? none : hold_->keys;
}

Outcome Held::release() noexcept {
  return hold_ == nullptr ? Outcome::expired : hold_->renewer->release(*hold_);
}

// --- Engine ---

HeldResult Engine::hold(const AcquireRequest& request, std::stop_token stop, OnLost on_lost) {
  if (request.holder.is_secret()) return {Outcome::invalid_holder};
  const InFlight::Call blocked(core_->blocked_calls());  // until renewer_ has the hold
  start_renewer();
  AcquireResult taken = acquire(request, std::move(stop));
  if (!taken) return {.outcome = taken.outcome, .conflicts = std::move(taken.conflicts)};
  auto hold = std::make_shared<detail::KeptHold>(renewer_, request.keys, request.holder.name(),
                                                 taken.grant, std::move(on_lost));
  renewer_->keep(hold);
  return {.outcome = Outcome::ok, .held = Held(std::move(hold))};
}

// Called before the acquisition, because starting the thread may throw.
void Engine::start_renewer() {
  std::call_once(renewer_started_, [this] {
    renewer_ = std::make_shared<detail::HoldRenewer>(*this, core_->clock());
  });
}

}  // namespace lockd
