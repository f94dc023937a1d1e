// Who is let in: the caps on connections, over all loops, exact whoever comes at once.
//
// A connection is unproven while it is in a TLS handshake, or has not presented the auth token that
// is asked for. Of these there is a cap too, and the one that came first makes room for one more:
// strangers who say nothing must not keep out who has something to say.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/list.h"
#include "base/mutex.h"
#include "lockd/types.h"

namespace lockd {

class Worker;

enum class Protocol : std::uint8_t { line, http };
inline std::string_view name_of(Protocol protocol) {
  return protocol == Protocol::line ? "line" : "http";
}

// An unproven connection, by the loop that serves it.
struct Unproven {
  Worker* worker = nullptr;
  SessionId session = 0;
  ListHook<Unproven> arrivals{};  // belongs to Admission
};

class Admission {
 public:
  // 0 is no limit.
  struct Caps {
    std::uint32_t connections = 0;
    std::uint32_t per_address = 0;
    std::uint32_t unproven = 0;
  };

  explicit Admission(const Caps& caps) : caps_(caps) {}

  // False when there are too many; else leave() must follow.
  bool enter(Protocol protocol, const boost::asio::ip::address& address) EXCLUDES(mutex_);
  void leave(Protocol protocol, const boost::asio::ip::address& address) EXCLUDES(mutex_);
  std::uint64_t connections() const EXCLUDES(mutex_);
  std::uint64_t line_connections() const EXCLUDES(mutex_);

  // Counts one that has come and is unproven, until forget(). The one that has to go for it, if
  // one has: it does not count any more, and its loop is to be told. So there are never more than
  // the cap but for those whose loops have yet to hear of it.
  std::optional<Unproven> await_proof(Unproven& unproven) EXCLUDES(mutex_);
  // It has proved itself, or is gone. Nothing happens to one that does not count.
  void forget(Unproven& unproven) EXCLUDES(mutex_);
  std::uint64_t unproven() const EXCLUDES(mutex_);

 private:
  void remove(Unproven& unproven) REQUIRES(mutex_);

  const Caps caps_;

  mutable Mutex mutex_;
  std::uint64_t connections_ GUARDED_BY(mutex_) = 0;
  std::uint64_t line_connections_ GUARDED_BY(mutex_) = 0;  // of them
  std::map<boost::asio::ip::address, std::uint32_t> per_address_ GUARDED_BY(mutex_);
  List<Unproven, &Unproven::arrivals> unproven_ GUARDED_BY(mutex_);  // in the order of arrival
  std::uint64_t unproven_count_ GUARDED_BY(mutex_) = 0;
};

// An IPv4 address that came in by an IPv6 socket, as what it is.
boost::asio::ip::address unmapped(const boost::asio::ip::address& address);

}  // namespace lockd
