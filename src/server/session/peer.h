// Where a client comes from, as its connection knows it.
#pragma once

#include <string>

namespace lockd {

struct Peer {
  std::string address{};     // "10.0.0.7:51234"
  bool is_loopback = false;  // it is on this machine
  bool at_loopback = false;  // over HTTP: it came to an address that only this machine has
  bool is_tls = false;
  std::string forwarded_as{};  // "node/17": it is connected to that server, which speaks for it
};

}  // namespace lockd
