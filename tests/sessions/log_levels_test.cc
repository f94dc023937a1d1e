// What the log has at each level, and that it can be read by machines.
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "journal/testing/temporary_directory.h"
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

std::string event_of(const object& line) { return std::string(line.at("event").as_string()); }

std::set<std::string> events_of(const std::vector<object>& lines) {
  std::set<std::string> events;
  for (const object& line : lines) events.insert(event_of(line));
  return events;
}

// The first of them that is about `key`, if one is named; empty when there is none.
object find(const std::vector<object>& lines, std::string_view event, std::string_view key = {}) {
  for (const object& line : lines) {
    const boost::json::value* const about = line.if_contains("key");
    const bool is_it = key.empty() || (about != nullptr && *about == key);
    if (event_of(line) == event && is_it) return line;
  }
  return {};
}

constexpr std::string_view kSecret = "a secret of sixteen or more";

// Everything that a level has something to say of happens to a server, which then stops.
std::vector<object> log_at(const std::string& level) {
  const TemporaryDirectory folder;
  ServerProcess server({"--log-format", "json", "--log-level", level, "--wal", folder.path() + "/wal",
                        "--auth-token", std::string(kSecret), "--gc-interval", "1",
                        "--gc-max-idle", "0"},
                       ServerProcess::Launch{.environment = {"DFLOCKD_TLS_CERT="}});
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
    std::this_thread::sleep_for(2500ms);  // the lease runs out, and the idle key is forgotten
    EXPECT_EQ(client.ask(request("no-command", "short", "")), "error");
  }
  server.terminate();
  EXPECT_EQ(server.await_exit(), 0);
  const std::string log = server.log();
  EXPECT_EQ(log.find(kSecret), std::string::npos);
  EXPECT_EQ(log.find("no such secret"), std::string::npos);
  return lines_of(log);
}

const std::set<std::string> kAtWarn = {"authentication failed", "lease ran out", "violation"};
const std::set<std::string> kAtInfo = {"starting",       "recovered", "listening", "reloaded",
                                       "stopping",       "stopped"};
const std::set<std::string> kAtDebug = {"client came", "client went", "request"};
const std::set<std::string> kAtTrace = {"batch", "idle keys forgotten", "sweep"};

std::set<std::string> all_of(std::initializer_list<std::set<std::string>> sets) {
  std::set<std::string> all;
  for (const std::set<std::string>& some : sets) all.insert(some.begin(), some.end());
  return all;
}

// ServerProcess waits for the port that is logged at info: what is below has its own way.
TEST(LogLevels, EachAddsWhatItShould) {
  EXPECT_EQ(events_of(log_at("info")), all_of({kAtWarn, kAtInfo}));
  EXPECT_EQ(events_of(log_at("debug")), all_of({kAtWarn, kAtInfo, kAtDebug}));
  EXPECT_EQ(events_of(log_at("trace")), all_of({kAtWarn, kAtInfo, kAtDebug, kAtTrace}));
}

}  // namespace
}  // namespace lockd
