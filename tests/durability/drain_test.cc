// A server that is asked to stop: those who hold are served on, and what they hold then is there
// when it starts again.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"

namespace lockd {
namespace {

std::string take(LineClient& client, const std::string& key) {
  const std::string reply = client.ask(request("l", key, "0 1000"));
  EXPECT_EQ(masked(reply), "ok <token> 1000");
  return token_of(reply);
}

// Until the server has begun to stop. What it says then to one who would take something.
std::string ask_until_refused(LineClient& client) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  std::string reply = "timeout";
  while (reply == "timeout" && LineClient::Clock::now() < deadline) {
    reply = client.ask(request("l", "stayed", "0"));
  }
  return reply;
}

TEST(DrainTest, WhatIsHeldIsHeldAfterwards) {
  const TemporaryDirectory directory;
  std::string stayed;
  std::string asked;
  std::string left_before;
  std::string left_meanwhile;
  std::string given_back;
  {
    // With one thread all hear of it at once.
    ServerProcess server(durable(directory.path(), {"--shutdown-timeout", "2", "--threads", "1"}));
    LineClient stays = server.connect();
    LineClient asks = server.connect();
    LineClient leaves_before = server.connect();
    LineClient leaves_meanwhile = server.connect();
    LineClient gives_back = server.connect();
    stayed = take(stays, "stayed");
    asked = take(asks, "asked");
    left_before = take(leaves_before, "left before");
    left_meanwhile = take(leaves_meanwhile, "left meanwhile");
    given_back = take(gives_back, "given back");
    EXPECT_NE(take(gives_back, "beside it"), "");
    leaves_before.close();
    await_stats(stays, "\"connections\":4");
    server.terminate();
    EXPECT_EQ(ask_until_refused(asks), "error_draining");
    leaves_meanwhile.close();
    EXPECT_EQ(gives_back.ask(request("r", "given back", given_back)), "ok");
    for (LineClient* client : {&gives_back, &asks, &stays}) {
      EXPECT_EQ(client->read_line(), kEnd);  // when their time is over
    }
    EXPECT_EQ(server.await_exit(), 0);
  }
  ServerProcess server(durable(directory.path()));
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("l", "stayed", "0")), "timeout");
  EXPECT_EQ(client.ask(request("n", "stayed", stayed)), "ok 1000");
  EXPECT_EQ(client.ask(request("l", "asked", "0")), "timeout");
  EXPECT_EQ(client.ask(request("r", "asked", asked)), "ok");
  EXPECT_EQ(client.ask(request("n", "left before", left_before)), "error");
  EXPECT_NE(take(client, "left before"), "");
  EXPECT_EQ(client.ask(request("n", "left meanwhile", left_meanwhile)), "error");
  EXPECT_NE(take(client, "left meanwhile"), "");
  EXPECT_EQ(client.ask(request("n", "given back", given_back)), "error");
  EXPECT_NE(take(client, "given back"), "");
  EXPECT_EQ(client.ask(request("l", "beside it", "0")), "timeout");
}

// With and without a journal. Its lease is short: without its renewals it would not last.
void renew_through_a_stop(const std::vector<std::string>& flags) {
  std::vector<std::string> words{"--shutdown-timeout", "600", "--http-addr", "127.0.0.1:0"};
  words.insert(words.end(), flags.begin(), flags.end());
  ServerProcess server(words);
  LineClient holder = server.connect();
  LineClient idle = server.connect();
  LineClient waiter = server.connect();
  const std::string token = token_of(holder.ask(request("l", "stayed", "0 1")));
  ASSERT_NE(token, "");
  ASSERT_EQ(idle.ask(request("ping", "", "")), "ok");
  waiter.send(request("l", "stayed", "600"));
  await_stats(holder, "\"waiters\":1");
  server.terminate();
  EXPECT_EQ(idle.read_line(), kEnd);
  EXPECT_EQ(waiter.read_line(), "error");
  EXPECT_EQ(waiter.read_line(), kEnd);
  EXPECT_EQ(ask_until_refused(holder), "error_draining");
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(holder.ask(request("n", "stayed", token)), "ok 1");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  HttpClient browser({.port = server.http_port()});
  EXPECT_EQ(shown(browser.get("/readyz")), R"(503 {"status":"draining"})");
  browser.close();
  EXPECT_EQ(holder.ask(request("r", "stayed", token)), "ok");
  EXPECT_EQ(holder.read_line(), kEnd);
  holder.close();
  EXPECT_EQ(server.await_exit(), 0);  // long before its time is over
}

TEST(DrainTest, WhoRenewsIsServedToTheEnd) { renew_through_a_stop({}); }

TEST(DrainTest, WhoRenewsIsServedToTheEndWithAJournal) {
  const TemporaryDirectory directory;
  renew_through_a_stop({"--wal", directory.path()});
}

TEST(DrainTest, ASecondSignalEndsIt) {
  ServerProcess server({"--shutdown-timeout", "0"});
  LineClient stays = server.connect();
  EXPECT_NE(take(stays, "stayed"), "");
  server.terminate();
  EXPECT_EQ(ask_until_refused(stays), "error_draining");
  server.terminate();
  EXPECT_EQ(server.await_exit(), 0);
}

TEST(DrainTest, TheLongestTimeoutIsLong) {
  ServerProcess server({"--shutdown-timeout", "9223372036", "--threads", "1"});
  LineClient stays = server.connect();
  EXPECT_NE(take(stays, "stayed"), "");
  server.terminate();
  EXPECT_EQ(ask_until_refused(stays), "error_draining");
  EXPECT_EQ(stays.read_line(std::chrono::milliseconds(300)), kSilence);
  stays.close();
  EXPECT_EQ(server.await_exit(), 0);
}

// Only the journal says that the journal has failed.
TEST(DrainTest, ASignalFromOutsideIsNoFailure) {
  const ServerProcess server;
  LineClient client = server.connect();
  ASSERT_EQ(::kill(server.pid(), SIGUSR1), 0);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client.ask(request("ping", "", "")), "ok");
}

}  // namespace
}  // namespace lockd
