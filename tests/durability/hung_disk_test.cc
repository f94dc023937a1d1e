// A disk that does not answer for a while: nobody hears of what is not durable, and everything is
// as it should be once it does.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"
#include "support/live_faults.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class HungDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_faults()) GTEST_SKIP() << "faults come from fault_shim";
  }
  void TearDown() override { faults_->hung = 0; }

  // With one loop, whose turns are in order.
  std::vector<std::string> flags(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--threads", "1", "--http-addr", "127.0.0.1:0"});
    return durable(directory_.path(), std::move(more));
  }
  ServerProcess::Launch environment() {
    return {.environment = faults({"LIVE=" + elsewhere_.path() + "/faults"})};
  }

  // By fresh clients: the answer to one that asks in the turn of a grant waits for the disk as
  // well.
  static void await_figure(const ServerProcess& server, const std::string& line) {
    const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
    HttpReply reply;
    do {
      ASSERT_LT(HttpClient::Clock::now(), deadline) << line << "\n" << reply.body;
      HttpClient client({.port = server.http_port()});
      client.send(client.written("GET", "/metrics"));
      reply = client.read_reply(false, 2s);
    } while (reply.body.find("\n" + line + "\n") == std::string::npos);
  }
  // As fresh clients are told.
  static std::string answer_to(const ServerProcess& server, const std::string& path) {
    return shown(HttpClient({.port = server.http_port()}).get(path));
  }
  static double figure(const ServerProcess& server, const std::string& name) {
    const std::string text = HttpClient({.port = server.http_port()}).get("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  // Four clients that hold a lock each, and do not wait for the answers.
  static void renew_all_the_time(const ServerProcess& server, const std::stop_token& stop) {
    std::vector<LineClient> clients;
    std::vector<std::string> renewals;
    for (int i = 0; i < 4; ++i) {
      const std::string key = "other" + std::to_string(i);
      clients.push_back(server.connect());
      const std::string token = token_of(clients.back().ask(request("l", key, "0 1000")));
      renewals.push_back(request("n", key, token + " 1000"));
    }
    while (!stop.stop_requested()) {
      for (std::size_t i = 0; i < clients.size(); ++i) {
        clients[i].send(renewals[i]);
        while (clients[i].read_line(0ms).starts_with("ok")) {
        }
      }
      std::this_thread::sleep_for(200us);
    }
  }
  void await_sync() {
    const auto deadline = HttpClient::Clock::now() + HttpClient::kPatience;
    while (faults_->waiting == 0) {
      ASSERT_LT(HttpClient::Clock::now(), deadline);
      std::this_thread::sleep_for(1ms);
    }
  }

  const TemporaryDirectory directory_;
  const TemporaryDirectory elsewhere_;
  LiveFaults* const faults_ = LiveFaults::map((elsewhere_.path() + "/faults").c_str());
};

// A grant that is durable and survives must have been told of.
TEST_F(HungDiskTest, AServerThatStopsSendsWhatWaitsForIt) {
  ServerProcess server(flags(), environment());
  HttpClient client({.port = server.http_port()});
  ASSERT_EQ(client.get("/livez").status, 200);
  faults_->hung = 1;
  client.send(client.written("POST", "/v1/acquire", hold_json("k", "a")));
  await_figure(server, "lockd_grants_total 1");
  server.terminate();
  while (HttpClient({.port = server.http_port()}).connected()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(client.read_end(300ms), kSilence);
  faults_->hung = 0;
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_end(), kEnd);
  EXPECT_EQ(server.await_exit(), 0);
}

TEST_F(HungDiskTest, AGrantToOneThatHasLeftIsTakenBack) {
  ServerProcess server(flags({"--auto-release-on-disconnect=false"}), environment());
  LineClient holder = server.connect();
  LineClient leaver = server.connect();
  LineClient awaiter = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 1000")));
  const std::string permit = token_of(holder.ask(request("sl", "s", "0 1 1000")));
  ASSERT_EQ(awaiter.ask(request("se", "s", "1 1000")), "queued");
  leaver.send(request("l", "k", "1000 1000"));
  awaiter.send(request("sw", "s", "1000"));
  await_stats(holder,
              "\"waiters\":1}],\"semaphores\":[{\"key\":\"s\",\"limit\":1,\"holders\":1,"
              "\"waiters\":1}]");
  faults_->hung = 1;
  holder.send(request("r", "k", token) + request("sr", "s", permit));
  await_figure(server, "lockd_grants_total 4");
  leaver.close();
  awaiter.close();
  await_figure(server, "lockd_connections 2");  // the holder, and who asks
  faults_->hung = 0;
  EXPECT_EQ(holder.read_lines(2), (Lines{"ok", "ok"}));
  EXPECT_EQ(masked(holder.ask(request("l", "k", "60"))), "ok <token> 33");
  EXPECT_EQ(masked(holder.ask(request("sl", "s", "60 1"))), "ok <token> 33");
}

// A release and the grant that it makes possible are one append, so they leave with one sync,
// whatever else the loop does meanwhile: others renew all the time. Syncs pass one by one, so that
// it is known how many have when each answer is there.
TEST_F(HungDiskTest, AGrantLeavesWithTheSyncOfTheRelease) {
  ServerProcess server(flags(), environment());
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  std::jthread others([&server](const std::stop_token& stop) { renew_all_the_time(server, stop); });
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    faults_->hung = 0;
    const std::string token = token_of(holder.ask(request("l", "k", "60 1000")));
    waiter.send(request("l", "k", "1000 1000"));
    await_stats(holder, "\"waiters\":1");
    faults_->hung = 1;
    holder.send(request("r", "k", token));
    std::string released(kSilence);
    std::string granted(kSilence);
    const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
    while (released == kSilence && granted == kSilence && LineClient::Clock::now() < deadline) {
      await_sync();
      faults_->let_pass = 1;
      released = holder.read_line(20ms);
      granted = waiter.read_line(20ms);
    }
    if (released == kSilence) released = holder.read_line();
    if (granted == kSilence) granted = waiter.read_line();
    EXPECT_EQ(released, "ok");
    ASSERT_EQ(masked(granted), "ok <token> 1000");
    std::swap(holder, waiter);
    faults_->hung = 0;
    ASSERT_EQ(holder.ask(request("r", "k", token_of(granted))), "ok");
  }
}

// To the moment at which the grant may leave.
TEST_F(HungDiskTest, HandOffsAreMeasuredToTheirEnd) {
  ServerProcess server(flags(), environment());
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 1000")));
  waiter.send(request("l", "k", "1000 1000"));
  await_stats(holder, "\"waiters\":1");
  faults_->hung = 1;
  holder.send(request("r", "k", token));
  await_figure(server, "lockd_grants_total 2");
  await_sync();
  std::this_thread::sleep_for(300ms);
  await_figure(server, "lockd_handoff_seconds_count 0");
  faults_->hung = 0;
  EXPECT_EQ(masked(waiter.read_line()), "ok <token> 1000");
  await_figure(server, "lockd_handoff_seconds_count 1");
  HttpClient client({.port = server.http_port()});
  const std::string stats = client.get("/metrics").body;
  const std::string_view name = "\nlockd_handoff_seconds_sum ";
  ASSERT_NE(stats.find(name), std::string::npos);
  EXPECT_GE(std::stod(stats.substr(stats.find(name) + name.size())), 0.3);
}

// What looks on waits for the disk by itself.
TEST_F(HungDiskTest, FiguresAreToldMeanwhile) {
  ServerProcess server(flags(), environment());
  LineClient holder = server.connect();
  LineClient onlooker = server.connect();
  HttpClient browser({.port = server.http_port()});
  ASSERT_EQ(onlooker.ask(request("ping", "", "")), "ok");
  ASSERT_EQ(browser.get("/livez").status, 200);
  faults_->hung = 1;
  holder.send(request("l", "k", "0 1000"));
  await_figure(server, "lockd_grants_total 1");
  onlooker.send(request("stats", "", ""));
  browser.send(browser.written("GET", "/v1/locks"));
  await_figure(server, "lockd_line_requests_total 3");
  EXPECT_EQ(onlooker.read_line(50ms), kSilence);
  EXPECT_EQ(browser.read_end(50ms), kSilence);
  faults_->hung = 0;
  EXPECT_NE(onlooker.read_line().find(R"("locks":[{"key":"k",)"), std::string::npos);
  EXPECT_EQ(browser.read_reply().status, 200);
  EXPECT_EQ(masked(holder.read_line()), "ok <token> 1000");
}

// Also to those who asked after others whose answers rest on more. Some of these look at a key
// whose shard has nothing newer.
TEST_F(HungDiskTest, WhatIsDurableIsTold) {
  ServerProcess server(flags(), environment());
  LineClient first = server.connect();
  LineClient second = server.connect();
  std::vector<LineClient> onlookers;
  for (int i = 0; i < 8; ++i) {
    onlookers.push_back(server.connect());
    ASSERT_EQ(onlookers.back().ask(request("ping", "", "")), "ok");
  }
  ASSERT_EQ(second.ask(request("ping", "", "")), "ok");
  faults_->hung = 1;
  std::string taken;
  for (int i = 0; i < 8; ++i) taken += request("l", "a" + std::to_string(i), "0 1000");
  first.send(taken);
  await_sync();
  await_figure(server, "lockd_grants_total 8");
  second.send(request("l", "b", "0 1000"));
  await_figure(server, "lockd_grants_total 9");
  for (int i = 0; i < 8; ++i) {  // each in a turn of its own: those of one turn rest on the same
    onlookers[static_cast<std::size_t>(i)].send(request("l", "a" + std::to_string(i), "0"));
    await_figure(server, "lockd_line_requests_total " + std::to_string(19 + i));
  }
  faults_->let_pass = 1;
  for (const std::string& reply : first.read_lines(8)) EXPECT_EQ(masked(reply), "ok <token> 1000");
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  int told = 0;
  while (told == 0 && LineClient::Clock::now() < deadline) {
    for (LineClient& onlooker : onlookers) told += onlooker.read_line(5ms) == "timeout" ? 1 : 0;
  }
  EXPECT_GT(told, 0);
  EXPECT_EQ(second.read_line(50ms), kSilence);
  faults_->hung = 0;
  EXPECT_EQ(masked(second.read_line()), "ok <token> 1000");
}

TEST_F(HungDiskTest, IsSeen) {
  ServerProcess server(flags(), environment());
  LineClient holder = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 1000")));
  await_figure(server, "lockd_journal_disk_wait_seconds 0");
  faults_->hung = 1;
  holder.send(request("n", "k", token + " 1000"));
  await_sync();
  EXPECT_EQ(answer_to(server, "/readyz"), R"(200 {"status":"ok"})");
  faults_->boot_ns = 6'000'000'000;  // as if that long had passed
  EXPECT_EQ(answer_to(server, "/readyz"), R"(503 {"status":"storage_hangs"})");
  EXPECT_EQ(answer_to(server, "/livez"), R"(200 {"status":"ok"})");
  EXPECT_GE(figure(server, "lockd_journal_disk_wait_seconds"), 6);
  EXPECT_EQ(figure(server, "lockd_ready"), 0);
  EXPECT_TRUE(server.comes_to_log("the disk hangs"));
  std::this_thread::sleep_for(200ms);  // and is not said again with every tick
  const std::string log = server.log();
  EXPECT_EQ(log.find("the disk hangs"), log.rfind("the disk hangs")) << log;
  EXPECT_FALSE(says(log, "the disk has answered"));

  faults_->hung = 0;
  EXPECT_EQ(holder.read_line(), "ok 1000");
  await_figure(server, "lockd_ready 1");
  EXPECT_EQ(answer_to(server, "/readyz"), R"(200 {"status":"ok"})");
  EXPECT_TRUE(server.comes_to_log("the disk has answered, after 6"));
}

// Renewals that nobody waits for pile up to a bound; then they are not read.
TEST_F(HungDiskTest, WhatWaitsForItIsBounded) {
  constexpr std::size_t kClients = 8;
  constexpr std::size_t kRenewals = 100'000;  // of each; in the journal some 200 MB in all
  const std::string tail(200, 'k');
  ServerProcess server(flags(), environment());
  std::vector<LineClient> clients;
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(server.connect());
    const std::string reply = clients.back().ask(request("l", std::to_string(i) + tail, "0 1000"));
    tokens.push_back(token_of(reply));
  }
  const std::size_t before_kib = server.memory_max_kib();
  faults_->hung = 1;
  std::vector<std::jthread> senders;
  for (std::size_t i = 0; i < kClients; ++i) {
    senders.emplace_back([&client = clients[i], &token = tokens[i], i, &tail] {
      std::string some;
      for (int n = 0; n < 100; ++n) some += request("n", std::to_string(i) + tail, token + " 1000");
      for (std::size_t sent = 0; sent < kRenewals; sent += 100) client.send(some);
    });
  }
  for (double last = -1, now = 0; now != last;) {  // until nothing goes on any more
    last = std::exchange(now, figure(server, "lockd_renewals_total"));
    std::this_thread::sleep_for(300ms);
  }
  const std::size_t kept_kib = server.memory_max_kib() - before_kib;
  std::printf("%zu clients: %zu KiB kept for their renewals\n", kClients, kept_kib);
  EXPECT_LT(kept_kib, 80U * 1024);
  EXPECT_EQ(answer_to(server, "/livez"), R"(200 {"status":"ok"})");
  EXPECT_LT(figure(server, "lockd_renewals_total"), kClients * kRenewals);

  faults_->hung = 0;
  for (std::size_t i = 0; i < kClients; ++i) {
    for (std::size_t n = 0; n < kRenewals; ++n) ASSERT_EQ(clients[i].read_line(), "ok 1000");
  }
  senders.clear();
  EXPECT_EQ(figure(server, "lockd_renewals_total"), kClients * kRenewals);
  for (std::size_t i = 0; i < kClients; ++i) {
    EXPECT_EQ(clients[i].ask(request("r", std::to_string(i) + tail, tokens[i])), "ok");
  }
}

}  // namespace
}  // namespace lockd
