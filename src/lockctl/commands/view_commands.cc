// What shows people and programs who holds and who waits: list, describe, stats, watch.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/http/json.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"

namespace lockd::cli {

namespace json = boost::json;

// --- list ---

namespace {

void sort(std::vector<KeyView>& keys, bool by_waiters) {
  if (by_waiters) return sort_by_waiters(keys);
  std::stable_sort(keys.begin(), keys.end(),
                   [](const KeyView& a, const KeyView& b) { return a.key < b.key; });
}

// Prints keys: for programs as they come, for people sorted.
class Listing {
 public:
  explicit Listing(const Invocation& invocation)
      : invocation_(invocation),
        json_(invocation.arguments.has("json")),
        keys_only_(invocation.arguments.has("keys")),
        left_(invocation.arguments.whole("limit").value_or(UINT64_MAX)) {}

  std::uint64_t left() const { return left_; }

  void add(KeyView key, std::string_view as_json) {
    if (left_ == 0) return;
    --left_;
    if (keys_only_) {
      invocation_.output.line(key.key);
    } else if (json_) {
      invocation_.output.line(as_json);
    } else {
      keys_.push_back(std::move(key));
    }
  }

  void finish() {
    if (json_ || keys_only_) return;
    if (keys_.empty()) return say_that_there_is_none();
    sort(keys_, invocation_.arguments.has("waiters"));
    KeyTable table;
    for (const KeyView& key : keys_) table.add(key);
    invocation_.output.write(table.text(invocation_.output.style()));
  }

 private:
  // Where it does not disturb those who count lines.
  void say_that_there_is_none() const {
    const std::string prefix = invocation_.arguments.operand_or(0, "");
    std::string line = prefix.empty() ? "nothing is held" : "no key that begins with ";
    if (!prefix.empty()) line += in_quotes(prefix) + " is held";
    if (invocation_.arguments.has("idle")) line += ", nor idle";
    std::fprintf(stderr, "lockctl: %s\n", line.c_str());
  }

  const Invocation& invocation_;
  const bool json_;
  const bool keys_only_;
  std::uint64_t left_;
  std::vector<KeyView> keys_;
};

// Page after page, in no order; the longest queues are one page.
void list_over_http(const Invocation& invocation, Listing& listing) {
  constexpr std::uint64_t kPage = 1000;
  const auto http = require_http(invocation);
  std::string fixed = "/v1/locks?prefix=" + url_encoded(invocation.arguments.operand_or(0, ""));
  if (invocation.arguments.has("idle")) fixed += "&idle=true";
  if (invocation.arguments.has("waiters")) fixed += "&order=waiters";
  for (std::string after; listing.left() > 0;) {
    std::string target = fixed + "&limit=" + std::to_string(std::min(kPage, listing.left()));
    if (!after.empty()) target += "&after=" + url_encoded(after);
    const HttpReply reply = http->get(target);
    require(reply);
    const json::value page = parse_json(reply.body, "the server");
    for (const json::value& lock : array_of(page, "locks")) {
      listing.add(key_view(lock), json::serialize(lock));
    }
    std::string next = text_of(page, "next");
    if (next.empty() || next == after) return;
    after = std::move(next);
  }
}

void list_over_line(const Invocation& invocation, Listing& listing) {
  const std::string prefix = invocation.arguments.operand_or(0, "");
  std::vector<KeyView> keys;
  for (const client::Address& server : servers_to_ask(invocation.settings)) {
    const json::value stats =
        parse_json(fetch_stats(invocation.settings, server), server.to_string());
    for (KeyView& key : keys_of_stats(stats)) {
      if (key.idle_for && !invocation.arguments.has("idle")) continue;
      if (key.key.starts_with(prefix)) keys.push_back(std::move(key));
    }
  }
  sort(keys, invocation.arguments.has("waiters"));
  for (const KeyView& key : keys) listing.add(key, json_of(key));
}

}  // namespace

int execute_list(const Invocation& invocation) {
  Listing listing(invocation);
  if (!invocation.settings.http.empty()) {
    list_over_http(invocation, listing);
  } else {
    list_over_line(invocation, listing);
  }
  listing.finish();
  return kExitOk;
}

// --- describe ---

namespace {

std::string description_of(const KeyView& key, const Style& style) {
  std::string out = style.bold(printable(key.key)) + "  " + kind_text(key.kind);
  if (key.kind == Kind::semaphore) out += " of " + std::to_string(key.limit);
  out += ", " + std::to_string(key.holders) + (key.holders == 1 ? " holder, " : " holders, ") +
         std::to_string(key.waiters) + " waiting";
  if (key.idle_for) out += ", idle for " + human(*key.idle_for);
  out += '\n';
  Table holds({"HOLDER", "FENCE>", "HELD>", "EXPIRES>"});
  for (const HoldView& hold : key.holds) {
    holds.add(
        {hold.holder, fence_text(hold.fence), if_known(hold.held_for), if_known(hold.expires_in)});
  }
  if (!holds.empty()) out += '\n' + holds.text(style);
  Table queue({"#>", "WAITER", "WAITED>"});
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    queue.add({std::to_string(i + 1), key.queue[i].holder, human(key.queue[i].waited)});
  }
  if (!queue.empty()) out += '\n' + queue.text(style);
  return out;
}

}  // namespace

int execute_describe(const Invocation& invocation) {
  const std::string& key = invocation.arguments.operands().front();
  const HttpReply reply =
      require_http(invocation)->get("/v1/locks?idle=true&key=" + url_encoded(key));
  require(reply);
  const json::value page = parse_json(reply.body, "the server");
  bool found = false;
  for (const json::value& lock : array_of(page, "locks")) {
    if (text_of(lock, "key") != key) continue;
    if (invocation.arguments.has("json")) {
      invocation.output.line(json::serialize(lock));
    } else {
      invocation.output.write((found ? "\n" : "") +
                              description_of(key_view(lock), invocation.output.style()));
    }
    found = true;
  }
  if (found) return kExitOk;
  std::fprintf(stderr, "lockctl: the server knows no key %s: it is free\n", in_quotes(key).c_str());
  return kExitConflict;
}

// --- stats ---

namespace {

std::string figures_text(const ServerView& view) {
  return "connections " + grouped(view.connections) + ", keys " + grouped(view.keys) + " (" +
         grouped(view.keys_idle) + " idle), locks held " + grouped(view.locks_held) + " (" +
         grouped(view.lock_waiters) + " waiting), semaphore slots " +
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

// --- watch ---

namespace {

std::string clock_text(std::uint64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
                static_cast<int>(unix_ms % 1000));
  return text;
}

std::string marked(const Style& style, const std::string& name) {
  std::string padded = name;
  padded.resize(std::max(padded.size(), std::size_t{12}), ' ');
  if (name == "granted") return style.green(padded);
  if (name == "expired" || name == "disconnected" || name == "missed") return style.red(padded);
  if (name == "queued" || name == "gave_up") return style.yellow(padded);
  return padded;
}

std::string event_line(const StreamEvent& event, const Style& style) {
  const json::value data = parse_json(event.data, "the server");
  const std::string name = printable(event.name);
  if (name == "missed") {
    return marked(style, name) + " some events: we read too slowly";
  }
  std::string line = style.dim(clock_text(number_of(data, "at_unix_ms"))) + "  " +
                     marked(style, name) + "  " + style.bold(printable(text_of(data, "key"))) +
                     "  " + printable(text_of(data, "holder"));
  if (has(data, "token")) line += "  fence " + std::to_string(number_of(data, "token"));
  if (has(data, "waited_ms")) line += "  waited " + human(ms_of(data, "waited_ms"));
  if (has(data, "held_ms")) line += "  held " + human(ms_of(data, "held_ms"));
  if (has(data, "reason")) line += "  " + printable(text_of(data, "reason"));
  line += "  " + std::to_string(number_of(data, "holders")) + '/' +
          std::to_string(number_of(data, "limit")) + ", " +
          std::to_string(number_of(data, "waiters")) + " waiting";
  return line;
}

// As the server says it, with the event's name in it.
std::string event_json(const StreamEvent& event) {
  json::value data = parse_json(event.data, "the server");
  if (data.is_object()) data.as_object()["event"] = event.name;
  return json::serialize(data);
}

}  // namespace

int execute_watch(const Invocation& invocation) {
  const std::string prefix = invocation.arguments.operand_or(0, "");
  const bool as_json = invocation.arguments.has("json");
  const HttpReply refused =
      require_http(invocation)
          ->follow("/v1/events?prefix=" + url_encoded(prefix), [&](const StreamEvent& event) {
            invocation.output.line(as_json ? event_json(event)
                                           : event_line(event, invocation.output.style()));
          });
  require(refused);
  return kExitOk;
}

}  // namespace lockd::cli
