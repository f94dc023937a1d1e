// What each command does, and what several of them share. Every one gets what it was told, and
// returns the status to exit with; it throws Failure when it cannot go on.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "config/arguments.h"
#include "lockctl/http/http_cluster.h"
#include "lockctl/output/output.h"
#include "lockctl/settings.h"
#include "lockd/client/address.h"

namespace lockd::cli {

using config::Arguments;

struct Invocation {
  const config::Place& place;
  const Arguments& arguments;
  const Settings& settings;
  Output& output;
};

int execute_run(const Invocation& invocation);
int execute_hold(const Invocation& invocation);

int execute_acquire(const Invocation& invocation);
int execute_renew(const Invocation& invocation);
int execute_release(const Invocation& invocation);
int execute_fence(const Invocation& invocation);

int execute_list(const Invocation& invocation);
int execute_describe(const Invocation& invocation);
int execute_watch(const Invocation& invocation);
int execute_stats(const Invocation& invocation);
int execute_top(const Invocation& invocation);

int execute_ping(const Invocation& invocation);
int execute_listen(const Invocation& invocation);
int execute_signal(const Invocation& invocation);

int execute_bench(const Invocation& invocation);

int execute_wal_inspect(const Invocation& invocation);
int execute_wal_verify(const Invocation& invocation);

int execute_whoami(const Invocation& invocation);
int execute_token_new(const Invocation& invocation);

int execute_connection(const Invocation& invocation);
int execute_completion(const Invocation& invocation);
int execute_man(const Invocation& invocation);
int execute_version(const Invocation& invocation);

// --- times ---

// Of an option that the line protocol carries. Throws Failure when it is not whole.
std::optional<std::chrono::seconds> whole_seconds(const Arguments& arguments,
                                                  std::string_view option);

// --- -n and -w, which mean the same to every command that waits ---

// The longest that can be asked for: 292 years, in whole seconds.
inline constexpr Duration kEndless = std::chrono::floor<std::chrono::seconds>(kDurationMax);

// How long to wait in the queue; without either of them, for as long as it takes.
inline Duration wait_of(const Arguments& arguments) {
  if (arguments.has("nonblock")) return Duration::zero();
  return std::min(arguments.seconds("wait").value_or(kEndless), kEndless);
}

// What is left of an endless wait is endless; of another, not less than nothing.
inline Duration whole_if_endless(Duration left) {
  constexpr Duration kNearlyEndless = kEndless / 2;
  return left > kNearlyEndless ? kEndless : std::max(left, Duration::zero());
}

// --- asking a server, for commands that change nothing ---

// The HTTP port. Throws Failure, with what is missing and where to say it, when there is none.
std::unique_ptr<HttpCluster> require_http(const Invocation& invocation);

// Those who know all there is to know: of servers that share the keys all, of a cluster the one
// that leads. Throws Failure.
std::vector<client::Address> servers_to_ask(const Settings& settings, std::stop_token stop = {});

// The statistics of the line port, as JSON. Throws Failure.
std::string fetch_stats(const Settings& settings, const client::Address& server,
                        std::stop_token stop = {});

}  // namespace lockd::cli
