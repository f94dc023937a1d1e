// One client's business on one key: take the lock, give it back, and again.
//
// Knows the bytes of the protocols, and checks every reply: a benchmark that measures errors is
// worth nothing. For one thread. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lockd::loadgen {

// Why a load cannot go on; what() is a line for people.
class LoadError : public std::runtime_error {
 public:
  enum class Why : std::uint8_t {
    misconfigured,  // a file of TLS, a name
    unreachable,    // or gone, or silent
    untrusted,      // its certificate, or our secret
    garbled,        // what it says is no reply
    timed_out,      // it did not grant within the wait
    refused,        // it said anything else than what was to be said
  };

  LoadError(Why why, const std::string& line) : std::runtime_error(line), why_(why) {}

  Why why() const { return why_; }

 private:
  Why why_;
};

enum class Protocol : std::uint8_t { line, http, redis };

// The size of the first reply in `unread`, its end included; 0 when it is not all there. Throws
// LoadError when it cannot be one.
std::size_t reply_size(Protocol protocol, std::string_view unread);

struct DialogueTerms {
  std::uint64_t wait_s = 0;  // in the queue, where the protocol has one
  std::uint64_t lease_s = 30;
  // Of HTTP.
  std::string host = "127.0.0.1";
  std::string holder = "bench";
  std::string auth_token{};  // empty: none is asked for
};

class Dialogue {
 public:
  Dialogue(Protocol protocol, std::string_view key, const DialogueTerms& terms = {});

  // What to send next, and whether that is a release: of what was granted last.
  std::string_view request() const { return releases_ ? release_ : acquire_; }
  bool releases() const { return releases_; }

  // Takes the reply to it, with its end. False if it is not what it must be; else the next request
  // is due.
  bool take(std::string_view reply);

 private:
  void begin_http(std::string_view key, const DialogueTerms& terms);
  bool take_line_grant(std::string_view reply);
  bool take_http_grant(std::string_view reply);

  Protocol protocol_;
  bool releases_ = false;
  std::string acquire_;
  std::string release_;
  std::string release_start_;  // before the token
  std::string lease_;          // as a grant names it
  std::string fields_;         // of an HTTP request
};

// The three lines of a request.
std::string line_request(std::string_view command, std::string_view key, std::string_view argument);

}  // namespace lockd::loadgen
