// One client's business on one key: take the lock, give it back, and again.
//
// Knows the bytes of the protocols and checks every reply: a benchmark that measures errors is
// worth nothing.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockd::bench {

enum class Protocol { line, redis, http };

// The size of the first reply in `unread`, its end included; 0 when it is not all there.
std::size_t reply_size(Protocol protocol, std::string_view unread);

class Dialogue {
 public:
  // It waits in the queue for up to `wait_s`, where the protocol has one.
  Dialogue(Protocol protocol, std::string_view key, int wait_s = 0);

  // What to send next.
  std::string_view request() const { return releases_ ? release_ : acquire_; }

  // Takes the reply to it, with its end. False if it is not what it must be; else the
  // next request is due.
  bool take(std::string_view reply);

 private:
  bool take_grant(std::string_view reply);
  bool take_http(std::string_view reply);

  Protocol protocol_;
  bool releases_ = false;
  std::string key_;
  std::string acquire_;
  std::string release_;
};

// The three lines of a request.
std::string line_request(std::string_view command, std::string_view key, std::string_view argument);

}  // namespace lockd::bench
