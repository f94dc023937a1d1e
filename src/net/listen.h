// Opens the socket that a server listens on.
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace lockd {

struct ListeningSocket {
  Descriptor descriptor{};  // does not block
  std::uint16_t port = 0;
  std::string error{};  // when there is no descriptor: one line for people
};

// An empty host is every address, of both families where there is IPv6. Port 0 picks a free one. A
// port in use is an error, always: two servers must never share one port's clients by accident.
ListeningSocket listen_on(const std::string& host, std::uint16_t port);

// One that somebody else has opened, as systemd does for a service. Takes it over.
ListeningSocket adopt_listener(int descriptor);

}  // namespace lockd
