// What happens to keys: watch as it happens, history what has happened.
#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/values.h"
#include "lockctl/api/api.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/output.h"
#include "lockctl/output/view.h"

namespace lockd::cli {
namespace {

namespace json = boost::json;

// --- events as people are shown them ---

std::tm local_time(std::time_t seconds) {
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return local;
}

// "14:03:07.250", and the day before it unless that is today.
std::string clock_text(std::uint64_t unix_ms) {
  const std::tm local = local_time(static_cast<std::time_t>(unix_ms / 1000));
  const std::tm today = local_time(std::time(nullptr));
  const bool is_today = local.tm_year == today.tm_year && local.tm_yday == today.tm_yday;
  std::array<char, 32> text{};
  const std::size_t size =
      std::strftime(text.data(), text.size(), is_today ? "%H:%M:%S" : "%F %H:%M:%S", &local);
  std::snprintf(text.data() + size, text.size() - size, ".%03d", static_cast<int>(unix_ms % 1000));
  return text.data();
}

std::string marked(const Style& style, const std::string& name) {
  std::string padded = name;
  padded.resize(std::max(padded.size(), std::size_t{12}), ' ');
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (name == "granted") return style.green(padded);
  if (is_one_of({"queued", "gave_up", "slow_wait", "slow_hold", "resized"})) {
    return style.yellow(padded);
  }
  const bool is_quiet = is_one_of({"released", "started"});
  return is_quiet ? padded : style.red(padded);
}

// What it tells beside its name: as much as is known of it.
std::string details_of(const json::value& event, const Style& style) {
  std::string line;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) line += "  " + part;
  };
  const auto named = [&](const char* name, const char* member) {
    if (has(event, member)) add(name + printable(text_of(event, member)));
  };
  if (has(event, "key")) add(style.bold(printable(text_of(event, "key"))));
  named("", "holder");
  if (const auto who = identity_text(identity_of(event)); !who.empty()) add('(' + who + ')');
  if (has(event, "token")) add("fence " + std::to_string(number_of(event, "token")));
  add(share_text(mode_of(event), permits_of(event)));
  if (has(event, "waited_ms")) add("waited " + human(ms_of(event, "waited_ms")));
  if (has(event, "held_ms")) add("held " + human(ms_of(event, "held_ms")));
  named("", "reason");
  named("by ", "by");
  if (has(event, "limit")) {
    add(std::to_string(number_of(event, "holders")) + '/' +
        std::to_string(number_of(event, "limit")) + ", " +
        std::to_string(number_of(event, "waiters")) + " waiting");
  }
  return line;
}

std::string event_line(const json::value& event, const Style& style) {
  const std::string name = printable(text_of(event, "event"));
  if (name == "missed") return marked(style, name) + " some events: we read too slowly";
  std::string line = style.dim(clock_text(number_of(event, "at_unix_ms"))) + "  " +
                     marked(style, name) + details_of(event, style);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void print_event(const Invocation& invocation, const json::value& event) {
  invocation.output.line(invocation.arguments.has("json")
                             ? json::serialize(event)
                             : event_line(event, invocation.output.style()));
}

// --- watch ---

// Follows several servers at once: a thread for each, and one place where events come together. The
// first that ends ends all.
class Watching {
 public:
  explicit Watching(const Invocation& invocation)
      : invocation_(invocation), apis_(apis_of(invocation)) {}

  // Throws Failure: there is no other end.
  void run() {
    {
      std::vector<std::jthread> threads;
      for (const auto& api : apis_) threads.emplace_back([&] { follow(*api); });
    }
    throw Failure(failure_->code(), failure_->what());
  }

 private:
  void follow(Api& api) {
    const std::string prefix = invocation_.arguments.operand_or(0, "");
    try {
      require(api.follow("/v1/events", {{"prefix", prefix}}, [this](const json::value& event) {
        const std::lock_guard guard(mutex_);
        print_event(invocation_, event);
      }));
    } catch (const Failure& failure) {
      end(failure);
    }
  }

  void end(const Failure& failure) {
    const std::lock_guard guard(mutex_);
    if (failure_) return;
    failure_.emplace(failure);
    for (const auto& api : apis_) api->interrupt();
  }

  const Invocation& invocation_;
  const std::vector<std::unique_ptr<Api>> apis_;
  std::mutex mutex_;
  std::optional<Failure> failure_;  // guarded by the mutex while there are threads
};

// --- history ---

std::uint64_t unix_ms_of(std::time_t seconds) { return static_cast<std::uint64_t>(seconds) * 1000; }

// A point in time on this machine's clock: with its day, or of today.
std::optional<std::uint64_t> parse_time(const std::string& text) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                           "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M"}) {
    std::tm time = local_time(std::time(nullptr));
    time.tm_hour = time.tm_min = time.tm_sec = 0;
    const char* const end = ::strptime(text.c_str(), form, &time);
    if (end == nullptr || *end != '\0') continue;
    time.tm_isdst = -1;
    return unix_ms_of(std::mktime(&time));
  }
  return std::nullopt;
}

// How long ago it was, or when.
std::uint64_t since_of(std::string_view text) {
  if (const auto ago = config::parse_duration(text)) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto since = std::chrono::floor<std::chrono::milliseconds>(now - *ago).count();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(since, 0));
  }
  if (const auto time = parse_time(std::string(text))) return *time;
  throw Failure(kExitUsage, "--since is " + in_quotes(text) +
                                ": it takes how long ago, as 10m, or a time of this machine's "
                                "clock, as 14:05 or 2026-01-31T14:05");
}

Parameters history_question(const Arguments& arguments) {
  Parameters question;
  const auto add = [&](const char* name, const char* option) {
    if (const auto value = arguments.text(option)) question.push_back({name, std::string(*value)});
  };
  if (!arguments.operands().empty()) question.push_back({"key", key_of(arguments)});
  add("holder", "holder");
  add("client", "client");
  if (const auto id = arguments.text("client-id")) {
    question.push_back({"client_id", client_id_of(*id)});
  }
  add("event", "event");
  if (const auto since = arguments.text("since")) {
    question.push_back({"since_unix_ms", since_of(*since)});
  }
  if (const auto limit = arguments.whole("limit")) question.push_back({"limit", *limit});
  return question;
}

std::vector<std::unique_ptr<Api>> servers_with(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  if (arguments.operands().empty() && !arguments.has("client-id")) return apis_of(invocation);
  std::vector<std::unique_ptr<Api>> one;
  one.push_back(arguments.has("client-id") ? only_api_of(invocation)
                                           : api_of(invocation, key_of(arguments)));
  return one;
}

// The oldest first. Each server tells them newest first.
std::vector<json::value> events_of(const Invocation& invocation) {
  const Parameters question = history_question(invocation.arguments);
  std::vector<json::value> events;
  for (const auto& api : servers_with(invocation)) {
    const ApiReply reply = api->get("/v1/history", question);
    require(reply);
    const json::value history = parse_json(reply.body, api->server());
    const json::array& told = array_of(history, "events");
    events.insert(events.end(), told.rbegin(), told.rend());
  }
  std::stable_sort(events.begin(), events.end(), [](const json::value& a, const json::value& b) {
    return number_of(a, "at_unix_ms") < number_of(b, "at_unix_ms");
  });
  return events;
}

}  // namespace

int execute_watch(const Invocation& invocation) {
  Watching(invocation).run();
  return kExitOk;
}

int execute_history(const Invocation& invocation) {
  const std::vector<json::value> events = events_of(invocation);
  for (const json::value& event : events) print_event(invocation, event);
  if (events.empty() && !invocation.arguments.has("json")) {
    std::fprintf(stderr, "lockctl: the history has nothing of the kind\n");
  }
  return kExitOk;
}

}  // namespace lockd::cli
