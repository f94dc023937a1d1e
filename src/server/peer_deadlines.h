// PeerDeadlines: how long a client may take to authenticate, to complete a request and to send the
// next one, and how long its refusal is held back.
//
// The rules alone: every function takes the current time, and there is no clock, socket or session
// in here. ClientConnection owns one and carries out what check() returns. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "lockd/types.h"

namespace lockd {

class PeerDeadlines {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Limits {
    Duration auth;  // from the connection's start until the client has authenticated
    Duration read;  // for a request as a whole, and for the time between two
  };
  // The connection as it is when check() is called.
  struct State {
    bool is_authenticated = true;
    bool is_paused = false;      // its refusal is held back
    bool is_established = true;  // TLS has shaken hands, where there is TLS
    bool is_open = true;         // its session takes requests
    bool takes_input = true;     // the server reads what the client sends, and can reply to it
    Time last_input{};
  };
  enum class Due : std::uint8_t { nothing, authentication, request, next_request, ping };

  // A client that may be silent is pinged this often.
  static constexpr std::chrono::seconds kPingInterval{15};

  PeerDeadlines(Time opened, Limits limits) : limits_(limits), opened_(opened) {}

  // The client has sent something. `request` is the number of the request of which a part is there;
  // 0: all requests are complete.
  void on_input(Time now, std::uint64_t request);
  // A reply that had to wait was sent: silence counts from here.
  void on_reply(Time now) { last_reply_ = now; }
  bool is_in_request() const { return request_ != 0; }

  // What is due, once. `may_be_silent` is called only for a client that is silent between two
  // requests: whether it holds, waits or listens. Its silence counts from the last time it did.
  Due check(Time now, const State& state, const std::function<bool()>& may_be_silent);

  // The refusal is held back until then.
  void begin_pause(Time until) { pause_until_ = until; }
  bool is_pausing() const { return pause_until_.has_value(); }
  // Whether a pause ends now.
  bool end_pause(Time now);

 private:
  const Limits limits_;
  const Time opened_;
  std::uint64_t request_ = 0;
  Time request_since_{};  // the first byte of the request, or when it could be read
  Time last_reply_{};
  Time last_owned_{};
  Time last_ping_{};
  std::optional<Time> pause_until_;
};

}  // namespace lockd
