// What shows people and programs who holds and who waits: list, describe, clients, stats.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "lockctl/api/json.h"
#include "lockctl/api/line_api.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"

namespace lockd::cli {

namespace json = boost::json;

// --- list ---

namespace {

KeyOrder order_of(const Arguments& arguments) {
  if (arguments.has("waiters")) return KeyOrder::waiters;
  return key_order_of(arguments.text("sort").value_or("key"));
}

// Prints keys: for programs as they come, unless they are to be sorted; for people sorted.
class Listing {
 public:
  explicit Listing(const Invocation& invocation)
      : invocation_(invocation),
        order_(order_of(invocation.arguments)),
        is_table_(!invocation.arguments.has("json") && !invocation.arguments.has("keys")),
        limit_(invocation.arguments.whole("limit").value_or(UINT64_MAX)) {}

  // How many more a server may tell of. Any may have those that come first.
  std::uint64_t wanted() const { return order_ == KeyOrder::key ? limit_ - count_ : limit_; }

  void add(KeyView key, std::string as_json) {
    if (wanted() == 0) return;
    ++count_;
    Row row{std::move(key), std::move(as_json)};
    if (is_table_ || order_ != KeyOrder::key) {
      rows_.push_back(std::move(row));
    } else {
      print(row);
    }
  }

  void finish() {
    if (is_table_ && rows_.empty()) return say_that_there_is_none();
    std::stable_sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
      return comes_before(a.key, b.key, order_);
    });
    if (rows_.size() > limit_) rows_.resize(limit_);
    if (!is_table_) {
      for (const Row& row : rows_) print(row);
      return;
    }
    KeyTable table;
    for (const Row& row : rows_) table.add(row.key);
    invocation_.output.write(table.text(invocation_.output.style()));
  }

 private:
  struct Row {
    KeyView key{};
    std::string as_json{};
  };

  void print(const Row& row) const {
    invocation_.output.line(invocation_.arguments.has("keys") ? row.key.key : row.as_json);
  }

  // Where it does not disturb those who count lines.
  void say_that_there_is_none() const {
    const Arguments& arguments = invocation_.arguments;
    const std::string prefix = arguments.operand_or(0, "");
    const bool is_chosen =
        arguments.has("contains") || arguments.has("holder") || arguments.has("client-id");
    std::string line = prefix.empty() ? "nothing is held" : "no key that begins with ";
    if (!prefix.empty()) line += in_quotes(prefix) + " is held";
    if (is_chosen) line = "no such key is held";
    if (arguments.has("idle")) line += ", nor idle";
    std::fprintf(stderr, "lockctl: %s\n", line.c_str());
  }

  const Invocation& invocation_;
  const KeyOrder order_;
  const bool is_table_;
  const std::uint64_t limit_;
  std::uint64_t count_ = 0;
  std::vector<Row> rows_;
};

// Which keys, and in what order.
Parameters listing_question(const Arguments& arguments) {
  Parameters question;
  const auto add = [&](const char* name, std::optional<std::string_view> value) {
    if (value) question.push_back({name, std::string(*value)});
  };
  if (const std::string prefix = arguments.operand_or(0, ""); !prefix.empty()) {
    add("prefix", prefix);
  }
  add("contains", arguments.text("contains"));
  add("holder", arguments.text("holder"));
  if (const auto id = arguments.text("client-id")) {
    question.push_back({"client_id", client_id_of(*id)});
  }
  if (arguments.has("idle")) question.push_back({"idle", true});
  switch (order_of(arguments)) {
    case KeyOrder::key: break;
    case KeyOrder::waiters: add("order", "waiters"); break;
    case KeyOrder::wait: add("order", "longest_wait"); break;
    case KeyOrder::held: add("order", "longest_hold"); break;
  }
  return question;
}

// Page after page, in no order; those that come first by an order are one page.
void list_by_api(const Invocation& invocation, Listing& listing) {
  const Parameters question = listing_question(invocation.arguments);
  std::vector<std::unique_ptr<Api>> apis;
  if (invocation.arguments.has("client-id")) {
    apis.push_back(only_api_of(invocation));
  } else {
    apis = apis_of(invocation);
  }
  for (const auto& api : apis) {
    for_each_listed(
        *api, "/v1/locks", question, "locks", [&] { return listing.wanted(); },
        [&](const json::value& lock) { listing.add(key_view(lock), json::serialize(lock)); });
  }
}

void list_by_statistics(const Invocation& invocation, Listing& listing) {
  const Arguments& arguments = invocation.arguments;
  const std::string prefix = arguments.operand_or(0, "");
  const std::string_view part = arguments.text("contains").value_or("");
  std::vector<KeyView> keys;
  for (const client::Address& server : servers_to_ask(invocation.settings)) {
    const json::value stats =
        parse_json(fetch_stats(invocation.settings, server), server.to_string());
    for (KeyView& key : keys_of_stats(stats)) {
      if (key.idle_for && !arguments.has("idle")) continue;
      if (!key.key.starts_with(prefix) || key.key.find(part) == std::string::npos) continue;
      keys.push_back(std::move(key));
    }
  }
  std::sort(keys.begin(), keys.end(),
            [](const KeyView& a, const KeyView& b) { return comes_before(a, b, KeyOrder::key); });
  for (const KeyView& key : keys) listing.add(key, json_of(key));
}

}  // namespace

int execute_list(const Invocation& invocation) {
  Listing listing(invocation);
  try {
    list_by_api(invocation, listing);
  } catch (const NoApi&) {
    // Statistics do not say who holds what by which name.
    if (invocation.arguments.has("holder") || invocation.arguments.has("client-id")) throw;
    list_by_statistics(invocation, listing);
  }
  listing.finish();
  return kExitOk;
}

// --- describe ---

namespace {

// "semaphore of 8, 2 holders with 5 permits, 1 waiting"
std::string summary_of(const KeyView& key) {
  const bool is_semaphore = key.kind == Kind::semaphore;
  std::string text = kind_text(key.kind);
  if (is_semaphore) text += " of " + std::to_string(key.limit);
  text += ", " + std::to_string(key.holders) + (key.holders == 1 ? " holder" : " holders");
  if (is_semaphore && key.permits != key.holders) {
    text += " with " + std::to_string(key.permits) + " permits";
  }
  text += ", " + std::to_string(key.waiters) + " waiting";
  if (key.idle_for) text += ", idle for " + human(*key.idle_for);
  return text;
}

std::string description_of(const KeyView& key, const Style& style) {
  std::string out = style.bold(printable(key.key)) + "  " + summary_of(key) + '\n';
  Table holds({"HOLDER", "SHARE?", "CLIENT?", "PEER?", "NOTE?", "FENCE>", "HELD>", "EXPIRES>"});
  for (const HoldView& hold : key.holds) {
    const IdentityView& who = hold.identity;
    holds.add({hold.holder, share_text(hold.mode, hold.permits), who.client, who.peer, who.note,
               fence_text(hold.fence), if_known(hold.held_for), if_known(hold.expires_in)});
  }
  if (!holds.empty()) out += '\n' + holds.text(style);
  Table queue({"#>", "WAITER", "SHARE?", "KEYS?", "CLIENT?", "PEER?", "NOTE?", "WAITED>"});
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    const WaiterView& waiter = key.queue[i];
    const IdentityView& who = waiter.identity;
    queue.add({std::to_string(i + 1), waiter.holder, share_text(waiter.mode, waiter.permits),
               waiter.keys > 1 ? std::to_string(waiter.keys) : "", who.client, who.peer, who.note,
               human(waiter.waited)});
  }
  if (!queue.empty()) out += '\n' + queue.text(style);
  return out;
}

// Prints keys one behind the other.
class Descriptions {
 public:
  explicit Descriptions(const Invocation& invocation) : invocation_(invocation) {}

  void add(const json::value& lock) {
    Output& output = invocation_.output;
    if (invocation_.arguments.has("json")) {
      output.line(json::serialize(lock));
    } else {
      output.write((empty_ ? "" : "\n") + description_of(key_view(lock), output.style()));
    }
    empty_ = false;
  }

  // The status to exit with.
  int finish(const std::string& line_if_none) const {
    if (!empty_) return kExitOk;
    std::fprintf(stderr, "lockctl: %s\n", line_if_none.c_str());
    return kExitConflict;
  }

 private:
  const Invocation& invocation_;
  bool empty_ = true;
};

int describe_key(const Invocation& invocation) {
  const std::string key = key_of(invocation.arguments);
  const ApiReply reply = ask_about_key(*api_of(invocation, key), {{"idle", true}, {"key", key}});
  require(reply);
  const json::value page = parse_json(reply.body, "the server");
  Descriptions descriptions(invocation);
  for (const json::value& lock : array_of(page, "locks")) {
    if (text_of(lock, "key") == key) descriptions.add(lock);
  }
  return descriptions.finish("the server knows no key " + in_quotes(key) + ": it is free");
}

int describe_client(const Invocation& invocation, std::uint64_t id) {
  Descriptions descriptions(invocation);
  for_each_listed(
      *only_api_of(invocation), "/v1/locks", {{"client_id", id}}, "locks",
      [] { return UINT64_MAX; }, [&](const json::value& lock) { descriptions.add(lock); });
  return descriptions.finish("client " + std::to_string(id) +
                             " holds nothing, and waits for nothing");
}

}  // namespace

int execute_describe(const Invocation& invocation) {
  const auto client = invocation.arguments.text("client");
  if (client.has_value() == !invocation.arguments.operands().empty()) {
    throw Failure(kExitUsage, "lockctl describe needs KEY or --client, one of them");
  }
  return client ? describe_client(invocation, client_id_of(*client)) : describe_key(invocation);
}

// --- clients ---

namespace {

std::vector<std::string> row_of(const json::value& client, const std::string& server) {
  const IdentityView who = identity_of(client);
  const auto count = [&](const char* name) { return std::to_string(number_of(client, name)); };
  return {server,
          count("client_id"),
          text_of(client, "protocol"),
          who.peer,
          who.client,
          who.note,
          text_of(client, "token_name"),
          human(ms_of(client, "connected_ms")),
          human(ms_of(client, "idle_ms")),
          count("holds"),
          count("places"),
          count("subscriptions"),
          count("unsent_bytes")};
}

}  // namespace

int execute_clients(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  std::uint64_t left = arguments.whole("limit").value_or(UINT64_MAX);
  Parameters question;
  if (!arguments.operands().empty()) question.push_back({"prefix", arguments.operands().front()});
  Table table({"SERVER?", "ID>", "PROTOCOL", "PEER", "NAME?", "NOTE?", "TOKEN?", "CONNECTED>",
               "IDLE>", "HOLDS>", "PLACES>", "SUBSCRIPTIONS>", "UNSENT>"});
  const auto apis = apis_of(invocation);
  for (const auto& api : apis) {
    const std::string server = apis.size() > 1 ? api->server() : "";
    for_each_listed(
        *api, "/v1/clients", question, "clients", [&] { return left; },
        [&](const json::value& client) {
          left -= left > 0 ? 1 : 0;
          if (arguments.has("json")) return invocation.output.line(json::serialize(client));
          table.add(row_of(client, server));
        });
  }
  if (!table.empty()) invocation.output.write(table.text(invocation.output.style()));
  return kExitOk;
}

// --- stats ---

namespace {

std::string figures_text(const ServerView& view) {
  return "connections " + grouped(view.connections) + ", keys " + grouped(view.keys) + " (" +
         grouped(view.keys_idle) + " idle), locks held " + grouped(view.locks_held) + " (" +
         grouped(view.lock_waiters) + " waiting), semaphore holders " +
         grouped(view.semaphore_holders) + " (" + grouped(view.semaphore_waiters) +
         " waiting), listeners " + grouped(view.listeners) + '\n';
}

std::string stats_text(const json::value& stats, const Style& style) {
  std::string out = figures_text(stats_view(stats));
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
