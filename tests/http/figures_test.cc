// What the server counts: the overview, and the text for Prometheus.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "lockd/histogram.h"
#include "support/http_client.h"

namespace lockd {
namespace {

// Does a little of everything: four grants, one of them after a wait, a renewal, a release, an
// expiry, a wait that runs out, a refusal, a signal.
void be_busy(HttpServer& server, HttpClient& client) {
  const std::int64_t token =
      client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":600000)")).number("token");
  ASSERT_EQ(client.post("/v1/renew", hold_json("k", "a", token)).status, 200);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "b")).status, 409);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "b", R"("wait_ms":1)")).status, 409);
  HttpClient waiter = server.browse();
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "c", R"("wait_ms":600000)")));
  ASSERT_TRUE(await_line(client, "k", 1));
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", token)).status, 200);
  ASSERT_EQ(waiter.read_reply().status, 200);
  ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("s", "a", R"("limit":2)")).status, 200);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("short", "a", R"("ttl_ms":1)")).status, 200);
  ASSERT_EQ(client.post("/v1/signals/c", R"({"payload":"x"})").status, 200);
  while (client.get("/v1/fence?key=short").body.find("true") != std::string::npos) {
  }
}

TEST(HttpFigures, TheOverviewOfNothing) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply reply = client.get("/v1/overview");
  const boost::json::value overview = reply.json();
  EXPECT_TRUE(overview.at("ready").as_bool());
  EXPECT_FALSE(overview.at("draining").as_bool());
  EXPECT_EQ(overview.at("started_unix_ms").as_int64(),
            client.get("/v1/overview").json().at("started_unix_ms").as_int64());
  EXPECT_LE(overview.at("started_unix_ms").as_int64(), overview.at("now_unix_ms").as_int64());
  EXPECT_EQ(overview.at("line_port").as_int64(), server.port());
  EXPECT_EQ(overview.at("http_port").as_int64(), server.http_port());
  EXPECT_EQ(overview.at("connections").as_int64(), 1);
  EXPECT_EQ(overview.at("keys").at("count").as_int64(), 0);
  EXPECT_EQ(overview.at("keys").at("max").as_int64(), 1'000'000);
  EXPECT_EQ(overview.at("totals").at("grants").as_int64(), 0);
  EXPECT_EQ(overview.at("signals").at("listeners").as_int64(), 0);
  EXPECT_GE(overview.at("uptime_ms").as_int64(), 0);
  EXPECT_EQ(overview.at("wait").at("counts").as_array().size(), Histogram::kBucketCount);
  EXPECT_EQ(overview.at("wait").at("le_ms").as_array().size(), Histogram::kBoundCount);
}

TEST(HttpFigures, TheOverviewMoves) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_NO_FATAL_FAILURE(be_busy(server, client));
  LineClient line = server.connect();
  ASSERT_EQ(line.ask(request("listen", "a.*", "g")), "ok");
  const boost::json::value overview = client.get("/v1/overview").json();
  const auto total = [&](const char* name) { return overview.at("totals").at(name).as_int64(); };
  EXPECT_EQ(total("grants"), 4);
  EXPECT_EQ(total("contended"), 1);
  EXPECT_EQ(total("renewals"), 1);
  EXPECT_EQ(total("releases"), 1);
  EXPECT_EQ(total("expiries"), 1);
  EXPECT_EQ(total("timeouts"), 1);
  EXPECT_EQ(total("disconnects"), 0);
  EXPECT_EQ(total("cancels"), 0);
  EXPECT_EQ(overview.at("locks_held").as_int64(), 1);
  EXPECT_EQ(overview.at("semaphore_holders").as_int64(), 1);
  EXPECT_EQ(overview.at("lock_waiters").as_int64(), 0);
  EXPECT_EQ(overview.at("keys").at("count").as_int64(), 3);
  EXPECT_EQ(overview.at("keys").at("idle").as_int64(), 1);
  EXPECT_EQ(overview.at("signals").at("listeners").as_int64(), 1);
  EXPECT_EQ(overview.at("signals").at("channels").at(0).at("pattern").as_string(), "a.*");
  std::int64_t waits = 0;
  for (const auto& count : overview.at("wait").at("counts").as_array()) waits += count.as_int64();
  EXPECT_EQ(waits, 1);
}

// The samples by name and labels, as written.
using Samples = std::map<std::string, double>;

struct Exposition {
  Samples samples;
  std::map<std::string, std::string> types;  // by family
  std::vector<std::string> problems;
};

// The text format of Prometheus, strictly, as far as it is used.
Exposition parse(const std::string& text) {
  static const std::regex help("# HELP ([a-z_]+) .+");
  static const std::regex type("# TYPE ([a-z_]+) (counter|gauge|histogram)");
  static const std::regex sample(R"re(([a-z_]+)(\{([a-z]+="[^"\\]*",?)+\})? (\S+)( \d+)?)re");
  Exposition parsed;
  std::string family;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    std::smatch parts;
    if (std::regex_match(line, parts, help)) {
      family = parts[1];
    } else if (std::regex_match(line, parts, type)) {
      if (parts[1] != family || !parsed.types.emplace(family, parts[2]).second) {
        parsed.problems.push_back(line);
      }
    } else if (std::regex_match(line, parts, sample)) {
      const bool in_family = parts[1].str().starts_with(family);
      const bool is_new =
          parsed.samples.emplace(parts[1].str() + parts[2].str(), std::stod(parts[4])).second;
      if (!in_family || !is_new) parsed.problems.push_back(line);
    } else {
      parsed.problems.push_back(line);
    }
  }
  return parsed;
}

Exposition metrics_of(HttpClient& client) {
  const HttpReply reply = client.get("/metrics");
  EXPECT_EQ(reply.field("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  Exposition parsed = parse(reply.body);
  for (const std::string& problem : parsed.problems) ADD_FAILURE() << problem;
  return parsed;
}

TEST(HttpFigures, TheMetricsThatPeopleKnow) {
  HttpServer server;
  HttpClient client = server.browse();
  const Exposition metrics = metrics_of(client);
  for (const char* name :
       {"lockd_connections", "lockd_locks_held", "lockd_shared_holds", "lockd_lock_waiters",
        "lockd_semaphore_holders", "lockd_semaphore_waiters", "lockd_signal_listeners",
        "lockd_uptime_seconds", "lockd_ready", "lockd_oldest_wait_seconds",
        "lockd_oldest_hold_seconds", "lockd_longest_queue", "process_resident_memory_bytes",
        "process_virtual_memory_bytes", "process_open_fds", "process_max_fds",
        "process_start_time_seconds"}) {
    EXPECT_TRUE(metrics.samples.contains(name)) << name;
    EXPECT_EQ(metrics.types.at(name), "gauge") << name;
  }
  for (const char* name : {"lockd_grants_total", "lockd_contended_total", "lockd_timeouts_total",
                           "lockd_queued_total"}) {
    EXPECT_TRUE(metrics.samples.contains(name)) << name;
    EXPECT_EQ(metrics.types.at(name), "counter") << name;
  }
  for (const char* name : {"lockd_http_requests_total", "lockd_violations_total"}) {
    EXPECT_EQ(metrics.types.at(name), "counter") << name;
  }
  for (const char* name : {"lockd_wait_seconds", "lockd_hold_seconds", "lockd_handoff_seconds",
                           "lockd_expiry_lag_seconds"}) {
    EXPECT_EQ(metrics.types.at(name), "histogram") << name;
    EXPECT_TRUE(metrics.samples.contains(std::string(name) + "_sum")) << name;
    EXPECT_TRUE(metrics.samples.contains(std::string(name) + "_bucket{le=\"+Inf\"}")) << name;
  }
}

TEST(HttpFigures, TheMetricsMove) {
  HttpServer server;
  HttpClient client = server.browse();
  const Exposition before = metrics_of(client);
  EXPECT_EQ(before.samples.at("lockd_ready"), 1);
  EXPECT_EQ(before.samples.at("lockd_connections"), 1);
  ASSERT_NO_FATAL_FAILURE(be_busy(server, client));
  {
    LineClient line = server.connect();
    ASSERT_EQ(line.ask(request("ping", "", "")), "ok");
    ASSERT_EQ(line.ask(request("nonsense", "", "")), "error");
    EXPECT_EQ(line.read_line(), kEnd);
  }
  Exposition after = metrics_of(client);
  const std::map<std::string, double> moved = {
      {"lockd_grants_total", 4},
      {"lockd_contended_total", 1},
      {"lockd_renewals_total", 1},
      {"lockd_ended_total{cause=\"released\"}", 1},
      {"lockd_ended_total{cause=\"expired\"}", 1},
      {"lockd_queued_total", 2},
      {"lockd_timeouts_total", 1},
      {"lockd_refusals_total{reason=\"held\"}", 1},
      {"lockd_signals_published_total", 1},
      {"lockd_line_requests_total", 2},
      {"lockd_violations_total{code=\"3\"}", 1},
      {"lockd_wait_seconds_count", 1},
      {"lockd_handoff_seconds_count", 1},
      {"lockd_hold_seconds_count", 2},
      {"lockd_expiry_lag_seconds_count", 1},
      {"lockd_http_requests_total{call=\"acquire\",code=\"200\"}", 3},
      {"lockd_http_requests_total{call=\"acquire\",code=\"409\"}", 2},
      {"lockd_http_requests_total{call=\"semaphore_acquire\",code=\"200\"}", 1},
      {"lockd_http_requests_total{call=\"renew\",code=\"200\"}", 1},
      {"lockd_http_requests_total{call=\"publish\",code=\"200\"}", 1},
  };
  for (const auto& [name, by] : moved) {
    EXPECT_EQ(after.samples[name] - (before.samples.contains(name) ? before.samples.at(name) : 0),
              by)
        << name;
  }
}

TEST(HttpFigures, EveryViolationOfAConnectionThatGoesOnIsCounted) {
  Options options = http_options();
  options.close_on_violation = false;
  HttpServer server(options);
  LineClient line = server.connect();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(line.ask(request("nonsense", "", "")), "error");
  ASSERT_EQ(line.ask(request("l", "", "0")), "error");
  line.close();
  HttpClient client = server.browse();
  const Exposition metrics = metrics_of(client);
  EXPECT_EQ(metrics.samples.at("lockd_violations_total{code=\"3\"}"), 2);
  EXPECT_EQ(metrics.samples.at("lockd_violations_total{code=\"5\"}"), 1);
}

// Who leaves between requests, or while one waits, breaks no rule.
TEST(HttpFigures, WhoLeavesInTheMiddleOfARequestIsCounted) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::string count = "lockd_violations_total{code=\"11\"}";
  const auto await_alone = [&] {
    const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
    while (metrics_of(client).samples.at("lockd_connections") > 1) {
      ASSERT_LT(HttpClient::Clock::now(), deadline);
    }
  };
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  {
    LineClient line = server.connect();
    ASSERT_EQ(line.ask(request("ping", "", "")), "ok");
    LineClient waiter = server.connect();
    waiter.send(request("l", "k", "1000") + "pi");
    ASSERT_TRUE(await_line(client, "k", 1));
  }
  await_alone();
  EXPECT_EQ(metrics_of(client).samples[count], 0);
  {
    LineClient half = server.connect();
    ASSERT_EQ(half.ask(request("ping", "", "") + "ping\n"), "ok");
  }
  await_alone();
  EXPECT_EQ(metrics_of(client).samples[count], 1);
}

// Whatever clients send, the number of samples has a bound: what they choose is in no label.
TEST(HttpFigures, NoLabelIsChosenByClients) {
  HttpServer server;
  HttpClient client = server.browse();
  for (int i = 0; i < 50; ++i) {
    const std::string name = "chosen" + std::to_string(i);
    client.get("/" + name);
    client.ask(name, "/v1/stats");
    client.post("/v1/acquire", hold_json(name, name));
    client.post("/v1/signals/" + name, R"({"payload":"x"})");
  }
  const HttpReply reply = client.get("/metrics");
  EXPECT_EQ(reply.body.find("chosen"), std::string::npos);
  std::set<std::string> labels;
  static const std::regex label(R"re(([a-z]+)=")re");
  for (auto found = std::sregex_iterator(reply.body.begin(), reply.body.end(), label);
       found != std::sregex_iterator(); ++found) {
    labels.insert((*found)[1]);
  }
  for (const char* known :
       {"call", "code", "cause", "reason", "le", "state", "version", "protocol"}) {
    labels.erase(known);
  }
  EXPECT_TRUE(labels.empty()) << *labels.begin();
}

}  // namespace
}  // namespace lockd
