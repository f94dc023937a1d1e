// Several keys at once, at a server that says what a test wants: what is asked, and every way in
// which keys that are held together come to be held no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/fake_http.h"
#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/client/client.h"
#include "support/silent_port.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

bool asks_for(const FakeRequest& request, std::string_view path) {
  return request.line.starts_with("POST /v1/" + std::string(path) + " ");
}

std::string grant_of(std::chrono::milliseconds lease) {
  const std::string ms = std::to_string(lease.count());
  return json_reply("200 OK", R"({"keys":["a","b"],"holder":"x","token":7,"ttl_ms":)" + ms +
                                  R"(,"expires_at_unix_ms":1,"expires_in_ms":)" + ms + "}");
}

const std::string kReleased = json_reply("200 OK", R"({"released":["a","b"],"not_held":[]})");

// Grants for so long and releases; renewals are the test's.
FakeHttp::Answer renewing(std::chrono::milliseconds lease, std::string renewal) {
  return [lease, renewal = std::move(renewal)](const FakeRequest& request) {
    if (asks_for(request, "renew")) return renewal;
    return asks_for(request, "release") ? kReleased : grant_of(lease);
  };
}

Words run_all(const FakeHttp& http, const Words& more) {
  Words words{"run", "--http", http.address(), "--all"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Sets, AreReservedInOneCallUnderOneHandle) {
  FakeHttp http([](const FakeRequest&) { return grant_of(10min); });
  const auto acquire = [&](const Words& more) {
    Words words{"acquire", "--http", http.address(), "--holder", "me", "-n"};
    words.insert(words.end(), more.begin(), more.end());
    return lockctl(words);
  };
  EXPECT_EQ(acquire({"a", "b"}).output, "7.me\n");
  EXPECT_EQ(acquire({"-S", "a", "b"}).status, 0);
  EXPECT_EQ(acquire({"--semaphore", "8", "--permits", "4", "a", "b", "--ttl", "5"}).status, 0);
  const auto requests = http.requests();
  ASSERT_EQ(requests.size(), 3U);
  for (const FakeRequest& request : requests) EXPECT_TRUE(asks_for(request, "acquire"));
  EXPECT_EQ(requests[0].body, R"({"keys":["a","b"],"holder":"me","wait_ms":0})");
  EXPECT_EQ(requests[1].body, R"({"items":[{"key":"a","kind":"lock","mode":"shared"},)"
                              R"({"key":"b","kind":"lock","mode":"shared"}],)"
                              R"("holder":"me","wait_ms":0})");
  EXPECT_EQ(requests[2].body, R"({"items":[{"key":"a","kind":"semaphore","limit":8,"permits":4},)"
                              R"({"key":"b","kind":"semaphore","limit":8,"permits":4}],)"
                              R"("holder":"me","ttl_ms":5000,"wait_ms":0})");
}

TEST(Sets, AreRefusedWithWhatIsInTheWay) {
  FakeHttp http([](const FakeRequest&) {
    return json_reply("409 Conflict",
                      R"({"error":"held","detail":"it is held","conflicts":[)"
                      R"({"key":"a","kind":"lock","holder":"ana","token":3,"waiters":0},)"
                      R"({"key":"b","kind":"lock","waiters":1}]})");
  });
  const Finished finished = lockctl({"acquire", "--http", http.address(), "-n", "a", "b"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.errors, "lockctl: it is held: 'a' is held by 'ana', 'b' is waited for\n");
  EXPECT_EQ(lockctl(run_all(http, {"-n", "-E", "42", "a", "b", "--", "true"})).status, 42);
}

TEST(Sets, ThatNoServerTakesAreNotSent) {
  FakeHttp http([](const FakeRequest&) { return grant_of(10min); });
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "a", "--", "true"})).status, 64);
  EXPECT_EQ(lockctl(run_all(http, {"a", "", "--", "true"})).status, 64);
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "true"})).status, 64) << "no --";
  Words many;
  for (int i = 0; i < 65; ++i) many.push_back("k" + std::to_string(i));
  many.insert(many.end(), {"--", "true"});
  EXPECT_EQ(lockctl(run_all(http, many)).status, 64);
  EXPECT_TRUE(http.requests().empty());
}

// Who asked would find nobody there: 69.
TEST(Sets, OfDifferentServersAreRefusedBeforeAnybodyIsAsked) {
  const SilentPort one;
  const SilentPort two;
  const std::string both =
      "127.0.0.1:" + std::to_string(one.number()) + ",127.0.0.1:" + std::to_string(two.number());
  std::string other = "a";
  while (client::shard_of(other, 2) == client::shard_of("a", 2)) other += "x";
  const Finished refused = lockctl({"acquire", "-s", both, "-n", "a", other});
  EXPECT_EQ(refused.status, 64);
  EXPECT_TRUE(has(refused.errors, "are on different servers")) << refused.errors;
  EXPECT_EQ(lockctl({"run", "-s", both, "--all", "a", other, "--", "true"}).status, 64);
  EXPECT_EQ(lockctl({"acquire", "-s", both, "-n", "a"}).status, 69);
}

TEST(Sets, ACommandSeesThemAndTheyAreReleasedBehindIt) {
  FakeHttp http(renewing(10min, grant_of(10min)));
  const Finished finished = lockctl(
      run_all(http, {"--ttl", "600", "a", "b", "--", "/bin/sh", "-c",
                     "echo \"$LOCKD_KEYS,$LOCKD_FENCE,${LOCKD_KEY-none},${LOCKD_TOKEN-none}\""}),
      {.environment = {"LOCKD_KEY=of a run around it"}});
  EXPECT_EQ(finished.output, "a\nb,7,none,none\n") << finished.errors;
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "-c", "exit 3"})).status, 3);
  const auto requests = http.requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_TRUE(requests[0].body.starts_with(R"({"keys":["a","b"],"holder":")")) << requests[0].body;
  EXPECT_TRUE(has(requests[0].body, R"(,"ttl_ms":600000,"wait_ms":)")) << requests[0].body;
  EXPECT_TRUE(asks_for(requests[1], "release"));
  EXPECT_TRUE(has(requests[1].body, R"("token":7})")) << requests[1].body;
}

bool is_released(FakeHttp& http) {
  const auto requests = http.requests();
  return std::ranges::any_of(requests, [](const FakeRequest& r) { return asks_for(r, "release"); });
}

TEST(Sets, AreReleasedWhenTheCommandCannotBeStarted) {
  FakeHttp http(renewing(10min, grant_of(10min)));
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "--", "/nonexistent"})).status, 127);
  EXPECT_TRUE(is_released(http));
}

TEST(Sets, WhatIsLeftOfThemIsGivenBackWhenAPartWasLost) {
  FakeHttp http(renewing(600ms, json_reply("409 Conflict", R"({"error":"expired","key":"b"})")));
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "--", "sleep", "60"})).status, 79);
  EXPECT_TRUE(is_released(http));
}

TEST(Sets, AWaitThatIsOverIsNotBegunAgain) {
  FakeHttp http([](const FakeRequest&) {
    std::this_thread::sleep_for(300ms);
    return json_reply("409 Conflict", R"({"error":"wait_timeout","conflicts":[]})");
  });
  EXPECT_EQ(lockctl(run_all(http, {"-w", "0.3", "a", "b", "--", "true"})).status, 1);
  EXPECT_EQ(http.requests().size(), 1U);
}

TEST(Sets, AreRenewedWhileTheCommandRuns) {
  FakeHttp http(renewing(1500ms, grant_of(1500ms)));
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "--", "sleep", "3"})).status, 0);
  const auto requests = http.requests();
  const auto renewals = std::count_if(requests.begin(), requests.end(), [](const auto& request) {
    return asks_for(request, "renew") && has(request.body, R"("token":7})");
  });
  EXPECT_GE(renewals, 2);
}

TEST(Sets, AreLostAsSoonAsTheServerSaysSo) {
  FakeHttp http(renewing(
      600ms, json_reply("409 Conflict", R"({"error":"expired","detail":"over","key":"a"})")));
  const Finished finished = lockctl(run_all(http, {"a", "b", "--", "sleep", "600"}));
  EXPECT_EQ(finished.status, 79);
  EXPECT_EQ(finished.errors,
            "lockctl: the lock on 'a', 'b' is lost: the server says that it is held no more; the "
            "command is stopped\n");
}

TEST(Sets, AreLostWhenNoRenewalIsConfirmedInTimeAndNotBefore) {
  FakeHttp http(renewing(2s, json_reply("500 Internal Server Error", "{}")));
  const auto before = std::chrono::steady_clock::now();
  const Finished finished = lockctl(run_all(http, {"a", "b", "--", "sleep", "600"}));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 2s);
  EXPECT_EQ(finished.status, 79);
  EXPECT_TRUE(has(finished.errors, "without a confirmed renewal")) << finished.errors;
}

TEST(Sets, ThatWereLostBeforeTheReleaseWereLost) {
  FakeHttp http([](const FakeRequest& request) {
    if (!asks_for(request, "release")) return grant_of(10min);
    return json_reply("200 OK", R"({"released":["a"],"not_held":["b"]})");
  });
  EXPECT_EQ(lockctl(run_all(http, {"a", "b", "--", "true"})).status, 79);
}

TEST(Sets, AreHeldOnThroughARestartOfAServerWithAJournal) {
  const TemporaryDirectory directory;
  const Words journal{"--wal", directory.path()};
  std::uint16_t port = 0;
  std::optional<ServerProcess> server(std::in_place, journal);
  port = server->port();
  Lockctl process(
      {"run", "-s", address_of(*server), "--ttl", "60", "--all", "a", "b", "--", "/bin/sh", "-c",
       "echo ready; while [ ! -e " + directory.path() + "/enough ]; do sleep 0.02; done"});
  process.await_output("ready");
  server->kill();
  Words again = journal;
  again.insert(again.end(), {"--port", std::to_string(port)});
  server.emplace(again);
  EXPECT_EQ(server->connect().ask(request("l", "a", "0 5")), "timeout");
  EXPECT_EQ(server->connect().ask(request("l", "b", "0 5")), "timeout");
  std::ofstream(directory.path() + "/enough");
  EXPECT_EQ(process.await_exit(), 0) << process.errors();
  EXPECT_EQ(masked(server->connect().ask(request("l", "b", "0 5"))), "ok <token> 5");
}

// A server cuts a long wait: the place is lost, and asked for again.
TEST(Sets, AreAskedForAgainUntilTheWaitIsOver) {
  std::atomic<int> asked = 0;
  FakeHttp http([&](const FakeRequest& request) {
    if (asks_for(request, "release")) return kReleased;
    if (++asked <= 2) return json_reply("409 Conflict", R"({"error":"wait_timeout"})");
    return grant_of(10min);
  });
  EXPECT_EQ(lockctl(run_all(http, {"-w", "600", "a", "b", "--", "true"})).status, 0);
  EXPECT_EQ(asked, 3);
  asked = -1000;
  EXPECT_EQ(lockctl(run_all(http, {"-n", "a", "b", "--", "true"})).status, 1);
}

}  // namespace
}  // namespace lockd
