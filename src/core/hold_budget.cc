#include "core/hold_budget.h"

#include <cassert>

namespace lockd {
namespace {

// The key of a client in the counts, or empty if the holder belongs to no client. Names have no
// zero byte, so sessions and names do not collide.
std::string client_of(const Holder& holder) {
  if (!holder.is_secret()) return std::string(holder.name());
  if (holder.session_id() == 0) return {};
  return '\0' + std::to_string(holder.session_id());
}

}  // namespace

ClientHolds::ClientHolds(std::uint32_t holds_max, const HashKey& hash_key)
    : holds_max_(holds_max), hash_{hash_key} {
  for (Stripe& stripe : stripes_) {
    const MutexLock lock(stripe.mutex);
    stripe.counts = decltype(stripe.counts)(0, hash_);
  }
}

ClientHolds::Stripe& ClientHolds::stripe_of(const std::string& client) const {
  return stripes_[hash_(client) % stripes_.size()];
}

bool ClientHolds::add(const Holder& holder, std::uint32_t holds_max) {
  if (!is_limited()) return true;
  const std::string client = client_of(holder);
  if (client.empty()) return true;
  Stripe& stripe = stripe_of(client);
  const MutexLock lock(stripe.mutex);
  std::uint32_t& count = stripe.counts[client];
  if (count >= holds_max) return false;
  ++count;
  return true;
}

void ClientHolds::give_back(const Holder& holder) {
  if (!is_limited()) return;
  const std::string client = client_of(holder);
  if (client.empty()) return;
  Stripe& stripe = stripe_of(client);
  const MutexLock lock(stripe.mutex);
  const auto found = stripe.counts.find(client);
  assert(found != stripe.counts.end());
  if (--found->second == 0) stripe.counts.erase(found);
}

std::uint32_t ClientHolds::count(const Holder& holder) const {
  const std::string client = client_of(holder);
  const Stripe& stripe = stripe_of(client);
  const MutexLock lock(stripe.mutex);
  const auto found = stripe.counts.find(client);
  return found == stripe.counts.end() ? 0 : found->second;
}

std::int64_t HoldBudget::take_chunk() {
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (left > 0) {
    const std::int64_t taken = std::min(left, chunk_);
    if (left_.compare_exchange_weak(left, left - taken, std::memory_order_relaxed)) return taken;
  }
  return 0;
}

Outcome HoldUnits::take_counted(const Holder& holder) {
  if (!budget_->clients().take(holder)) return Outcome::max_client_holds;
  if (take_unit()) return Outcome::ok;
  budget_->clients().give_back(holder);
  return Outcome::max_holds;
}

// While the budget is overdrawn, cached units are not handed out: they are owed to it.
bool HoldUnits::take_unit() {
  if (cached_ == 0) {
    cached_ = budget_->take_chunk();
    taken_ += cached_;
  }
  if (cached_ == 0 || budget_->left() < 0) return false;
  --cached_;
  return true;
}

void HoldUnits::take_beyond_limit(const Holder& holder) {
  if (budget_ == nullptr) return;
  budget_->clients().take_beyond_limit(holder);
  if (cached_ > 0) {
    --cached_;
  } else {
    budget_->move(-1);
    ++taken_;
  }
}

// Caches up to two chunks, so that a table which alternates between take() and give_back() does not
// touch the budget. Units are not cached when a chunk is one unit, which makes the cap exact.
void HoldUnits::give_back_counted(const Holder& holder) {
  budget_->clients().give_back(holder);
  const std::int64_t chunk = budget_->chunk_;
  if (++cached_ <= 2 * (chunk - 1)) return;
  budget_->move(chunk);
  cached_ -= chunk;
  taken_ -= chunk;
}

}  // namespace lockd
