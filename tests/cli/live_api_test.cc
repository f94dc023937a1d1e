// The commands that use the API, against the server itself: over HTTP, and over the line port
// alone.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/testing/eventually.h"
#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/client/client.h"
#include "support/test_authority.h"

namespace lockd {
namespace {

std::string http_of(const ServerProcess& server) {
  return "127.0.0.1:" + std::to_string(server.http_port());
}

class LiveHttp : public testing::Test {
 protected:
  LiveHttp() : server_({"--http-addr", "127.0.0.1:0"}), http_(http_of(server_)) {}

  ServerProcess server_;
  const std::string http_;
};

// The parameter is the port.
class LiveApi : public LiveHttp, public testing::WithParamInterface<std::string> {
 protected:
  Words with_server(const Words& words) const {
    const Words line = with_options(words, {"-s", address_of(server_)});
    return GetParam() == "http" ? with_options(line, {"--http", http_}) : line;
  }
  Finished run(const Words& words) const { return lockctl(with_server(words)); }
};

INSTANTIATE_TEST_SUITE_P(Ports, LiveApi, testing::Values("http", "line"),
                         [](const auto& port) { return port.param; });

// `lockctl run` uses the line port only.
using LiveRun = LiveHttp;

std::string line_of(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

TEST_P(LiveApi, AReservationFromBeginningToEnd) {
  const Finished granted = run({"acquire", "deploy", "--ttl", "600"});
  ASSERT_EQ(granted.status, 0) << granted.errors;
  const std::string handle = line_of(granted.output);
  const std::size_t dot = handle.find('.');
  const std::string fence = handle.substr(0, dot);
  const std::string holder = handle.substr(dot + 1);
  EXPECT_EQ(run({"acquire", "deploy", "-n", "--holder", holder}).output, granted.output)
      << "the same holder";
  const Finished other = run({"acquire", "deploy", "-n"});
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(has(other.errors, "(holder '")) << other.errors;
  EXPECT_EQ(run({"acquire", "deploy", "-w", "0.1", "--holder", "x", "-E", "7"}).status, 7);
  EXPECT_EQ(run({"fence", "deploy"}).output, fence + "\n");
  EXPECT_TRUE(has(run({"fence", "deploy", "-j"}).output, "\"held\":true"));
  EXPECT_EQ(run({"renew", "deploy", handle, "--ttl", "60"}).status, 0);
  EXPECT_EQ(run({"renew", "deploy", fence, "--holder", holder}).status, 0);
  EXPECT_EQ(run({"release", "deploy", fence, "--holder", "somebody else"}).status, 1);
  EXPECT_EQ(run({"release", "deploy", handle}).status, 0);
  EXPECT_EQ(run({"release", "deploy", handle}).status, 1);
  const Finished next = run({"acquire", "deploy", "-n", "--holder", "x"});
  EXPECT_GT(std::stoull(next.output), std::stoull(fence)) << "fences rise";
}

TEST_P(LiveApi, AReservationMayBeSharedAndIsShownSo) {
  ASSERT_EQ(run({"acquire", "-S", "file", "--holder", "ana"}).status, 0);
  ASSERT_EQ(run({"acquire", "-nS", "file", "--holder", "bob"}).status, 0);
  const Finished alone = run({"acquire", "-n", "file", "--holder", "cat"});
  EXPECT_EQ(alone.status, 1);
  EXPECT_TRUE(has(alone.errors, "(holder '")) << alone.errors;
  EXPECT_EQ(run({"acquire", "-n", "file", "--holder", "bob"}).status, 65) << "there is no upgrade";
  const std::string list = run({"list"}).output;
  EXPECT_TRUE(has(list, "SHARE")) << list;
  EXPECT_TRUE(has(list, "+1  shared")) << list;
  const std::string described = run({"describe", "file"}).output;
  EXPECT_TRUE(has(described, "file  lock, 2 holders, 0 waiting\n")) << described;
  EXPECT_TRUE(has(described, "ana     shared  ")) << described;
  EXPECT_TRUE(has(described, "bob     shared  ")) << described;
  EXPECT_TRUE(has(run({"history", "file"}).output, "  shared  "));
}

TEST_P(LiveApi, AReservationMayHaveSeveralPermitsAndIsShownSo) {
  const auto take = [&](const char* permits, const char* holder) {
    return run(
        {"acquire", "-n", "--semaphore", "8", "--permits", permits, "pool", "--holder", holder});
  };
  ASSERT_EQ(take("4", "ana").status, 0);
  ASSERT_EQ(take("1", "bob").status, 0);
  EXPECT_EQ(take("4", "cat").status, 1);
  EXPECT_EQ(take("2", "bob").status, 65) << "another number than it has";
  const std::string list = run({"list"}).output;
  EXPECT_TRUE(has(list, " 5/8 ")) << list;
  const std::string described = run({"describe", "pool"}).output;
  EXPECT_TRUE(has(described, "pool  semaphore of 8, 2 holders with 5 permits, 0 waiting\n"))
      << described;
  EXPECT_TRUE(has(described, "ana     4 permits  ")) << described;
  EXPECT_TRUE(has(run({"history", "pool"}).output, "  4 permits  "));
}

TEST_P(LiveApi, SeveralKeysAreReservedAtOnceAndReleasedOneByOne) {
  const Finished granted = run({"acquire", "a", "b", "c", "--ttl", "600", "--holder", "ana"});
  ASSERT_EQ(granted.status, 0) << granted.errors;
  const std::string handle = line_of(granted.output);
  EXPECT_EQ(run({"acquire", "a", "b", "c", "-n", "--holder", "ana"}).output, granted.output)
      << "the same holder";
  const Finished other = run({"acquire", "c", "d", "-n"});
  EXPECT_EQ(other.status, 1);
  EXPECT_TRUE(has(other.errors, "'c' is held by 'ana'")) << other.errors;
  EXPECT_EQ(run({"acquire", "d", "-n", "--holder", "x"}).status, 0) << "no part was taken";
  EXPECT_EQ(run({"release", "b", handle}).status, 0);
  EXPECT_EQ(run({"renew", "a", handle}).status, 0);
  EXPECT_EQ(run({"acquire", "b", "-n", "--holder", "x"}).status, 0);
  EXPECT_EQ(run({"release", "c", handle}).status, 0);
}

TEST_F(LiveRun, ACommandRunsUnderSeveralKeys) {
  LineClient other = server_.connect();
  Lockctl process(run(server_, {"--all", "a", "b", "--", "/bin/sh", "-c",
                                "echo ready; while :; do sleep 0.02; done"}));
  process.await_output("ready");
  EXPECT_EQ(other.ask(request("l", "a", "0 5")), "timeout");
  EXPECT_EQ(other.ask(request("l", "b", "0 5")), "timeout");
  process.signal(SIGTERM);
  EXPECT_EQ(process.await_exit(), 128 + SIGTERM) << process.errors();
  EXPECT_EQ(masked(other.ask(request("l", "a", "0 5"))), "ok <token> 5") << "released";
  EXPECT_EQ(masked(other.ask(request("l", "b", "0 5"))), "ok <token> 5");
}

TEST_F(LiveRun, ASignalEndsTheWaitForSeveralKeys) {
  LineClient holder = server_.connect();
  EXPECT_EQ(masked(holder.ask(request("l", "b", "0 600"))), "ok <token> 600");
  LineClient watcher = server_.connect();
  Lockctl waiting(run(server_, {"--all", "a", "b", "--", "true"}));
  await_stats(watcher, "\"waiters\":1");
  EXPECT_EQ(watcher.ask(request("l", "a", "0 5")), "timeout") << "it is free, and waited for";
  waiting.signal(SIGINT);
  EXPECT_EQ(waiting.await_exit(), 128 + SIGINT);
  await_stats(watcher, "\"waiters\":0");
  EXPECT_EQ(masked(watcher.ask(request("l", "a", "0 5"))), "ok <token> 5");
}

TEST_F(LiveRun, TheLossOfOneOfSeveralKeysEndsTheCommand) {
  Lockctl process(run(server_, {"--ttl", "6", "--all", "a", "b", "--", "/bin/sh", "-c",
                                "trap 'echo told; exit 0' TERM; echo ready; "
                                "while :; do sleep 0.02; done"}));
  process.await_output("ready");
  EXPECT_EQ(
      lockctl({"release", "-s", address_of(server_), "--force", "b", "--reason", "x", "--yes"})
          .status,
      0);
  process.await_output("told");
  EXPECT_EQ(process.await_exit(), 79);
  EXPECT_TRUE(has(process.errors(), "the lock on 'a', 'b' is lost: the server says"))
      << process.errors();
}

TEST_P(LiveApi, AWaitEndsWithTheGrantOrTheCaller) {
  LineClient holder = server_.connect();
  const std::string token = token_of(holder.ask(request("l", "k", "0 600")));
  LineClient watcher = server_.connect();
  Lockctl waiting(with_server({"acquire", "k"}));
  await_stats(watcher, "\"waiters\":1");
  Lockctl leaving(with_server({"acquire", "k", "--holder", "leaving"}));
  await_stats(watcher, "\"waiters\":2");
  leaving.signal(SIGINT);
  EXPECT_EQ(leaving.await_exit(), -1 - SIGINT);
  await_stats(watcher, "\"waiters\":1");
  EXPECT_EQ(holder.ask(request("r", "k", token)), "ok");
  EXPECT_EQ(waiting.await_exit(), 0);
}

TEST_F(LiveRun, RunSaysWhoIsWaitedForByName) {
  const Finished granted = lockctl({"acquire", "-s", address_of(server_), "k", "--holder", "ana"});
  Lockctl waiting(run(server_, {"-v", "k", "true"}));
  waiting.await_errors("waiting for 'k', held by 'ana' (peer 127.0.0.1:");
  EXPECT_EQ(lockctl({"release", "-s", address_of(server_), "k", line_of(granted.output)}).status,
            0);
  EXPECT_EQ(waiting.await_exit(), 0);
}

TEST_F(LiveHttp, AWrongPortIsRecognised) {
  for (const Words& words : {Words{"ping"}, Words{"stats"}, Words{"run", "k", "true"}}) {
    const Finished finished = lockctl(with_options(words, {"-s", http_}));
    EXPECT_EQ(finished.status, 78) << words.front();
    EXPECT_TRUE(has(finished.output + finished.errors, "that is an HTTP port: give it as --http"))
        << finished.output << finished.errors;
  }
  for (const Words& words : {Words{"fence", "k"}, Words{"list"}, Words{"acquire", "k"}}) {
    const Finished finished = lockctl(with_options(words, {"--http", address_of(server_)}));
    EXPECT_EQ(finished.status, 78) << words.front();
    EXPECT_TRUE(has(finished.errors, " is no HTTP port but a line port: give it as --server"))
        << finished.errors;
  }
}

TEST_P(LiveApi, ListAndDescribe) {
  LineClient holder = server_.connect();
  for (int i = 0; i < 30; ++i) {
    holder.ask(request("l", "many/" + std::to_string(100 + i), "0 600"));
  }
  LineClient waiter = server_.connect();
  waiter.send(request("l", "many/107", "600"));
  LineClient watcher = server_.connect();
  await_stats(watcher, "\"waiters\":1");

  const Finished all = run({"list", "many/", "--json"});
  EXPECT_EQ(std::count(all.output.begin(), all.output.end(), '\n'), 30) << all.errors;
  const Finished hot = run({"list", "--waiters", "--limit", "1"});
  EXPECT_TRUE(has(hot.output, "many/107")) << hot.output << hot.errors;
  const Finished table = run({"list", "many/"});
  EXPECT_LT(table.output.find("many/100"), table.output.find("many/101"));
  const Finished one = run({"describe", "many/107"});
  EXPECT_TRUE(has(one.output, "many/107  lock, 1 holder, 1 waiting")) << one.output << one.errors;
  EXPECT_TRUE(has(one.output, "tcp:"));
  EXPECT_EQ(run({"describe", "free"}).status, 1);
}

TEST_P(LiveApi, WatchSeesWhatHappens) {
  Lockctl watch(with_server({"watch", "seen/", "--json"}));
  LineClient client = server_.connect();
  // A subscription begins some time after the process does, and perhaps between a grant and its
  // release: something happens until both are seen.
  ASSERT_TRUE(eventually([&] {
    client.ask(request("l", "unseen/k", "0 600"));
    const std::string token = token_of(client.ask(request("l", "seen/k", "0 600")));
    client.ask(request("r", "seen/k", token));
    return has(watch.output(), R"("event":"granted")") &&
           has(watch.output(), R"("event":"released")");
  })) << watch.output()
      << watch.errors();
  EXPECT_FALSE(has(watch.output(), "unseen"));
  server_.terminate();
  EXPECT_EQ(watch.await_exit(), 69);
}

TEST_P(LiveApi, TopShowsRates) {
  LineClient holder = server_.connect();
  holder.ask(request("l", "hot-key", "0 600"));
  Lockctl top(with_server({"top", "-i", "0.1"}), {.terminal = true});
  top.await_output("hot-key");
  top.await_output("a second: grants 0.0");
  top.type("q");
  EXPECT_EQ(top.await_exit(), 0);
}

TEST_F(LiveHttp, Bench) {
  for (const Words& options : {Words{}, Words{"--shared-key"}, Words{"--connections", "2"}}) {
    const Finished finished = lockctl(joined({"bench", "--http", "--servers", "http://" + http_,
                                              "--workers", "4", "--rounds", "10", "--json"},
                                             options));
    EXPECT_EQ(finished.status, 0) << finished.errors;
    EXPECT_TRUE(has(finished.output, "\"protocol\":\"http\"")) << finished.output;
    EXPECT_TRUE(has(finished.output, "\"rounds\":40,")) << finished.output;
  }
}

TEST_P(LiveApi, KeysAreListedByWhatIsInThemByHolderAndByAge) {
  EXPECT_EQ(run({"acquire", "red/1", "--holder", "ana"}).status, 0);
  EXPECT_EQ(run({"acquire", "blue/2", "--holder", "bo"}).status, 0);
  EXPECT_EQ(run({"acquire", "red/3", "--holder", "bo"}).status, 0);
  EXPECT_EQ(run({"list", "-k", "--contains", "e/"}).output, "blue/2\n");
  EXPECT_EQ(run({"list", "-k", "--holder", "ana"}).output, "red/1\n");
  EXPECT_EQ(run({"list", "-k", "--sort", "held"}).output, "red/1\nblue/2\nred/3\n");
  EXPECT_EQ(run({"list", "-k", "--sort", "held", "-l1"}).output, "red/1\n");
  LineClient client = server_.connect();
  client.ask(request("l", "mine", "0 600"));
  const std::string whole = run({"describe", "mine", "-j"}).output;
  const std::size_t at = whole.find("tcp:");
  const std::string id = whole.substr(at, whole.find('"', at) - at);
  EXPECT_EQ(run({"list", "-k", "--client-id", id}).output, "mine\n");
  EXPECT_TRUE(run({"describe", "--client", id}).output.starts_with("mine  lock, 1 holder"));
  const Finished nothing = run({"describe", "--client", "999999"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_EQ(nothing.errors, "lockctl: client 999999 holds nothing, and waits for nothing\n");
  EXPECT_EQ(run({"describe"}).status, 64);
  EXPECT_EQ(run({"describe", "mine", "--client", id}).status, 64);
  EXPECT_EQ(run({"describe", "--client", "tcp:x"}).status, 64);
}

// Two servers that share the keys, of which only the line ports are known.
class LiveShards : public testing::Test {
 protected:
  Words with_both(const Words& words) const {
    return with_options(words, {"-s", address_of(one_) + ',' + address_of(two_)});
  }
  Finished run(const Words& words) const { return lockctl(with_both(words)); }

  ServerProcess one_;
  ServerProcess two_;
};

TEST_F(LiveShards, AKeyIsAtItsServerAndAListAtAll) {
  std::string keys;
  for (const char* key : {"a", "b", "c", "d"}) {
    const Finished granted = run({"acquire", key, "--holder", "ana"});
    ASSERT_EQ(granted.status, 0) << granted.errors;
    const auto shard = client::shard_of(key, 2);
    const std::string at = address_of(shard == 0 ? one_ : two_);
    EXPECT_EQ(lockctl({"list", "-k", "-s", at, key}).output, std::string(key) + '\n');
    EXPECT_EQ(run({"fence", key}).output,
              granted.output.substr(0, granted.output.find('.')) + '\n');
    keys += std::string(key) + '\n';
  }
  EXPECT_EQ(run({"list", "-k", "--sort", "held"}).output, keys) << "the oldest first, of both";
  EXPECT_EQ(run({"list", "-k", "--sort", "held", "-l", "2"}).output, "a\nb\n");
  EXPECT_EQ(run({"describe", "--client", "1"}).status, 64) << "of which server?";
}

TEST_F(LiveShards, WatchSeesAllOfThemUntilOneEnds) {
  Lockctl watch(with_both({"watch", "-j"}));
  ASSERT_TRUE(eventually([&] {
    one_.connect().ask(request("l", "one", "0 600"));
    two_.connect().ask(request("l", "two", "0 600"));
    return has(watch.output(), R"("key":"one")") && has(watch.output(), R"("key":"two")");
  })) << watch.output()
      << watch.errors();
  two_.terminate();
  EXPECT_EQ(watch.await_exit(), 69);
}

TEST(LiveTls, WithATokenOverEachPort) {
  const TestAuthority& authority = test_authority();
  ServerProcess server({"--http-addr", "127.0.0.1:0", "--auth-token", "hush", "--tls-cert",
                        authority.certificate("server"), "--tls-key", authority.key("server")});
  const std::string http = http_of(server);
  const std::string ca = authority.certificate("ca");
  for (const Words& port : {Words{"--http", http}, Words{"-s", address_of(server)}}) {
    const auto fence = [&](const Words& options) {
      return lockctl(joined(joined({"fence", "k"}, port), options));
    };
    const Finished fine = fence({"--tls-ca", ca, "--token", "hush"});
    EXPECT_EQ(fine.status, 0) << fine.errors;
    EXPECT_EQ(fence({"--tls-ca", ca}).status, 77) << "no token";
    EXPECT_EQ(fence({"--tls", "--token", "hush"}).status, 77) << "who is that?";
    EXPECT_EQ(fence({"--tls-insecure", "--token", "hush"}).status, 0);
  }
  EXPECT_EQ(lockctl({"bench", "--http", "--servers", "https://" + http, "--tls-ca", ca, "--token",
                     "hush", "--rounds", "2"})
                .status,
            0);
}

// What `token new` prints is what the server needs, and what it writes is what the client shows.
TEST(LockctlTokens, ANewOneIsKnownByItsTable) {
  const TemporaryDirectory folder;
  const std::string secret = folder.path() + "/billing.token";
  const std::string access = folder.path() + "/access.toml";
  const Finished made =
      lockctl({"token", "new", "billing", "--rights", "lock,read", "--key", "billing/", "--key",
               "a \"b\"", "--expires", "2037-01-01", "--secret-file", secret});
  ASSERT_EQ(made.status, 0) << made.errors;
  EXPECT_TRUE(made.output.starts_with("[[token]]\nname = \"billing\"\nsha256 = \"")) << made.output;
  std::ofstream(access) << made.output;
  EXPECT_EQ(std::filesystem::status(secret).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);

  const ServerProcess server({"--access", access, "--http-addr", "127.0.0.1:0"});
  for (const Words& port : {Words{"--http", http_of(server)}, Words{"-s", address_of(server)}}) {
    const Finished who = lockctl(joined({"whoami", "--token-file", secret}, port));
    ASSERT_EQ(who.status, 0) << who.errors;
    EXPECT_TRUE(
        who.output.starts_with("name     billing\nrights   lock, read\n"
                               "keys     billing/, a \"b\"\nexpires  2037-01-01\npeer     "))
        << who.output;
  }
  const auto run_with = [&](const std::string& key) {
    return lockctl(run(server, {"--token-file", secret, key, "true"}));
  };
  EXPECT_EQ(run_with("billing/1").status, 0);
  const Finished denied = run_with("payroll");
  EXPECT_EQ(denied.status, 77) << denied.errors;
  EXPECT_NE(denied.errors.find("the server denies us that"), std::string::npos) << denied.errors;
}

TEST(LockctlTokens, WithoutAFileTheSecretIsPrinted) {
  const Finished made = lockctl({"token", "new", "ops", "--rights", "admin"});
  ASSERT_EQ(made.status, 0) << made.errors;
  const std::size_t at = made.output.find("\n\n  ") + 4;
  const std::string secret = made.output.substr(at, 64);
  EXPECT_NE(made.output.find("sha256 = \"" + hex_of(sha256(secret)) + "\""), std::string::npos)
      << made.output;
  EXPECT_NE(lockctl({"token", "new", "ops"}).output.find(secret), 0U);
}

TEST(LockctlTokens, WhatTheServerWouldRefuseIsRefused) {
  for (const Words& words :
       {Words{"token", "new", "default"}, Words{"token", "new", "a", "--rights", "lok"},
        Words{"token", "new", "a", "--expires", "2037-02-30"},
        Words{"token", "new", "a", "--expires", "tomorrow"}, Words{"token", "new", ""}}) {
    const Finished refused = lockctl(words);
    EXPECT_EQ(refused.status, 64) << words[2] << refused.output << refused.errors;
  }
}

}  // namespace
}  // namespace lockd
