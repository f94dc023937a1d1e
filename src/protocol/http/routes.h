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
#include "protocol/operations.h"

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

// Whether its answer has no end.
inline bool is_stream(HttpCall call) {
  return call == HttpCall::listen || call == HttpCall::events;
}

struct Route {
  HttpCall call;
  HttpMethod method;      // HEAD is answered where GET is
  std::string_view path;  // "{channel}" stands for the rest of the path
  Operation operation;
};

// The one table: docs/openapi.json is held equal to it by a test, and the metrics are labelled by
// it.
inline constexpr auto kRoutes = std::to_array<Route>({
    {HttpCall::acquire, HttpMethod::post, "/v1/acquire", Operation::acquire},
    {HttpCall::renew, HttpMethod::post, "/v1/renew", Operation::renew},
    {HttpCall::release, HttpMethod::post, "/v1/release", Operation::release},
    {HttpCall::fence, HttpMethod::get, "/v1/fence", Operation::read_fence},
    {HttpCall::semaphore_acquire, HttpMethod::post, "/v1/semaphores/acquire", Operation::acquire},
    {HttpCall::semaphore_renew, HttpMethod::post, "/v1/semaphores/renew", Operation::renew},
    {HttpCall::semaphore_release, HttpMethod::post, "/v1/semaphores/release", Operation::release},
    {HttpCall::publish, HttpMethod::post, "/v1/signals/{channel}", Operation::publish},
    {HttpCall::listen, HttpMethod::get, "/v1/signals", Operation::listen},
    {HttpCall::stats, HttpMethod::get, "/v1/stats", Operation::read_stats},
    {HttpCall::locks, HttpMethod::get, "/v1/locks", Operation::list_keys},
    {HttpCall::clients, HttpMethod::get, "/v1/clients", Operation::list_clients},
    {HttpCall::overview, HttpMethod::get, "/v1/overview", Operation::read_overview},
    {HttpCall::events, HttpMethod::get, "/v1/events", Operation::watch_events},
    {HttpCall::whoami, HttpMethod::get, "/v1/whoami", Operation::describe_caller},
    {HttpCall::admin_release, HttpMethod::post, "/v1/admin/release", Operation::revoke},
    {HttpCall::admin_disconnect, HttpMethod::post, "/v1/admin/disconnect", Operation::disconnect},
    {HttpCall::admin_resize, HttpMethod::post, "/v1/admin/resize", Operation::resize},
    {HttpCall::cluster, HttpMethod::get, "/v1/cluster", Operation::inspect_cluster},
    {HttpCall::cluster_snapshot, HttpMethod::post, "/v1/cluster/snapshot",
     Operation::begin_snapshot},
    {HttpCall::cluster_transfer, HttpMethod::post, "/v1/cluster/transfer",
     Operation::transfer_leadership},
    {HttpCall::history, HttpMethod::get, "/v1/history", Operation::read_history},
    {HttpCall::openapi, HttpMethod::get, "/v1/openapi.json", Operation::describe_caller},
    {HttpCall::live, HttpMethod::get, "/livez", Operation::check_health},
    {HttpCall::ready, HttpMethod::get, "/readyz", Operation::check_health},
    {HttpCall::leader, HttpMethod::get, "/leader", Operation::check_health},
    {HttpCall::metrics, HttpMethod::get, "/metrics", Operation::read_metrics},
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
