// Where a request goes: its target, which call a method and a path make, and the files that the
// server carries in itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/http/http_request.h"

namespace lockd {

// What a request is aimed at: a path and the questions behind it, decoded.
struct Target {
  std::string path;  // decoded
  std::vector<std::pair<std::string, std::string>> query;
};

// False when a percent sign is not followed by two hex digits. In the query, and only there, `+` is
// a space: so do forms and URL libraries write it.
bool parse_target(std::string_view text, Target* target);

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
  clients,
  overview,
  events,
  admin_release,
  admin_disconnect,
  admin_resize,
  cluster,
  cluster_snapshot,
  cluster_transfer,
  history,
  live,
  ready,
  leader,
  metrics,
  whoami,
  openapi,
  page,  // the dashboard's files
  none,
};

// What a client may be permitted: docs/security.md says what each lets it do.
enum class Right : std::uint8_t {
  none,          // whoever is let in may
  lock,          // take, keep, give back and wait
  signal,        // publish and listen
  read,          // look at everything
  read_or_lock,  // either is enough
  admin,         // end what others hold, move a cluster's lead; and all of the above
};

// Whether its answer has no end.
inline bool is_stream(HttpCall call) {
  return call == HttpCall::listen || call == HttpCall::events;
}

// What a call tells of.
enum class Scope : std::uint8_t {
  keys,    // the keys and channels that the caller may see; or nothing of them
  server,  // all of them, and all clients: for those who may see everything
};

struct Route {
  HttpCall call;
  HttpMethod method;      // HEAD is answered where GET is
  std::string_view path;  // "{channel}" stands for the rest of the path
  Right right;
  Scope scope = Scope::keys;
};

// The one table: docs/openapi.json is held equal to it by a test, and the metrics are labelled by
// it.
inline constexpr auto kRoutes = std::to_array<Route>({
    {HttpCall::acquire, HttpMethod::post, "/v1/acquire", Right::lock},
    {HttpCall::renew, HttpMethod::post, "/v1/renew", Right::lock},
    {HttpCall::release, HttpMethod::post, "/v1/release", Right::lock},
    {HttpCall::fence, HttpMethod::get, "/v1/fence", Right::read_or_lock},
    {HttpCall::semaphore_acquire, HttpMethod::post, "/v1/semaphores/acquire", Right::lock},
    {HttpCall::semaphore_renew, HttpMethod::post, "/v1/semaphores/renew", Right::lock},
    {HttpCall::semaphore_release, HttpMethod::post, "/v1/semaphores/release", Right::lock},
    {HttpCall::publish, HttpMethod::post, "/v1/signals/{channel}", Right::signal},
    {HttpCall::listen, HttpMethod::get, "/v1/signals", Right::signal},
    {HttpCall::stats, HttpMethod::get, "/v1/stats", Right::read},
    {HttpCall::locks, HttpMethod::get, "/v1/locks", Right::read},
    {HttpCall::clients, HttpMethod::get, "/v1/clients", Right::read, Scope::server},
    {HttpCall::overview, HttpMethod::get, "/v1/overview", Right::read},
    {HttpCall::events, HttpMethod::get, "/v1/events", Right::read},
    {HttpCall::whoami, HttpMethod::get, "/v1/whoami", Right::none},
    {HttpCall::admin_release, HttpMethod::post, "/v1/admin/release", Right::admin},
    {HttpCall::admin_disconnect, HttpMethod::post, "/v1/admin/disconnect", Right::admin,
     Scope::server},
    {HttpCall::admin_resize, HttpMethod::post, "/v1/admin/resize", Right::admin},
    {HttpCall::cluster, HttpMethod::get, "/v1/cluster", Right::read, Scope::server},
    {HttpCall::cluster_snapshot, HttpMethod::post, "/v1/cluster/snapshot", Right::admin,
     Scope::server},
    {HttpCall::cluster_transfer, HttpMethod::post, "/v1/cluster/transfer", Right::admin,
     Scope::server},
    {HttpCall::history, HttpMethod::get, "/v1/history", Right::read},
    {HttpCall::openapi, HttpMethod::get, "/v1/openapi.json", Right::none},
    {HttpCall::live, HttpMethod::get, "/livez", Right::none},
    {HttpCall::ready, HttpMethod::get, "/readyz", Right::none},
    {HttpCall::leader, HttpMethod::get, "/leader", Right::none},
    {HttpCall::metrics, HttpMethod::get, "/metrics", Right::read, Scope::server},
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

// The dashboard's, and the description of the API. Written by cmake/embed_files.cmake.
struct WebFile {
  std::string_view path;  // as in a URL
  std::string_view type;
  std::string_view content;
};

// Null when there is none.
const WebFile* find_web_file(std::string_view path);

}  // namespace lockd
