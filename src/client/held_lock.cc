#include "lockd/client/held_lock.h"

#include <utility>

#include "client/hold.h"
#include "client/renewer.h"

namespace lockd::client {

HeldLock::HeldLock() noexcept = default;

HeldLock::HeldLock(std::shared_ptr<Renewer> renewer, std::shared_ptr<Hold> hold) noexcept
    : renewer_(std::move(renewer)), hold_(std::move(hold)) {}

HeldLock::~HeldLock() { release(); }

HeldLock::HeldLock(HeldLock&& other) noexcept = default;

HeldLock& HeldLock::operator=(HeldLock&& other) noexcept {
  if (this == &other) return *this;
  release();
  hold_ = std::move(other.hold_);
  renewer_ = std::move(other.renewer_);
  return *this;
}

bool HeldLock::is_held() const noexcept {
  return hold_ != nullptr && hold_->certainty.lasts(BootClock::now()) && !hold_->is_suspect;
}

BootClock::time_point HeldLock::expires_at() const noexcept {
  return hold_ == nullptr ? BootClock::time_point{} : hold_->certainty.until();
}

std::stop_token HeldLock::lost() const noexcept {
  return hold_ == nullptr ? std::stop_token() : hold_->lost.get_token();
}

std::optional<Status> HeldLock::loss() const {
  if (hold_ == nullptr) return {};
  if (auto known = hold_->loss()) return known;
  // The background thread may be about to find out.
  if (is_held() || hold_->release()) return {};
  return hold_->certainty.lasts(BootClock::now()) ? hold_->suspicion() : hold_->loss_by_clock();
}

Status HeldLock::last_error() const { return hold_ == nullptr ? Status{} : hold_->last_error(); }

bool HeldLock::queued_again() const noexcept {
  return hold_ != nullptr && hold_->terms.queued_again;
}

const std::string& HeldLock::key() const noexcept {
  static const std::string none;
  return hold_ == nullptr ? none : hold_->claim().keys().front();
}

const std::vector<std::string>& HeldLock::keys() const noexcept {
  static const std::vector<std::string> none;
  return hold_ == nullptr ? none : hold_->claim().keys();
}

Kind HeldLock::kind() const noexcept {
  return hold_ == nullptr ? Kind::lock : hold_->claim().kind();
}

std::chrono::seconds HeldLock::lease() const noexcept {
  return hold_ == nullptr ? std::chrono::seconds(0) : hold_->grant.lease;
}

Fence HeldLock::fence() const noexcept { return hold_ == nullptr ? 0 : hold_->grant.fence; }

std::string HeldLock::token() const {
  const bool lasts = hold_ != nullptr && hold_->certainty.lasts(BootClock::now());
  return lasts ? hold_->grant.token : std::string();
}

Status HeldLock::release() noexcept {
  if (hold_ == nullptr) return {Outcome::refused, "nothing is held"};
  return renewer_->release(*hold_);
}

}  // namespace lockd::client
