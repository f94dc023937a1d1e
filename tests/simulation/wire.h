// A connection between a client and the server: two lines of bytes, each in order, each as late and
// in as many pieces as chance wants.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "lockd/types.h"

namespace lockd::simulation {

struct Segment {
  enum class What : std::uint8_t { bytes, end, reset };

  Time due;
  What what = What::bytes;
  std::string bytes{};
};

// One direction.
class Line {
 public:
  // Never before what was sent before it. Returns when it will be there.
  Time send(Time due, Segment::What what, std::string_view bytes = {}) {
    if (!segments_.empty() && due < segments_.back().due) due = segments_.back().due;
    segments_.push_back({due, what, std::string(bytes)});
    return due;
  }
  bool is_due(Time now) const { return !segments_.empty() && !(now < segments_.front().due); }
  bool empty() const { return segments_.empty(); }
  Segment take() {
    Segment next = std::move(segments_.front());
    segments_.pop_front();
    return next;
  }
  void drop() { segments_.clear(); }

 private:
  std::deque<Segment> segments_;
};

struct Wire {
  std::uint64_t id = 0;
  std::uint32_t client = 0;
  bool is_http = false;
  std::uint64_t life = 0;  // of the server, when it was opened
  Line to_server{};
  Line to_client{};
  bool client_closed = false;  // nothing more is sent by the client
  bool client_gone = false;    // nor read
  bool server_closed = false;
};

}  // namespace lockd::simulation
