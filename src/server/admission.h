// Who is let in: the caps on connections, over all loops, exact whoever comes at once.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <map>

#include "base/mutex.h"

namespace lockd {

enum class Protocol : std::uint8_t { line, http };

class Admission {
 public:
  // 0 is no limit.
  Admission(std::uint32_t connections_max, std::uint32_t per_address_max)
      : connections_max_(connections_max), per_address_max_(per_address_max) {}

  // False when there are too many; else leave() must follow.
  bool enter(Protocol protocol, const boost::asio::ip::address& address) EXCLUDES(mutex_);
  void leave(Protocol protocol, const boost::asio::ip::address& address) EXCLUDES(mutex_);
  std::uint64_t connections() const EXCLUDES(mutex_);
  std::uint64_t line_connections() const EXCLUDES(mutex_);

 private:
  const std::uint32_t connections_max_;
  const std::uint32_t per_address_max_;

  mutable Mutex mutex_;
  std::uint64_t connections_ GUARDED_BY(mutex_) = 0;
  std::uint64_t line_connections_ GUARDED_BY(mutex_) = 0;  // of them
  std::map<boost::asio::ip::address, std::uint32_t> per_address_ GUARDED_BY(mutex_);
};

// An IPv4 address that came in by an IPv6 socket, as what it is.
boost::asio::ip::address unmapped(const boost::asio::ip::address& address);

}  // namespace lockd
