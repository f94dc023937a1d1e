// ping, listen, signal: what goes over the line port as it is.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/json_text.h"
#include "lockctl/api/json.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockd/client/client.h"

namespace lockd::cli {
namespace {

using client::Connection;
using SteadyClock = std::chrono::steady_clock;

struct Pinged {
  client::Status status;
  Duration took{};
  std::string leader{};     // of a server that follows: whom; "-" when nobody leads
  std::string not_ready{};  // why; empty: it is, or was not asked
};

// A server that follows may have asked the one that leads. Empty: it leads, or does not say.
std::string leader_over(Connection& connection) {
  const auto answer =
      connection.api({.method = "GET", .path = "/v1/overview", .json = R"({"local":true})"});
  if (!answer || answer->status != 200) return {};
  const auto overview = parse_json(answer->json, "the server");
  const auto* const cluster = member(overview, "cluster");
  if (cluster == nullptr || text_of(*cluster, "role") != "follower") return {};
  return printable(text_of(*cluster, "leader_addr"));
}

// As GET /readyz says: of a cluster, whether it could lead.
Pinged ask_ready(const client::Address& server, const Settings& settings) {
  auto connection = Connection::open(server, settings.connect);
  if (!connection) return {connection, {}};
  const auto start = SteadyClock::now();
  const auto answer = connection->api({.method = "GET", .path = "/readyz"});
  const Duration took = SteadyClock::now() - start;
  if (!answer || answer->status == 200) return {answer, took};
  const auto health = parse_json(answer->json, server.to_string());
  return {.status = {}, .took = took, .not_ready = printable(text_of(health, "status"))};
}

Pinged ping(const client::Address& server, const Settings& settings) {
  auto connection = Connection::open(server, settings.connect);
  if (!connection) return {connection, {}};
  const auto start = SteadyClock::now();
  client::Status status = settings.is_cluster ? connection->barrier() : connection->ping();
  const Duration took = SteadyClock::now() - start;
  if (status && settings.is_cluster) return {{}, took, leader_over(*connection)};
  if (status.outcome != client::Outcome::not_leader) return {std::move(status), took};
  // Of a cluster all but one follow. It has answered.
  return {{}, took, status.leader.empty() ? "-" : printable(status.leader)};
}

std::string said(const Pinged& pinged) {
  if (!pinged.status) return failure_of(pinged.status).what();
  if (!pinged.not_ready.empty()) return "not ready: " + pinged.not_ready;
  if (pinged.leader.empty()) return "ok";
  return pinged.leader == "-" ? "nobody leads" : "follows " + pinged.leader;
}

std::string ping_json(const client::Address& server, const Pinged& pinged) {
  JsonObject json;
  json.add("server", server.to_string());
  json.add("ok", static_cast<bool>(pinged.status));
  if (pinged.status) {
    json.add("ms", rounded(std::chrono::duration<double, std::milli>(pinged.took).count()));
    if (!pinged.leader.empty()) json.add("follows", as_utf8(pinged.leader));
    if (!pinged.not_ready.empty()) json.add("not_ready", as_utf8(pinged.not_ready));
  } else {
    json.add("error", as_utf8(failure_of(pinged.status).what()));
  }
  return json.finish();
}

// Listens to several servers at once: a thread for each, and one place where signals come together.
class Listening {
 public:
  explicit Listening(const Invocation& invocation)
      : invocation_(invocation), left_(invocation.arguments.whole("count").value_or(UINT64_MAX)) {}

  int run() {
    const std::vector<client::Address> servers = servers_to_ask(invocation_.settings);
    std::vector<std::jthread> threads;
    for (const client::Address& server : servers) {
      threads.emplace_back([this, &server] { listen(server); });
    }
    threads.clear();  // joins
    if (failure_) throw Failure(failure_->code(), failure_->what());
    return left_ == 0 ? kExitOk : kExitConflict;
  }

 private:
  void listen(const client::Address& server) {
    try {
      follow(server);
    } catch (const Failure& failure) {
      const std::lock_guard guard(mutex_);
      if (!failure_ && !stop_.stop_requested()) {
        failure_.emplace(failure.code(), server.to_string() + ": " + failure.what());
      }
    }
    stop_.request_stop();
  }

  void follow(const client::Address& server) {
    const std::stop_token stop = stop_.get_token();
    auto connection = Connection::open(server, invocation_.settings.connect, stop);
    require(connection);
    const std::string group(invocation_.arguments.text("group").value_or(""));
    for (const std::string& pattern : invocation_.arguments.operands()) {
      require(connection->listen(pattern, group, stop));
    }
    for (;;) {
      const auto signal = connection->next_signal(patience(), stop);
      if (signal.outcome == client::Outcome::cancelled) return;
      if (signal.outcome == client::Outcome::timeout) {
        if (patience() <= Duration::zero()) return;
        continue;
      }
      require(signal);
      if (!print(*signal)) return;
    }
  }

  // How long nothing may come any more, from whatever server.
  Duration patience() {
    const auto wait = invocation_.arguments.seconds("wait");
    if (!wait) return kEndless;
    const std::lock_guard guard(mutex_);
    return std::max(Duration::zero(), *wait - (SteadyClock::now() - last_));
  }

  // False when that was the last.
  bool print(const client::Signal& signal) {
    const std::lock_guard guard(mutex_);
    if (left_ == 0) return false;
    last_ = SteadyClock::now();
    if (invocation_.arguments.has("json")) {
      JsonObject json;
      json.add("channel", as_utf8(signal.channel));
      json.add("payload", as_utf8(signal.payload));
      invocation_.output.line(json.finish());
    } else {
      invocation_.output.line(invocation_.output.style().bold(printable(signal.channel)) + ' ' +
                              printable(signal.payload));
    }
    return --left_ > 0;
  }

  const Invocation& invocation_;
  std::stop_source stop_;
  std::mutex mutex_;
  // Guarded by the mutex while there are threads.
  std::uint64_t left_;
  SteadyClock::time_point last_ = SteadyClock::now();
  std::optional<Failure> failure_;
};

}  // namespace

int execute_ping(const Invocation& invocation) {
  int code = kExitOk;
  Table table({"SERVER", "TIME>", ""});
  for (const client::Address& server : invocation.settings.servers) {
    const bool about_ready = invocation.arguments.has("ready");
    const Pinged pinged = (about_ready ? ask_ready : ping)(server, invocation.settings);
    if (!pinged.status && code == kExitOk) code = failure_of(pinged.status).code();
    if (!pinged.not_ready.empty() && code == kExitOk) code = kExitTemporary;
    if (invocation.arguments.has("json")) {
      invocation.output.line(ping_json(server, pinged));
      continue;
    }
    char took[32];
    std::snprintf(took, sizeof took, "%.2f ms",
                  std::chrono::duration<double, std::milli>(pinged.took).count());
    table.add({server.to_string(), pinged.status ? took : "-", said(pinged)});
  }
  if (!table.empty()) invocation.output.write(table.text(invocation.output.style()));
  return code;
}

int execute_listen(const Invocation& invocation) { return Listening(invocation).run(); }

int execute_signal(const Invocation& invocation) {
  const std::string& channel = invocation.arguments.operands()[0];
  client::Client client(invocation.settings.client());
  auto connection = client.connect(channel);
  require(connection);
  const auto reached = connection->publish(channel, invocation.arguments.operands()[1]);
  require(reached);
  if (invocation.arguments.has("json")) {
    JsonObject json;
    json.add("delivered", *reached);
    invocation.output.line(json.finish());
  } else {
    invocation.output.line(std::to_string(*reached));
  }
  return kExitOk;
}

}  // namespace lockd::cli
