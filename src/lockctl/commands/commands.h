// What each command does, and what several of them share. Every one gets what it was told, and
// returns the status to exit with; it throws Failure when it cannot go on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "config/arguments.h"
#include "lockctl/api/api.h"
#include "lockctl/output/output.h"
#include "lockctl/settings.h"
#include "lockd/client/address.h"
#include "lockd/requests.h"

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

// `lockctl release --force`.
int release_by_force(const Invocation& invocation);
int execute_disconnect(const Invocation& invocation);
int execute_resize(const Invocation& invocation);

int execute_list(const Invocation& invocation);
int execute_describe(const Invocation& invocation);
int execute_watch(const Invocation& invocation);
int execute_clients(const Invocation& invocation);
int execute_history(const Invocation& invocation);
int execute_stats(const Invocation& invocation);
int execute_top(const Invocation& invocation);

int execute_ping(const Invocation& invocation);
int execute_listen(const Invocation& invocation);
int execute_signal(const Invocation& invocation);

int execute_bench(const Invocation& invocation);

int execute_wal_inspect(const Invocation& invocation);
int execute_wal_verify(const Invocation& invocation);

int execute_cluster_status(const Invocation& invocation);
int execute_cluster_inspect(const Invocation& invocation);
int execute_cluster_snapshot(const Invocation& invocation);
int execute_cluster_transfer(const Invocation& invocation);

int execute_whoami(const Invocation& invocation);
int execute_token_new(const Invocation& invocation);

int execute_connection(const Invocation& invocation);
int execute_completion(const Invocation& invocation);
int execute_man(const Invocation& invocation);
int execute_version(const Invocation& invocation);

// --- what is given ---

// Of an option that the line protocol carries. Throws Failure when it is not whole.
std::optional<std::chrono::seconds> whole_seconds(const Arguments& arguments,
                                                  std::string_view option);

// A key that is named on the command line. Throws Failure when it cannot be one.
std::string key_of(const Arguments& arguments);
// All that are named, but for so many words behind them. Throws Failure when one is there twice, or
// there are more than one request may name.
std::vector<std::string> keys_of(const Arguments& arguments, std::size_t words_behind = 0);

// USER@HOST:RANDOM: people see whose it is, and no two calls are one holder.
std::string random_holder();

// How much of a key to take: --semaphore, --shared and --permits.
struct Share {
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};

// Throws Failure when they do not fit each other.
Share share_of(const Arguments& arguments);
// The same share of each. They refer to the keys.
std::vector<KeyItem> items_of(const std::vector<std::string>& keys, const Share& share);

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

// --- asking a server ---

// The API of the server that has the key, of a cluster that of the one that leads: over HTTP where
// --http says so, else over the line port.
std::unique_ptr<Api> api_of(const Invocation& invocation, std::string_view key);
// The same of several keys. Throws Failure, before anybody is asked, when they are on several
// servers: none of those could grant them in one step.
std::unique_ptr<Api> api_of_all(const Invocation& invocation, const std::vector<std::string>& keys);
// Several keys as a call of the API names them.
Parameter named_keys(const std::vector<std::string>& keys, const Share& share);
// Those of all servers that share the keys.
std::vector<std::unique_ptr<Api>> apis_of(const Invocation& invocation);
// That of every server that is named, whether it leads or not, with so much patience at most.
std::vector<std::unique_ptr<Api>> each_api_of(const Invocation& invocation,
                                              Duration patience_max = kDurationMax);
// That of the only server. Throws Failure when several share the keys: the id of a client means
// something to its own server alone.
std::unique_ptr<Api> only_api_of(const Invocation& invocation);

// "17", "tcp:17". Throws Failure.
std::uint64_t client_id_of(std::string_view text);

// Those who know all there is to know: of servers that share the keys all, of a cluster the one
// that leads. Throws Failure.
std::vector<client::Address> servers_to_ask(const Settings& settings, std::stop_token stop = {});

// The statistics of the line port, as JSON. Throws Failure.
std::string fetch_stats(const Settings& settings, const client::Address& server,
                        std::stop_token stop = {});

}  // namespace lockd::cli
