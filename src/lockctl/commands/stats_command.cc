// lockctl stats.
#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/http/fetch.h"
#include "lockctl/http/json.h"
#include "lockctl/output/key_table.h"
#include "lockctl/output/text.h"
#include "lockctl/output/view.h"

namespace lockd::cli {
namespace {

namespace json = boost::json;

std::string figures_text(const Observation& seen) {
  return "connections " + grouped(seen.connections) + ", keys " + grouped(seen.keys) + " (" +
         grouped(seen.keys_idle) + " idle), locks held " + grouped(seen.locks_held) + " (" +
         grouped(seen.lock_waiters) + " waiting), semaphore slots " +
         grouped(seen.semaphore_holders) + " (" + grouped(seen.semaphore_waiters) +
         " waiting), listeners " + grouped(seen.listeners) + '\n';
}

std::string stats_text(const json::value& stats, const Style& style) {
  std::string out = figures_text(seen_stats(stats));
  KeyTable keys;
  for (const KeyView& key : keys_of_stats(stats)) keys.add(key);
  if (!keys.empty()) out += '\n' + keys.text(style);
  Table channels({"PATTERN", "GROUP", "LISTENERS>"});
  for (const json::value& channel : array_of(stats, "signal_channels")) {
    channels.add({text_of(channel, "pattern"), text_or_dash(text_of(channel, "group")),
                  std::to_string(number_of(channel, "listeners"))});
  }
  if (!channels.empty()) out += '\n' + channels.text(style);
  return out;
}

}  // namespace

int execute_stats(const Invocation& invocation) {
  const std::vector<client::Address> servers = servers_to_ask(invocation.settings);
  const bool several = servers.size() > 1;
  bool first = true;
  for (const client::Address& server : servers) {
    const std::string stats = fetch_stats(invocation.settings, server);
    const json::value parsed = parse_json(stats, server.to_string());
    if (invocation.arguments.has("json")) {
      invocation.output.line(trimmed(stats));
      continue;
    }
    if (several) {
      invocation.output.write((first ? "" : "\n") +
                              invocation.output.style().bold(server.to_string()) + '\n');
    }
    first = false;
    invocation.output.write(stats_text(parsed, invocation.output.style()));
  }
  return kExitOk;
}

}  // namespace lockd::cli
