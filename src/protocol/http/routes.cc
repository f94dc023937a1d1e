#include "protocol/http/routes.h"

namespace lockd {
namespace {

constexpr std::string_view kRest = "{channel}";

// Whether `path` is that of `route`, and what its open end stands for.
bool leads_to(const Route& route, std::string_view path, std::string_view* rest) {
  if (!route.path.ends_with(kRest)) return path == route.path;
  const std::string_view stem = route.path.substr(0, route.path.size() - kRest.size());
  if (path.size() <= stem.size() || !path.starts_with(stem)) return false;
  *rest = path.substr(stem.size());
  return true;
}

}  // namespace

RouteMatch match_route(HttpMethod method, std::string_view path) {
  if (method == HttpMethod::head) method = HttpMethod::get;
  RouteMatch match;
  for (const Route& route : kRoutes) {
    if (!leads_to(route, path, &match.rest)) continue;
    match.route = &route;
    match.method_fits = route.method == method;
    if (match.method_fits) break;
  }
  return match;
}

std::string_view allowed_methods(const Route& route) {
  return route.method == HttpMethod::post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
}

std::string_view call_name(HttpCall call) {
  switch (call) {
    case HttpCall::acquire: return "acquire";
    case HttpCall::renew: return "renew";
    case HttpCall::release: return "release";
    case HttpCall::fence: return "fence";
    case HttpCall::semaphore_acquire: return "semaphore_acquire";
    case HttpCall::semaphore_renew: return "semaphore_renew";
    case HttpCall::semaphore_release: return "semaphore_release";
    case HttpCall::publish: return "publish";
    case HttpCall::listen: return "listen";
    case HttpCall::stats: return "stats";
    case HttpCall::locks: return "locks";
    case HttpCall::overview: return "overview";
    case HttpCall::events: return "events";
    case HttpCall::live: return "live";
    case HttpCall::ready: return "ready";
    case HttpCall::leader: return "leader";
    case HttpCall::metrics: return "metrics";
    case HttpCall::openapi: return "openapi";
    case HttpCall::page: return "page";
    case HttpCall::none: return "none";
  }
  return "none";
}

}  // namespace lockd
