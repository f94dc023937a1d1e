// The sessions that a page of the documentation shows, as steps that can be played.
//
//   ```session
//   $ dflockd --auth-token s3cret             the server's flags, if it has any
//   A> l⏎my-job⏎10⏎                           A sends this; ⏎ is a line feed
//   A< ok <token1> 33                         A receives this line
//   A (waits)                                 what A sent blocks: it has no reply
//   A (closes)                                A closes its connection
//   A (is closed)                             the server has closed it
//   (1.5 s pass)
//   (SIGTERM)                                 the server begins to stop
//   (<token1> sorts before <token2>)          as strings
//   ```
//
// What a client sends must be followed by what comes of it: so every step is over before the next
// begins, and a session has one outcome. Plain values and functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {

struct Step {
  enum class Kind : std::uint8_t {
    send,     // text
    receive,  // text, without its line feed
    wait,
    close,
    closed,
    pause,  // how long
    stop,
    order,  // text and other: two placeholders
  };

  std::size_t line = 0;  // of the page
  Kind kind = Kind::send;
  char client = 0;  // 'A' to 'Z', for the first five
  std::string text{};
  std::string other{};
  std::chrono::milliseconds pause{};
};

// Something that is not as shown, and where.
struct Complaint {
  std::size_t line = 0;
  std::string text;
};

struct ShownSession {
  std::size_t line = 0;
  std::vector<std::string> flags{};
  std::vector<Step> steps{};
};

struct ShownSessions {
  std::vector<ShownSession> sessions;
  std::vector<Complaint> complaints;  // lines that mean nothing
};

ShownSessions sessions_on(std::string_view page);

}  // namespace lockd
