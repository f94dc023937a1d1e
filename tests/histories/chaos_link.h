// One connection through the chaos proxy: two sockets, and what is wrong between them.
//
// For the proxy's thread.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "histories/chaos_proxy.h"

namespace lockd::histories {

class ChaosProxy::Link {
 public:
  Link(int client, int server, std::uint16_t of)
      : up_{client, server}, down_{server, client}, of_(of) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  std::uint16_t of() const { return of_; }
  int client() const { return up_.from; }
  int server() const { return down_.from; }

  void break_it(LinkFault fault, Instant until, std::mt19937_64& random);
  // Moves what can be moved, in both directions. `ending`: somebody may have sent their last. False
  // when it is over.
  bool advance(Instant now, bool ending);
  // Whether a later moment, rather than a socket, will move something.
  bool waits() const { return up_.waits() || down_.waits(); }

 private:
  // One way.
  struct Way {
    int from;
    int to;
    std::string held{};      // read, and not yet sent
    Instant release_at = 0;  // not before that
    bool ended = false;      // no more comes
    bool told = false;       // and the other side knows
    bool dropped = false;    // it knows though more may come, which goes nowhere
    Instant stalled_until = 0;
    Instant delayed_until = 0;
    Instant split_until = 0;
    std::int64_t left = -1;  // bytes until it is cut; -1: no such limit

    bool waits() const {
      return !held.empty() || stalled_until != 0 || left == 0 || (ended && !told);
    }
  };

  bool advance(Way& way, Instant now, bool ending);
  bool read(Way& way, Instant now, bool ending);
  bool send(Way& way, Instant now);
  void reset();

  Way up_;
  Way down_;
  const std::uint16_t of_;
};

}  // namespace lockd::histories
