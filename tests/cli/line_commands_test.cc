// ping, stats, list, listen, signal, renew, release, bench and wal, against a server.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"
#include "support/lying_server.h"

namespace lockd {
namespace {

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(Ping, AsksEveryServer) {
  ServerProcess one;
  ServerProcess two;
  const std::string both = address_of(one) + ',' + address_of(two);
  const Finished fine = lockctl({"ping", "-s", both, "--json"});
  EXPECT_EQ(fine.status, 0);
  EXPECT_EQ(lines_of(fine.output), 2U);
  two.kill();
  const Finished half = lockctl({"ping", "-s", both});
  EXPECT_EQ(half.status, 69);
  EXPECT_EQ(lines_of(half.output), 3U) << half.output;
}

TEST(Ping, FindsTheServerByTheEnvironment) {
  ServerProcess server;
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(lockctl({"ping"}, {.environment = {"LOCKD_SERVERS=localhost:" + port}}).status, 0);
  const std::string elsewhere = "LOCKD_SERVERS=127.0.0.1:1";
  EXPECT_EQ(lockctl({"ping"}, {.environment = {elsewhere}}).status, 69);
  EXPECT_EQ(lockctl({"ping", "-s", "localhost:" + port}, {.environment = {elsewhere}}).status, 0);
}

TEST(Stats, AreTheServersOwnOrATable) {
  ServerProcess server;
  LineClient holder = server.connect();
  holder.ask(request("l", "my-job", "0 600"));
  const Finished json = lockctl({"stats", "-s", address_of(server), "-j"});
  EXPECT_TRUE(has(json.output, "\"key\":\"my-job\",\"owner_conn_id\":1")) << json.output;
  const Finished plain = lockctl({"stats", "-s", address_of(server)});
  EXPECT_TRUE(has(plain.output, "locks held 1 (0 waiting)")) << plain.output;
  EXPECT_TRUE(has(plain.output, "my-job"));
  EXPECT_FALSE(has(plain.output, "\x1b")) << "no colours in a pipe";
}

// Of a server that lacks the command `api`: it answers with an error, and closes.
TEST(List, WorksByStatisticsAlone) {
  const client::LyingServer server([](client::Peer& peer) {
    const auto asked = peer.read_request();
    if (!asked || asked->command != "stats") {
      peer.send("error\n");
      return;
    }
    peer.send(R"(ok {"connections":1,"locks":[{"key":"b/1","owner_conn_id":3,)"
              R"("lease_expires_in_s":25.4,"waiters":1},{"key":"a","owner_conn_id":4,)"
              R"("lease_expires_in_s":9,"waiters":0}],"semaphores":[]})"
              "\n");
  });
  const std::string at = server.address().to_string();
  const Finished table = lockctl({"list", "-s", at});
  EXPECT_EQ(table.output,
            "KEY  KIND  HOLDERS  WAITERS  HOLDER  FENCE  HELD  EXPIRES\n"
            "a    lock        1        0  tcp:4       -     -       9s\n"
            "b/1  lock        1        1  tcp:3       -     -      25s\n")
      << table.errors;
  EXPECT_EQ(lockctl({"list", "-s", at, "--keys", "--contains", "/"}).output, "b/1\n");
  EXPECT_EQ(lockctl({"list", "-s", at, "--holder", "ann"}).status, 76);
}

TEST(Api, WhatNeedsItSaysSoToAServerThatLacksIt) {
  const client::LyingServer server([](client::Peer& peer) {
    while (peer.read_request()) peer.send("error\n");
  });
  for (const Words& words :
       {Words{"acquire", "k"}, Words{"renew", "k", "7.me"}, Words{"release", "k", "7.me"},
        Words{"fence", "k"}, Words{"describe", "k"}, Words{"watch"}, Words{"history"},
        Words{"clients"}, Words{"disconnect", "17", "--reason", "r"}, Words{"resize", "k", "2"},
        Words{"release", "--force", "k", "--reason", "r", "--yes"}}) {
    const Finished finished = lockctl(with_options(words, {"-s", server.address().to_string()}));
    EXPECT_EQ(finished.status, 76) << words.front();
    EXPECT_TRUE(finished.errors.starts_with("lockctl: lockctl " + words.front() +
                                            " needs the server's HTTP port, since 127.0.0.1:"))
        << finished.errors;
    EXPECT_TRUE(has(finished.errors, "LOCKD_HTTP_ADDR")) << finished.errors;
  }
}

TEST(Signals, ReachListeners) {
  ServerProcess server;
  const std::string at = address_of(server);
  LineClient watcher = server.connect();
  Lockctl listener({"listen", "-s", at, "-c", "2", "orders.>", "--json"});
  await_stats(watcher, "\"pattern\":\"orders.>\",\"listeners\":1");
  EXPECT_EQ(lockctl({"signal", "-s", at, "orders.eu", "one two"}).output, "1\n");
  listener.await_output("\"payload\":\"one two\"");
  EXPECT_EQ(lockctl({"signal", "-s", at, "orders.us", "x", "-j"}).output, "{\"delivered\":1}\n");
  EXPECT_EQ(listener.await_exit(), 0);
  EXPECT_EQ(listener.output(),
            "{\"channel\":\"orders.eu\",\"payload\":\"one two\"}\n"
            "{\"channel\":\"orders.us\",\"payload\":\"x\"}\n");
  EXPECT_EQ(lockctl({"signal", "-s", at, "nobody", "x"}).output, "0\n");
  EXPECT_EQ(lockctl({"signal", "-s", at, "a.*", "x"}).status, 64);
}

TEST(Signals, AreSharedByAGroupAndComeFromAllServers) {
  ServerProcess one;
  ServerProcess two;
  const std::string both = address_of(one) + ',' + address_of(two);
  LineClient first = one.connect();
  LineClient second = two.connect();
  Lockctl listener({"listen", "-s", both, "--count", "4", "-g", "g", ">"});
  await_stats(first, "\"group\":\"g\"");
  await_stats(second, "\"group\":\"g\"");
  for (const char* channel : {"a", "b", "c", "d"}) {
    EXPECT_EQ(lockctl({"signal", "-s", both, channel, "x"}).output, "1\n");
  }
  EXPECT_EQ(listener.await_exit(), 0);
}

TEST(Signals, WaitingHasAnEnd) {
  ServerProcess server;
  EXPECT_EQ(lockctl({"listen", "-s", address_of(server), "-w", "0.1", "a"}).status, 1);
  Lockctl listener({"listen", "-s", address_of(server), "a"});
  LineClient watcher = server.connect();
  await_stats(watcher, "\"pattern\":\"a\"");
  server.kill();
  EXPECT_EQ(listener.await_exit(), 69);
}

TEST(LineTokens, AreRenewedAndReleased) {
  ServerProcess server({"--auto-release-on-disconnect=false"});
  const std::string at = address_of(server);
  LineClient holder = server.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 60")));
  const Finished renewed = lockctl({"renew", "-s", at, "k", token, "--ttl", "600", "--json"});
  EXPECT_EQ(renewed.output, "{\"key\":\"k\",\"remaining_s\":600}\n") << renewed.errors;
  EXPECT_EQ(lockctl({"release", "-s", at, "k", token}).status, 0);
  const Finished late = lockctl({"renew", "-s", at, "k", token});
  EXPECT_EQ(late.status, 1);
  EXPECT_EQ(late.errors, "lockctl: the key is not held under that token\n");
  const std::string permit = token_of(holder.ask(request("sl", "s", "0 2 60")));
  EXPECT_EQ(lockctl({"release", "-s", at, "s", permit}).status, 1);
  EXPECT_EQ(lockctl({"release", "-s", at, "s", permit, "--semaphore"}).status, 0);
}

TEST(Bench, CountsEveryRound) {
  ServerProcess one;
  ServerProcess two;
  const std::string both = address_of(one) + ',' + address_of(two);
  for (const Words& options :
       {Words{}, Words{"--shared-key"}, Words{"--pipeline", "8"}, Words{"--connections", "3"},
        Words{"--warmup", "0", "--key", "other"}, Words{"-lease", "60", "-timeout", "60"}}) {
    const Finished finished = lockctl(joined(
        {"bench", "--servers", both, "--workers", "5", "--rounds", "20", "--json"}, options));
    EXPECT_EQ(finished.status, 0) << finished.errors;
    EXPECT_TRUE(has(finished.output, "\"rounds\":100,")) << finished.output;
    EXPECT_EQ(finished.errors, "") << "no progress in a pipe";
  }
  const Finished table = lockctl({"bench", "-s", both, "--rounds", "5"});
  for (const char* part : {"10 workers x 5 rounds", "p99.9", "acquire", "release", "round"}) {
    EXPECT_TRUE(has(table.output, part)) << table.output;
  }
  EXPECT_EQ(lockctl({"bench", "--shared-key", "--pipeline", "2"}).status, 64);
}

TEST(Bench, DoesNotMeasureErrors) {
  ServerProcess server({"--max-locks", "2"});
  const Finished finished = lockctl({"bench", "-s", address_of(server)});
  EXPECT_EQ(finished.status, 75);
  EXPECT_TRUE(has(finished.errors, "error_max_locks")) << finished.errors;
}

TEST(Wal, IsInspectedAndVerified) {
  TemporaryDirectory folder;
  const std::string journal = folder.path() + "/wal";
  {
    ServerProcess server({"--wal", journal});
    LineClient client = server.connect();
    const std::string token = token_of(client.ask(request("l", "k", "0 60")));
    client.ask(request("r", "k", token));
  }
  EXPECT_EQ(lockctl({"wal", "verify", folder.path()}).status, 66);  // there is none
  const Finished sound = lockctl({"wal", "verify", journal});
  EXPECT_EQ(sound.status, 0) << sound.output << sound.errors;
  EXPECT_TRUE(sound.output.starts_with("sound: ")) << sound.output;
  const Finished shown = lockctl({"wal", "inspect", journal});
  EXPECT_TRUE(has(shown.output, "granted lock 'k', fence 1")) << shown.output;
  EXPECT_TRUE(has(shown.output, "ended lock 'k', fence 1, released"));
  const Finished json = lockctl({"wal", "inspect", "--json", journal});
  EXPECT_TRUE(has(json.output, "\"type\":\"granted\",\"kind\":\"lock\",\"key\":\"k\",\"fence\":1"));

  // A byte of the first frame is not what it was, and later frames vouch for it.
  std::string segment;
  for (const auto& entry : std::filesystem::directory_iterator(journal)) {
    if (entry.path().extension() == ".log") segment = entry.path();
  }
  std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(96 + 48);
  file.put('\x7f');
  file.close();
  const Finished damaged = lockctl({"wal", "verify", journal, "--json"});
  EXPECT_EQ(damaged.status, 65) << damaged.output;
  EXPECT_TRUE(has(damaged.output, "\"sound\":false")) << damaged.output;
  EXPECT_EQ(lockctl({"wal", "verify", "/no/such"}).status, 66);
}

}  // namespace
}  // namespace lockd
