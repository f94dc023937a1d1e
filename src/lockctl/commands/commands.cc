#include "lockctl/commands/commands.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "base/secret.h"
#include "base/text.h"
#include "client/claim.h"
#include "lockctl/api/http_api.h"
#include "lockctl/api/line_api.h"
#include "lockctl/output/failure.h"
#include "lockd/client/client.h"
#include "lockd/client/connection.h"

namespace lockd::cli {

std::optional<std::chrono::seconds> whole_seconds(const Arguments& arguments,
                                                  std::string_view option) {
  const auto time = arguments.seconds(option);
  if (!time) return std::nullopt;
  const auto whole = std::chrono::floor<std::chrono::seconds>(*time);
  if (whole == *time) return whole;
  throw Failure(kExitUsage, "--" + std::string(option) + ": whole seconds, over the line port");
}

namespace {

const std::string& checked_key(const std::string& key) {
  if (is_name(key)) return key;
  throw Failure(kExitUsage, "a key is 1 to 256 bytes of UTF-8 without control characters");
}

}  // namespace

std::string key_of(const Arguments& arguments) { return checked_key(arguments.operands().front()); }

std::vector<std::string> keys_of(const Arguments& arguments, std::size_t words_behind) {
  std::vector<std::string> keys = arguments.operands();
  keys.resize(keys.size() - words_behind);
  if (keys.size() > kKeysPerSetMax) {
    throw Failure(kExitUsage, "at most " + std::to_string(kKeysPerSetMax) + " keys at once");
  }
  for (const std::string& key : keys) checked_key(key);
  const std::vector<KeyItem> items(keys.begin(), keys.end());
  const std::size_t twin = KeyItems(items).find_duplicate();
  if (twin < keys.size()) throw Failure(kExitUsage, in_quotes(keys[twin]) + " is named twice");
  return keys;
}

// The name is made printable, and a handle is to be one word.
std::string random_holder() {
  const passwd* const user = ::getpwuid(::geteuid());
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::string name = user == nullptr ? std::to_string(::geteuid()) : user->pw_name;
  name = printable(name + '@' + host.data()).substr(0, 200);
  std::replace(name.begin(), name.end(), ' ', '_');
  std::array<char, 17> random{};
  std::snprintf(random.data(), random.size(), "%016" PRIx64, TokenSource().next());
  return as_utf8(name) + ':' + random.data();
}

Share share_of(const Arguments& arguments) {
  const auto limit = arguments.whole("semaphore");
  const std::uint64_t permits = arguments.whole("permits").value_or(1);
  if (limit && arguments.has("shared")) {
    throw Failure(kExitUsage, "--shared is for locks: a semaphore is shared by its permits");
  }
  if (!limit && arguments.has("permits")) {
    throw Failure(kExitUsage, "--permits needs --semaphore N: a lock has no permits");
  }
  if (permits > limit.value_or(1)) {
    throw Failure(kExitUsage, "--permits: at most as many as --semaphore says there are");
  }
  return {.kind = limit ? Kind::semaphore : Kind::lock,
          .limit = static_cast<std::uint32_t>(limit.value_or(1)),
          .mode = arguments.has("shared") ? Mode::shared : Mode::exclusive,
          .permits = static_cast<std::uint32_t>(permits)};
}

std::vector<KeyItem> items_of(const std::vector<std::string>& keys, const Share& share) {
  std::vector<KeyItem> items;
  for (const std::string& key : keys) {
    items.emplace_back(key, share.kind, share.mode, share.limit, share.permits);
  }
  return items;
}

namespace {

bool shares_keys(const Settings& settings) {
  return settings.http.empty() && !settings.is_cluster && settings.servers.size() > 1;
}

std::unique_ptr<Api> api_at(const Invocation& invocation, const client::Address& server,
                            const client::ConnectOptions& connect) {
  const client::ClientOptions options{.servers = {server}, .connect = connect};
  return std::make_unique<LineApi>(options, invocation.place.path);
}

}  // namespace

std::unique_ptr<Api> api_of(const Invocation& invocation, std::string_view key) {
  const Settings& settings = invocation.settings;
  if (shares_keys(settings)) {
    return api_at(invocation, settings.servers[client::shard_of(key, settings.servers.size())],
                  settings.connect);
  }
  if (settings.http.empty()) {
    return std::make_unique<LineApi>(settings.client(), invocation.place.path);
  }
  return std::make_unique<HttpApi>(settings.http, settings.connect);
}

std::unique_ptr<Api> api_of_all(const Invocation& invocation,
                                const std::vector<std::string>& keys) {
  const std::size_t servers = invocation.settings.servers.size();
  for (const std::string& key : keys) {
    const bool together = !shares_keys(invocation.settings) ||
                          client::shard_of(key, servers) == client::shard_of(keys[0], servers);
    if (together) continue;
    throw Failure(kExitUsage, in_quotes(keys[0]) + " and " + in_quotes(key) +
                                  " are on different servers: keys that are taken at once must "
                                  "be on one");
  }
  return api_of(invocation, keys[0]);
}

Parameter named_keys(const std::vector<std::string>& keys, const Share& share) {
  client::NamedItems named = client::named_items(items_of(keys, share));
  return {named.member, JsonText{std::move(named.json)}};
}

std::vector<std::unique_ptr<Api>> apis_of(const Invocation& invocation) {
  std::vector<std::unique_ptr<Api>> apis;
  if (!shares_keys(invocation.settings)) {
    apis.push_back(api_of(invocation, ""));
    return apis;
  }
  for (const client::Address& server : invocation.settings.servers) {
    apis.push_back(api_at(invocation, server, invocation.settings.connect));
  }
  return apis;
}

std::vector<std::unique_ptr<Api>> each_api_of(const Invocation& invocation, Duration patience_max) {
  const Settings& settings = invocation.settings;
  client::ConnectOptions connect = settings.connect;
  connect.connect_timeout = std::min<Duration>(connect.connect_timeout, patience_max);
  std::vector<std::unique_ptr<Api>> apis;
  for (const HttpAddress& server : settings.http) {
    apis.push_back(std::make_unique<HttpApi>(std::vector{server}, connect));
  }
  if (!apis.empty()) return apis;
  for (const client::Address& server : settings.servers) {
    apis.push_back(api_at(invocation, server, connect));
  }
  return apis;
}

std::unique_ptr<Api> only_api_of(const Invocation& invocation) {
  if (!shares_keys(invocation.settings)) return api_of(invocation, "");
  throw Failure(kExitUsage, "a client's id is that of one server: name this one by --server");
}

std::uint64_t client_id_of(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("tcp:")) digits.remove_prefix(4);
  if (const auto id = parse_whole(digits, 1, kSessionIdMax)) return *id;
  throw Failure(kExitUsage, in_quotes(text) + " is no client: it is 17, or tcp:17");
}

std::vector<client::Address> servers_to_ask(const Settings& settings, std::stop_token stop) {
  if (!settings.is_cluster) return settings.servers;
  client::Client client(settings.client());
  require(client.connect("", std::move(stop)));
  return {client.server_of("")};
}

std::string fetch_stats(const Settings& settings, const client::Address& server,
                        std::stop_token stop) {
  auto connection = client::Connection::open(server, settings.connect, stop);
  require(connection);
  auto stats = connection->stats(std::move(stop));
  require(stats);
  return std::move(*stats);
}

}  // namespace lockd::cli
