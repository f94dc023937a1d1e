#include "server/admission.h"

namespace lockd {

bool Admission::enter(Protocol protocol, const boost::asio::ip::address& address) {
  MutexLock lock(mutex_);
  if (connections_max_ != 0 && connections_ >= connections_max_) return false;
  if (per_address_max_ != 0) {
    std::uint32_t& count = per_address_[address];
    if (count >= per_address_max_) return false;
    ++count;
  }
  ++connections_;
  if (protocol == Protocol::line) ++line_connections_;
  return true;
}

void Admission::leave(Protocol protocol, const boost::asio::ip::address& address) {
  MutexLock lock(mutex_);
  --connections_;
  if (protocol == Protocol::line) --line_connections_;
  if (per_address_max_ == 0) return;
  const auto found = per_address_.find(address);
  if (--found->second == 0) per_address_.erase(found);
}

std::uint64_t Admission::connections() const {
  MutexLock lock(mutex_);
  return connections_;
}

std::uint64_t Admission::line_connections() const {
  MutexLock lock(mutex_);
  return line_connections_;
}

boost::asio::ip::address unmapped(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

}  // namespace lockd
