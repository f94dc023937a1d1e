// What the log has at each level, and that it can be read by machines.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "journal/testing/temporary_directory.h"
#include "support/loopback.h"
#include "support/process.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using boost::json::object;

std::vector<object> lines_of(const std::string& log) {
  std::vector<object> lines;
  std::istringstream text(log);
  for (std::string line; std::getline(text, line);) {
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(line, error);
    EXPECT_TRUE(!error && value.is_object()) << "no JSON: " << line;
    if (!error && value.is_object()) lines.push_back(value.get_object());
  }
  return lines;
}

// Empty, or -1, when it is not there or is something else.
std::string text(const object& line, std::string_view member) {
  const boost::json::value* const value = line.if_contains(member);
  return value == nullptr || !value->is_string() ? "" : std::string(value->get_string());
}
std::int64_t number(const object& line, std::string_view member) {
  const boost::json::value* const value = line.if_contains(member);
  return value == nullptr || !value->is_int64() ? -1 : value->get_int64();
}

std::string event_of(const object& line) { return text(line, "event"); }

std::set<std::string> events_of(const std::vector<object>& lines) {
  std::set<std::string> events;
  for (const object& line : lines) events.insert(event_of(line));
  return events;
}

// The first of them that is about `key`, if one is named; empty when there is none.
object find(const std::vector<object>& lines, std::string_view event, std::string_view key = {}) {
  for (const object& line : lines) {
    if (event_of(line) == event && (key.empty() || text(line, "key") == key)) return line;
  }
  return {};
}

constexpr std::string_view kSecret = "a secret of sixteen or more";

// Everything that a level has something to say of happens to a server, which then stops.
std::vector<object> run_at(const std::string& level) {
  const TemporaryDirectory folder;
  ServerProcess server({"--log-format", "json", "--log-level", level, "--wal",
                        folder.path() + "/wal", "--auth-token", std::string(kSecret),
                        "--gc-interval", "1", "--gc-max-idle", "0", "--host", "127.0.0.1"});
  {
    LineClient stranger(server.port(), 0, false);
    EXPECT_EQ(stranger.ask(request("auth", "", "no such secret")), "error_auth");
    LineClient client(server.port(), 0, false);
    EXPECT_EQ(client.ask(request("auth", "", kSecret)), "ok");
    EXPECT_EQ(masked(client.ask(request("l", "short", "0 1"))), "ok <token> 1");
    const std::string token = token_of(client.ask(request("l", "kept", "0")));
    LineClient waiter(server.port(), 0, false);
    EXPECT_EQ(waiter.ask(request("auth", "", kSecret)), "ok");
    waiter.send(request("l", "kept", "10"));
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(client.ask(request("r", "kept", token)), "ok");
    EXPECT_EQ(masked(waiter.read_line()), "ok <token> 33");
    ::kill(server.pid(), SIGHUP);
    EXPECT_TRUE(server.comes_to_log("lease expired"));
    if (level == "trace") {
      EXPECT_TRUE(server.comes_to_log("idle keys forgotten"));
    }
    EXPECT_EQ(client.ask(request("no-command", "short", "")), "error");
  }
  server.terminate();
  EXPECT_EQ(server.await_exit(), 0);
  const std::string log = server.log();
  EXPECT_EQ(log.find(kSecret), std::string::npos);
  EXPECT_EQ(log.find("no such secret"), std::string::npos);
  return lines_of(log);
}

// The log of such a server, of which there is one for each level. They run together.
const std::vector<object>& log_at(const std::string& level) {
  static const auto logs = [] {
    std::map<std::string, std::future<std::vector<object>>> running;
    for (const char* each : {"info", "debug", "trace"}) {
      running[each] = std::async(std::launch::async, run_at, each);
    }
    std::map<std::string, std::vector<object>> all;
    for (auto& [each, lines] : running) all[each] = lines.get();
    return all;
  }();
  return logs.at(level);
}

const std::set<std::string> kAtWarn = {"authentication failed", "lease expired", "violation"};
const std::set<std::string> kAtInfo = {"starting", "recovered", "listening",
                                       "reloaded", "stopping",  "stopped"};
const std::set<std::string> kAtDebug = {"client connected", "client disconnected", "request"};
const std::set<std::string> kAtTrace = {"batch", "idle keys forgotten", "sweep"};

std::set<std::string> all_of(std::initializer_list<std::set<std::string>> sets) {
  std::set<std::string> all;
  for (const std::set<std::string>& some : sets) all.insert(some.begin(), some.end());
  return all;
}

TEST(LogLevels, EachAddsWhatItShould) {
  EXPECT_EQ(events_of(log_at("info")), all_of({kAtWarn, kAtInfo}));
  EXPECT_EQ(events_of(log_at("debug")), all_of({kAtWarn, kAtInfo, kAtDebug}));
  EXPECT_EQ(events_of(log_at("trace")), all_of({kAtWarn, kAtInfo, kAtDebug, kAtTrace}));
}

TEST(LogLevels, DrainSaysWhatItWaitsFor) {
  ServerProcess server({"--memory", "--shutdown-timeout", "300", "--host", "127.0.0.1"});
  LineClient holder(server.port(), 0, false);
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  server.terminate();
  EXPECT_TRUE(
      server.comes_to_log("draining: 1 connection still holds a lock; waiting up to 300 "
                          "s (a second signal stops the server now)"))
      << server.log();
  server.terminate();
  EXPECT_EQ(server.await_exit(), 0);
}

// Whose port is not in its log, as that is at info.
TEST(LogLevels, WarnLeavesOutWhatIsAtInfo) {
  const std::uint16_t port = free_port();
  const int log = new_file();
  const pid_t server =
      spawn({.words = {LOCKD_TEST_SERVER, "--memory", "--http-addr", "off", "--port",
                       std::to_string(port), "--log-format", "json", "--log-level", "warn"},
             .errors = log});
  std::string reply;
  for (int tries = 0; tries < 1000 && reply.empty(); ++tries) {
    LineClient client(port, 0, false);
    if (client.connected()) reply = client.ask(request("no-command", "key", ""));
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(reply, "error");
  ::kill(server, SIGTERM);
  int status = 0;
  EXPECT_EQ(::waitpid(server, &status, 0), server);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(events_of(lines_of(read_file(log))), std::set<std::string>{"violation"});
  ::close(log);
}

TEST(LogLevels, DebugIsTheSwitchOfThatName) {
  const ServerProcess server({"--debug"});
  EXPECT_EQ(LineClient(server.port(), 0, false).ask(request("ping", "", "")), "ok");
  EXPECT_TRUE(server.comes_to_log(" request ")) << server.log();
}

// What a line says, and as what.
TEST(LogLevels, NumbersAreNumbers) {
  const std::vector<object> lines = log_at("debug");
  const object start = find(lines, "starting");
  EXPECT_GT(number(start, "pid"), 0);
  EXPECT_NE(text(start, "version"), "");
  EXPECT_NE(text(start, "journal"), "none");
  EXPECT_EQ(number(find(lines, "recovered"), "holds"), 0);
  EXPECT_GE(number(find(lines, "recovered"), "took_ms"), 0);
  EXPECT_GT(number(find(lines, "listening"), "port"), 0);
  const object violation = find(lines, "violation");
  EXPECT_EQ(number(violation, "code"), 3);
  EXPECT_EQ(text(violation, "reason"), "unknown command");
  EXPECT_GT(number(violation, "client_id"), 0);
  for (const object& line : {violation, find(lines, "authentication failed")}) {
    EXPECT_TRUE(text(line, "peer").starts_with("127.0.0.1:")) << line;
  }
  EXPECT_GE(number(find(lines, "client disconnected"), "connected_ms"), 0);
  const object expired = find(lines, "lease expired", "short");
  EXPECT_GE(number(expired, "held_ms"), 1000);
  EXPECT_GT(number(expired, "fence"), 0);
  EXPECT_TRUE(text(expired, "holder").starts_with("tcp:")) << expired;
}

TEST(LogLevels, ARequestThatWaitsIsLoggedWhenItEnds) {
  std::vector<std::int64_t> took_us;
  for (const object& line : log_at("debug")) {
    if (text(line, "key") != "kept" || text(line, "request") != "l") continue;
    EXPECT_EQ(text(line, "outcome"), "ok");
    EXPECT_GT(number(line, "fence"), 0);
    took_us.push_back(number(line, "took_us"));
  }
  ASSERT_EQ(took_us.size(), 2U);
  EXPECT_LT(took_us[0], took_us[1]);
  EXPECT_GE(took_us[1], 40'000);
}

// Neither a key nor a path ends its line, or its quotes.
TEST(LogLevels, NothingForgesALine) {
  const ServerProcess server({"--log-format", "json", "--debug", "--http-addr", "127.0.0.1:0"});
  const std::string key = R"(","event":"forged" \ x=")";
  LineClient client(server.port(), 0, false);
  EXPECT_EQ(masked(client.ask(request("l", key, "0"))), "ok <token> 33");
  ClientSocket caller({.port = server.http_port(), .tls = false});
  caller.send("GET /%0a%7b%22event%22:%22forged%22%7d%ff HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(server.comes_to_log("\"outcome\":\"not_found\"")) << server.log();
  const std::vector<object> lines = lines_of(server.log());
  EXPECT_EQ(events_of(lines).count("forged"), 0U);
  EXPECT_EQ(text(find(lines, "request", key), "outcome"), "ok");
}

}  // namespace
}  // namespace lockd
