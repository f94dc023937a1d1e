// What one lane of `bench` says and hears: acquire and release of one key, round after round.
//
// Knows the bytes of both protocols, and checks every reply: a benchmark that measures errors is
// worth nothing. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockd::cli {

struct DialogueTerms {
  std::uint64_t timeout_s = 30;
  std::uint64_t lease_s = 10;
  std::string host{};   // of HTTP
  std::string token{};  // of HTTP; empty: none is asked for
};

class Dialogue {
 public:
  static std::unique_ptr<Dialogue> over_line(const std::string& key, const DialogueTerms& terms);
  static std::unique_ptr<Dialogue> over_http(const std::string& key, const std::string& holder,
                                             const DialogueTerms& terms);
  virtual ~Dialogue() = default;

  // The requests. A release is of what the last acquire was granted.
  virtual std::string acquire() const = 0;
  virtual std::string release() const = 0;

  // Whether the whole reply is as it must be.
  virtual bool take_grant(std::string_view reply) = 0;
  virtual bool take_release(std::string_view reply) const = 0;
};

// How long the reply at the front is; 0 when it is not there in full. Throws Failure when it cannot
// be one.
std::size_t line_reply_size(std::string_view unread);
std::size_t http_reply_size(std::string_view unread);

}  // namespace lockd::cli
