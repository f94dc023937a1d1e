// Which call a method and a path make. The one table: docs/openapi.json is held equal to it by a
// test, and the metrics are labelled by it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/http/http_request.h"

namespace lockd {

enum class HttpCall : std::uint8_t {
  acquire,
  renew,
  release,
  fence,
  semaphore_acquire,
  semaphore_renew,
  semaphore_release,
  publish,
  listen,
  stats,
  locks,
  overview,
  events,
  live,
  ready,
  leader,
  metrics,
  openapi,
  page,  // the dashboard's files
  none,
};

struct Route {
  HttpCall call;
  HttpMethod method;      // HEAD is answered where GET is
  std::string_view path;  // "{channel}" stands for the rest of the path
};

inline constexpr auto kRoutes = std::to_array<Route>({
    {HttpCall::acquire, HttpMethod::post, "/v1/acquire"},
    {HttpCall::renew, HttpMethod::post, "/v1/renew"},
    {HttpCall::release, HttpMethod::post, "/v1/release"},
    {HttpCall::fence, HttpMethod::get, "/v1/fence"},
    {HttpCall::semaphore_acquire, HttpMethod::post, "/v1/semaphores/acquire"},
    {HttpCall::semaphore_renew, HttpMethod::post, "/v1/semaphores/renew"},
    {HttpCall::semaphore_release, HttpMethod::post, "/v1/semaphores/release"},
    {HttpCall::publish, HttpMethod::post, "/v1/signals/{channel}"},
    {HttpCall::listen, HttpMethod::get, "/v1/signals"},
    {HttpCall::stats, HttpMethod::get, "/v1/stats"},
    {HttpCall::locks, HttpMethod::get, "/v1/locks"},
    {HttpCall::overview, HttpMethod::get, "/v1/overview"},
    {HttpCall::events, HttpMethod::get, "/v1/events"},
    {HttpCall::openapi, HttpMethod::get, "/v1/openapi.json"},
    {HttpCall::live, HttpMethod::get, "/healthz"},
    {HttpCall::live, HttpMethod::get, "/livez"},
    {HttpCall::live, HttpMethod::get, "/health"},
    {HttpCall::ready, HttpMethod::get, "/readyz"},
    {HttpCall::ready, HttpMethod::get, "/ready"},
    {HttpCall::leader, HttpMethod::get, "/leader"},
    {HttpCall::metrics, HttpMethod::get, "/metrics"},
});

struct RouteMatch {
  const Route* route = nullptr;  // null: there is no such path
  bool method_fits = false;
  std::string_view rest{};  // what "{channel}" stands for
};

// `path` is decoded.
RouteMatch match_route(HttpMethod method, std::string_view path);

// For `Allow`.
std::string_view allowed_methods(const Route& route);

// For the label of a metric: "acquire", "semaphore_acquire".
std::string_view call_name(HttpCall call);
inline constexpr std::size_t kHttpCalls = static_cast<std::size_t>(HttpCall::none) + 1;

}  // namespace lockd
