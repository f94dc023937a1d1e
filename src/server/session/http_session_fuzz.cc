// The bytes of an HTTP client. The session must say the same however they are split, and what it
// says must be HTTP: whole replies, each with JSON if it is an error.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/session/http_session.h"
#include "server/session/testing/session_harness.h"

namespace {

namespace http = boost::beast::http;

void check(bool condition) {
  if (!condition) __builtin_trap();
}

// Takes one reply from the front of `said`.
void take_reply(std::string_view& said) {
  http::response_parser<http::string_body> parser;
  parser.eager(true);
  parser.body_limit(64 * 1024 * 1024);
  boost::system::error_code error;
  const std::size_t taken = parser.put(boost::asio::buffer(said.data(), said.size()), error);
  if (error == http::error::need_more && parser.is_header_done())
    return said.remove_prefix(said.size());
  check(!error && taken > 0);
  said.remove_prefix(taken);
  const auto status = parser.get().result_int();
  if (status < 400) return;
  const boost::json::value body = boost::json::parse(parser.get().body(), error);
  check(!error && body.as_object().contains("error") && body.as_object().contains("detail"));
}

std::string play(std::string_view input, std::size_t piece, const lockd::Options& options) {
  lockd::SessionHarness harness(options);
  std::string said = harness.play<lockd::HttpSession>(input, piece);
  // Leave to send a body is given to those whose body is not there yet.
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at; (at = said.find(kContinue)) != std::string::npos;) {
    said.erase(at, kContinue.size());
  }
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  lockd::Options options;
  options.http_addr = lockd::Endpoint{};
  options.metrics = true;
  for (const std::string& secret : {std::string(), std::string("s")}) {
    options.secret = secret;
    const std::string whole = play(input, std::max<std::size_t>(size, 1), options);
    check(play(input, 1, options) == whole);
    check(play(input, 5, options) == whole);
    // A reply to HEAD has a length and no body: then what follows cannot be told apart here.
    if (input.find("HEAD") != std::string_view::npos) continue;
    for (std::string_view said = whole; !said.empty();) take_reply(said);
  }
  return 0;
}
