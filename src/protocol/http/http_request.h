// One HTTP request as a service sees it: complete, its framing checked and gone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockd {

enum class HttpMethod : std::uint8_t { get, head, post, options, other };

struct HttpRequest {
  HttpMethod method = HttpMethod::other;
  bool http_1_0 = false;
  bool keep_alive = false;  // its connection, as far as the client is concerned
  bool has_origin = false;
  bool is_cross_site = false;  // a browser says that a page of another site makes it ask
  bool is_forwarded = false;   // a proxy sent it for another client
  std::string target;          // path and query, as sent; begins with '/'
  std::string host;            // empty only in HTTP/1.0
  std::string origin;          // of the page whose script asks, if a browser asks
  std::string authorization;   // scheme and credentials
  std::string body;
};

// The request as HTTP, for another server, without the fields that concern a connection or prove
// who asks. `origin` is the origin that was allowed, or empty.
std::string write_request(const HttpRequest& request, std::string_view origin);

// Why a request is not answered as asked. `status` 0 is no error.
struct HttpError {
  int status = 0;
  std::string_view code{};  // stable, for programs
  std::string detail{};     // for people

  explicit operator bool() const { return status != 0; }
};

}  // namespace lockd
