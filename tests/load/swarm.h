// Thousands of line clients in one thread: non-blocking sockets on one epoll.
//
// A client is known by its number, from 0 in the order of connecting. What comes is taken in as it
// arrives, whoever it is for; a line is without its LF, or kEnd or kReset as with LineClient.
// Belongs to one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/line_client.h"

namespace lockd {

inline const std::string kPing = request("ping", "", "");

class Swarm {
 public:
  using Clock = LineClient::Clock;
  static constexpr auto kPatience = LineClient::kPatience;

  // Numeric addresses of one family; an empty `from` is the system's choice.
  struct Route {
    std::string to = "127.0.0.1";
    std::string from{};
  };

  struct Arrival {
    std::size_t who;
    std::string line;
  };

  explicit Swarm(std::uint16_t port);
  ~Swarm();
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;

  // `count` clients more. False, with a failure of the test, when one cannot connect.
  // `receive_buffer`, if not 0, makes them slow readers.
  bool connect(std::size_t count, const Route& route, int receive_buffer = 0);
  bool connect(std::size_t count) { return connect(count, Route()); }
  std::size_t size() const { return members_.size(); }
  // Of those who are connected.
  std::size_t open() const { return open_; }
  bool is_open(std::size_t who) const { return members_[who].socket >= 0; }

  // What the peer takes at once; nothing when it takes no more, or has closed.
  std::size_t offer(std::size_t who, std::string_view bytes);
  // All of it; false when the peer has closed, or takes nothing for kPatience.
  bool send(std::size_t who, std::string_view bytes);
  // Sent, but not yet acknowledged by the peer's system.
  std::size_t unacknowledged(std::size_t who) const;

  // The next line that came for anybody; none when none comes in time. After kEnd or kReset the
  // client is closed.
  std::optional<Arrival> next(std::chrono::milliseconds patience = kPatience);
  // Drops what comes for anybody, for so long; how many bytes that was.
  std::size_t discard(std::chrono::milliseconds time);
  // The next line for this one; what comes for others meanwhile stays for later.
  std::string read_line(std::size_t who);
  std::string ask(std::size_t who, std::string_view request);
  // Sends `count` requests, many at a time. Returns how many replies begin with `answer`.
  using RequestOf = std::function<std::string(std::size_t i)>;
  std::size_t ask_all(std::size_t who, std::size_t count, std::string_view answer,
                      const RequestOf& request_of);

  void half_close(std::size_t who);
  void reset(std::size_t who);  // RST instead of FIN
  void close(std::size_t who);
  void close_all();

 private:
  struct Member {
    int socket = -1;
    std::string begun{};  // a line without its end yet
  };

  void take_in(std::size_t who);
  bool take_in_events(std::chrono::milliseconds patience);

  const std::uint16_t port_;
  const int epoll_;
  std::vector<Member> members_;
  std::size_t open_ = 0;
  std::deque<Arrival> arrivals_;
};

}  // namespace lockd
