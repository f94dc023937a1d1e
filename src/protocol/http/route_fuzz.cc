// What a request is aimed at. However it is written, it must lead to where its decoded path says,
// and nothing of it may be lost on the way.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/http/http_request.h"
#include "protocol/http/request_params.h"
#include "protocol/http/routes.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

// Every byte as %XX: means the same.
std::string percent_encoded(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

void check_route(lockd::HttpMethod method, std::string_view path) {
  const lockd::RouteMatch match = lockd::match_route(method, path);
  if (match.route == nullptr) return check(!match.method_fits);
  const std::string_view pattern = match.route->path;
  const std::size_t brace = pattern.find('{');
  check(path.starts_with(pattern.substr(0, brace)));
  check(brace == std::string_view::npos ? path == pattern : path.substr(brace) == match.rest);
  check(!lockd::allowed_methods(*match.route).empty());
  check(!lockd::call_name(match.route->call).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lockd::Target target;
  if (!lockd::parse_target(text, &target)) return 0;
  for (const auto method :
       {lockd::HttpMethod::get, lockd::HttpMethod::head, lockd::HttpMethod::post}) {
    check_route(method, target.path);
  }
  lockd::Target again;
  check(lockd::parse_target(percent_encoded(target.path), &again));
  check(again.path == target.path && again.query.empty());

  lockd::RequestParams params = lockd::RequestParams::of_query(target.query);
  params.name("key");
  params.number_if_given("limit", 1, 1000);
  params.error();
  return 0;
}
