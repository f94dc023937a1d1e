// Who has failed to show an auth token lately, by address, and how long it has to wait for that.
//
// Only those who fail wait: nothing here is asked about a secret that is right. The addresses of
// one IPv6 network of 64 bits are one, as they are one customer's. Any thread may call it.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>

#include "base/mutex.h"

namespace lockd {

class FailedAttempts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Pause = std::chrono::milliseconds;

  // What every failed attempt costs; it doubles with each after kFailuresMax within kWindow, up to
  // kPauseMax.
  static constexpr Pause kPause{100};
  static constexpr Pause kPauseMax{5000};
  static constexpr std::uint32_t kFailuresMax = 20;
  static constexpr std::chrono::minutes kWindow{1};
  // Of those, whoever has not failed for longest is forgotten first.
  static constexpr std::size_t kAddressesMax = 4096;

  // One more, now. How long it has to wait.
  Pause add(const boost::asio::ip::address& address, Time now) EXCLUDES(mutex_);

 private:
  struct Source {
    boost::asio::ip::address network;
    Time since{};  // when its window began
    std::uint32_t failures = 0;
  };
  using Sources = std::list<Source>;

  Sources::iterator find(const boost::asio::ip::address& network) REQUIRES(mutex_);

  Mutex mutex_;
  Sources sources_ GUARDED_BY(mutex_);  // the last to fail is the last
  std::map<boost::asio::ip::address, Sources::iterator> by_network_ GUARDED_BY(mutex_);
};

}  // namespace lockd
