// What befell each server and each connection of a history, and what follows for leases.
//
// Made once from a history; then only read.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "histories/operation.h"

namespace lockd::histories {

class Timeline {
 public:
  explicit Timeline(const History& history);

  // The earliest time at which the server can have taken the connection for closed by its client;
  // kNever if that did not happen.
  Instant disconnected(const Operation& operation) const;
  // When the connection was over for its client, however it ended; kNever if it did not.
  Instant over(std::uint64_t conn) const;

  // A lease that ends by `until` if nothing happens can end as late as this: over a restart or a
  // failover it is at most armed anew. A reboot can come before its end is on a slow disk; and
  // then, with a wall clock that was moved back, nobody knows that it is over.
  Instant armed_until(std::uint16_t server, Instant from, Instant until, Instant ttl) const;
  // The beginning of the first jump ahead of the server's clock that was not over at `from`.
  Instant next_suspend(std::uint16_t server, Instant from) const;

  // Whether it is several servers, of which one leads: then lives are epochs.
  bool is_cluster(std::uint16_t server) const { return servers_[server].is_cluster; }
  // Whether the server was restarted, or was not running, at any time in between; of a cluster,
  // whether another came to lead.
  bool restarted(std::uint16_t server, Instant from, Instant to) const;
  // Likewise, or was stopped, or what it rests on was.
  bool interrupted(std::uint16_t server, Instant from, Instant to) const;
  // When its storage failed in that life; kNever if it did not.
  Instant failed(std::uint16_t server, std::uint32_t life) const;
  // When the last fault was over; kNever if there is no saying.
  Instant healed() const { return healed_; }

 private:
  struct Span {
    Instant from;
    Instant to;
  };
  struct Ending {
    Instant noticed;  // kNever: the server was gone as well
    Instant over;
  };
  struct Life {
    std::uint32_t life;
    Instant failed;
  };
  struct Server {
    bool auto_release = true;
    bool is_cluster = false;
    std::vector<Span> restarts;
    std::vector<Span> reboots;  // which are restarts as well
    std::vector<Span> stops;
    std::vector<Span> suspends;
    std::vector<Life> failures;
  };

  void add_fault(const Operation& operation, std::string_view name);
  static bool meets(const std::vector<Span>& spans, Instant from, Instant to);

  std::vector<Server> servers_;
  std::unordered_map<std::uint64_t, Ending> endings_;
  Instant healed_ = kNever;
};

}  // namespace lockd::histories
