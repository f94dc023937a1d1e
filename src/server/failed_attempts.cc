#include "server/failed_attempts.h"

#include <algorithm>

namespace lockd {
namespace {

boost::asio::ip::address network_of(const boost::asio::ip::address& address) {
  if (!address.is_v6()) return address;
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), 0);
  return boost::asio::ip::address_v6(bytes);
}

}  // namespace

FailedAttempts::Pause FailedAttempts::add(const boost::asio::ip::address& address, Time now) {
  MutexLock lock(mutex_);
  Source& source = *find(network_of(address));
  if (source.failures == 0 || now - source.since > kWindow) {
    source.since = now;
    source.failures = 0;
  }
  const std::uint32_t before = source.failures++;
  if (before < kFailuresMax) return kPause;
  constexpr std::uint32_t kDoublingsMax = 6;
  return std::min(kPause * (1U << std::min(before - kFailuresMax + 1, kDoublingsMax)), kPauseMax);
}

// As the last to fail; made when it is not known.
FailedAttempts::Sources::iterator FailedAttempts::find(const boost::asio::ip::address& network) {
  const auto known = by_network_.find(network);
  if (known != by_network_.end()) {
    sources_.splice(sources_.end(), sources_, known->second);
    return known->second;
  }
  if (sources_.size() == kAddressesMax) {
    by_network_.erase(sources_.front().network);
    sources_.pop_front();
  }
  sources_.push_back({network});
  return by_network_[network] = std::prev(sources_.end());
}

}  // namespace lockd
