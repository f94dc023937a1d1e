// lockctl watch.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <ctime>
#include <string>

#include "lockctl/commands/commands.h"
#include "lockctl/http/fetch.h"
#include "lockctl/http/json.h"
#include "lockctl/output/text.h"

namespace lockd::cli {
namespace {

namespace json = boost::json;

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
