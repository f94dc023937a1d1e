#include "protocol/http/routes.h"

#include <algorithm>

namespace lockd {
namespace {

int hex_digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Plus { literal, space };

bool decode(std::string_view text, Plus plus, std::string* decoded) {
  decoded->reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus == Plus::space) {
      *decoded += ' ';
    } else if (text[i] != '%') {
      *decoded += text[i];
    } else {
      if (i + 2 >= text.size()) return false;
      const int high = hex_digit_of(text[i + 1]);
      const int low = hex_digit_of(text[i + 2]);
      if (high < 0 || low < 0) return false;
      *decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return true;
}

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

bool parse_target(std::string_view text, Target* target) {
  const std::size_t path_end = std::min(text.find('?'), text.size());
  if (!decode(text.substr(0, path_end), Plus::literal, &target->path)) return false;
  std::string_view rest = text.substr(path_end);
  while (!rest.empty()) {
    rest.remove_prefix(1);  // '?' or '&'
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(pair.size());
    if (pair.empty()) continue;
    const std::size_t name_end = std::min(pair.find('='), pair.size());
    auto& [name, value] = target->query.emplace_back();
    if (!decode(pair.substr(0, name_end), Plus::space, &name)) return false;
    if (name_end == pair.size()) continue;
    if (!decode(pair.substr(name_end + 1), Plus::space, &value)) return false;
  }
  return true;
}

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
    case HttpCall::clients: return "clients";
    case HttpCall::overview: return "overview";
    case HttpCall::history: return "history";
    case HttpCall::events: return "events";
    case HttpCall::admin_release: return "admin_release";
    case HttpCall::admin_disconnect: return "admin_disconnect";
    case HttpCall::admin_resize: return "admin_resize";
    case HttpCall::cluster: return "cluster";
    case HttpCall::cluster_snapshot: return "cluster_snapshot";
    case HttpCall::cluster_transfer: return "cluster_transfer";
    case HttpCall::live: return "live";
    case HttpCall::ready: return "ready";
    case HttpCall::leader: return "leader";
    case HttpCall::metrics: return "metrics";
    case HttpCall::whoami: return "whoami";
    case HttpCall::openapi: return "openapi";
    case HttpCall::page: return "page";
    case HttpCall::none: return "none";
  }
  return "none";
}

}  // namespace lockd
