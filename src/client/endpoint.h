// One server, as its connections are opened: where it is, how it is spoken to, whom it must be.
//
// Made once and never changed, but for what is learnt of the server; any thread may use it.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "client/tls_client.h"
#include "lockd/client/address.h"
#include "lockd/client/boot_clock.h"
#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"

namespace lockd::client {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// What is behind a name, in the order in which to try it; never empty.
using SocketAddresses = std::vector<SocketAddress>;

struct Endpoint {
  Address address;
  ConnectOptions options;
  std::string introduction;                // the lines that say who we are
  std::shared_ptr<const TlsClient> tls{};  // null: plain text
  // Whether the server takes an introduction: one that knows none closes the connection.
  mutable std::atomic<bool> takes_introduction = true;

  // `invalid` when the auth token, the name or the note cannot be sent, or the files for TLS cannot
  // be used.
  static Result<std::shared_ptr<const Endpoint>> make(const Address& address,
                                                      const ConnectOptions& options);

  // The lines that send the auth token, of which the file is read; empty when there is none.
  // `invalid` when it cannot be sent, or the file cannot be used.
  Result<std::string> handshake() const;
};

// Looks the host up, for as long as `until`. The system's resolver cannot be interrupted: for a
// name it is asked on a thread of its own, which is left behind when nobody waits for it any more.
Result<SocketAddresses> resolve(const Address& address, BootClock::time_point until,
                                std::stop_token stop);
// The same without waiting: `take` is passed the answer, at once when the host is an IP address or
// the system gives no thread, else on that other thread.
void resolve_in_background(const Address& address,
                           std::function<void(Result<SocketAddresses>)> take);

}  // namespace lockd::client
