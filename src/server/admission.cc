#include "server/admission.h"

namespace lockd {

bool Admission::enter(Protocol protocol, const boost::asio::ip::address& address) {
  MutexLock lock(mutex_);
  if (caps_.connections != 0 && connections_ >= caps_.connections) return false;
  if (caps_.per_address != 0) {
    std::uint32_t& count = per_address_[address];
    if (count >= caps_.per_address) return false;
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
  if (caps_.per_address == 0) return;
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

std::optional<Unproven> Admission::await_proof(Unproven& unproven) {
  MutexLock lock(mutex_);
  unproven_.push_back(&unproven);
  if (++unproven_count_ <= caps_.unproven || caps_.unproven == 0) return {};
  Unproven& first = *unproven_.front();
  remove(first);
  return first;
}

void Admission::forget(Unproven& unproven) {
  MutexLock lock(mutex_);
  if (unproven.arrivals.linked()) remove(unproven);
}

void Admission::remove(Unproven& unproven) {
  unproven_.remove(&unproven);
  --unproven_count_;
}

std::uint64_t Admission::unproven() const {
  MutexLock lock(mutex_);
  return unproven_count_;
}

boost::asio::ip::address unmapped(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

}  // namespace lockd
