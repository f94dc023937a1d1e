// What is going to happen, in the order of its time; what is due at the same time, in the order in
// which it was entered.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "lockd/types.h"

namespace lockd::simulation {

enum class What : std::uint8_t {
  client_acts,   // subject: the client
  to_server,     // subject: the wire
  to_client,     // subject: the wire
  server_turns,  // subject: the server's life
  journal_turns,
  server_sweeps,
  server_stops,
  server_starts,
  fault_strikes,
  admin_acts,
};

struct Entry {
  Time at;
  std::uint64_t number;
  What what;
  std::uint64_t subject;
};

class Agenda {
 public:
  void enter(Time at, What what, std::uint64_t subject = 0) {
    entries_.push({at, ++last_number_, what, subject});
  }
  bool empty() const { return entries_.empty(); }
  Entry pop() {
    const Entry next = entries_.top();
    entries_.pop();
    return next;
  }

 private:
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.at.ns != b.at.ns ? a.at.ns > b.at.ns : a.number > b.number;
    }
  };

  std::priority_queue<Entry, std::vector<Entry>, Later> entries_;
  std::uint64_t last_number_ = 0;
};

}  // namespace lockd::simulation
