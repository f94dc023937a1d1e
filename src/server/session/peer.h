// Where a client comes from, as its connection knows it.
#pragma once

#include <string>

#include "lockd/types.h"

namespace lockd {

struct Peer {
  std::string address{};     // "10.0.0.7:51234"
  bool is_loopback = false;  // it is on this machine
  bool at_loopback = false;  // over HTTP: it came to an address that only this machine has
  bool is_tls = false;
  // A client of another server, which carries its bytes: "node/17", by its id there; else empty.
  std::string forwarded_as{};
  // The name and kind of such a client's credential.
  std::string principal{};
  bool has_certificate = false;
  ClientRef client{};  // who it had said it is

  bool is_forwarded() const { return !forwarded_as.empty(); }
};

}  // namespace lockd
