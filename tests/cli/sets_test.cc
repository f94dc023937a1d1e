// Several keys at once, at a server that says what a test wants: what is asked, and every way in
// which keys that are held together come to be held no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "cli/fake_api.h"
#include "cli/lockctl.h"
#include "lockd/client/client.h"
#include "support/silent_port.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

std::string grant_json(std::chrono::milliseconds lease) {
  const std::string ms = std::to_string(lease.count());
  return R"({"keys":["a","b"],"holder":"x","token":7,"ttl_ms":)" + ms +
         R"(,"expires_at_unix_ms":1,"expires_in_ms":)" + ms + "}";
}

std::string trimmed_line(std::string line) {
  while (line.ends_with('\n')) line.pop_back();
  return line;
}

// A script that grants a lease of that length and releases; the test chooses the reply to renewals.
FakeApi::Script granting(std::chrono::milliseconds lease, const FakeApi::Answer& renewal = {}) {
  return [=](const std::string& call) -> FakeApi::Answer {
    if (call == "POST /v1/renew") return renewal;
    return {"200 OK", call == "POST /v1/release" ? R"({"released":["a","b"],"not_held":[]})"
                                                 : grant_json(lease)};
  };
}

Words run_all(const FakeApi& server, const Words& more) {
  return joined(server.over_line({"run", "--all"}), more);
}

auto count(const Words& calls, const std::string& path) {
  return std::ranges::count_if(
      calls, [&](const std::string& call) { return call.starts_with("POST /v1/" + path + ' '); });
}

TEST(Sets, AreReservedInOneCallUnderOneHandle) {
  FakeApi server(granting(10min));
  const auto acquire = [&](const Words& more) {
    return lockctl(joined(server.over_http({"acquire", "--holder", "me", "-n"}), more));
  };
  EXPECT_EQ(acquire({"a", "b"}).output, "7.me\n");
  EXPECT_EQ(acquire({"-S", "a", "b"}).status, 0);
  EXPECT_EQ(acquire({"--semaphore", "8", "--permits", "4", "a", "b", "--ttl", "5"}).status, 0);
  const Words calls = server.calls();
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0], R"(POST /v1/acquire {"keys":["a","b"],"holder":"me","wait_ms":0})");
  EXPECT_EQ(calls[1], R"(POST /v1/acquire {"items":[{"key":"a","kind":"lock","mode":"shared"},)"
                      R"({"key":"b","kind":"lock","mode":"shared"}],)"
                      R"("holder":"me","wait_ms":0})");
  EXPECT_EQ(calls[2],
            R"(POST /v1/acquire {"items":[{"key":"a","kind":"semaphore","limit":8,"permits":4},)"
            R"({"key":"b","kind":"semaphore","limit":8,"permits":4}],)"
            R"("holder":"me","ttl_ms":5000,"wait_ms":0})");
}

const char* const kConflict = R"({"error":"held","detail":"it is held","conflicts":[)"
                              R"({"key":"a","kind":"lock","held_by":{"holder":"ana"},"waiters":0},)"
                              R"({"key":"b","kind":"lock","waiters":1}]})";

TEST(Sets, AreRefusedWithWhatIsInTheWay) {
  FakeApi server([](const std::string&) -> FakeApi::Answer { return {"409 Conflict", kConflict}; });
  const Finished finished = over_both(server, {"acquire", "-n", "a", "b"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.errors, "lockctl: it is held: 'a' is held by 'ana', 'b' is waited for\n");
  const Finished run = lockctl(run_all(server, {"-nv", "-E", "42", "a", "b", "--", "true"}));
  EXPECT_EQ(run.status, 42);
  EXPECT_TRUE(has(run.errors, ", a is held by ana, b is waited for\n")) << run.errors;
}

// --- renew and release, by one handle ---

TEST(Sets, AreRenewedAndReleasedByOneHandle) {
  const ServerProcess server;
  const auto on_server = [&](const Words& words) {
    return lockctl(with_options(words, {"-s", address_of(server)}));
  };
  for (const Words& share : {Words{}, Words{"--shared"}, Words{"--semaphore", "8"}}) {
    const std::string handle = trimmed_line(
        on_server(joined({"acquire", "-n", "--ttl", "60", "a", "b", "c"}, share)).output);
    ASSERT_FALSE(handle.empty());
    EXPECT_EQ(on_server({"renew", "a", "b", "c", handle}).status, 0) << "the kind is found out";
    const Finished renewed = on_server({"renew", "--json", "--ttl", "90", "a", "c", handle});
    EXPECT_TRUE(has(renewed.output, R"("ttl_ms":90000)")) << renewed.output;
    EXPECT_EQ(on_server({"release", "b", handle}).status, 0) << "one alone";
    const Finished refused = on_server({"renew", "a", "b", "c", handle});
    EXPECT_EQ(refused.status, 1);
    EXPECT_TRUE(has(refused.errors, "lockctl: 'b': ")) << refused.errors;
    const Finished rest = on_server({"release", "--json", "a", "b", "c", handle});
    EXPECT_EQ(rest.status, 1);
    EXPECT_EQ(rest.output, R"({"released":["a","c"],"not_held":["b"]})"
                           "\n");
    EXPECT_EQ(rest.errors, "lockctl: not held under that handle: 'b'\n");
  }
  const std::string handle = trimmed_line(on_server({"acquire", "-n", "a", "b"}).output);
  EXPECT_EQ(on_server({"release", "a", "b", handle}).status, 0);
  EXPECT_EQ(masked(server.connect().ask(request("l", "a", "0 5"))), "ok <token> 5");
}

TEST(Sets, WhatCannotBeRenewedTogetherIsNotSent) {
  FakeApi server(granting(10min));
  const auto refused = [&](const Words& more) {
    return over_both(server, joined({"renew"}, more)).status == 64 &&
           over_both(server, joined({"release"}, more)).status == 64;
  };
  EXPECT_TRUE(refused({"a", "b", "a", "7.me"}));
  EXPECT_TRUE(refused({"a", "b", "00031517a4824c9a0123456789abcdef"})) << "a token is one key's";
  EXPECT_TRUE(refused({"a", "b"})) << "no handle";
  EXPECT_TRUE(refused({"a"}));
  EXPECT_TRUE(server.calls().empty());
}

TEST(Sets, ThatNoServerTakesAreNotSent) {
  const FakeApi server(granting(10min));
  const Finished twice = lockctl(run_all(server, {"a", "b", "a", "--", "true"}));
  EXPECT_EQ(twice.status, 64);
  EXPECT_TRUE(has(twice.errors, "'a' is named twice")) << twice.errors;
  EXPECT_EQ(lockctl(run_all(server, {"a", "", "--", "true"})).status, 64);
  EXPECT_EQ(lockctl(run_all(server, {"a", "b", "true"})).status, 64) << "no --";
  EXPECT_EQ(lockctl(run_all(server, {"--ttl", "1.5", "a", "b", "--", "true"})).status, 64);
  EXPECT_TRUE(server.calls().empty());
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
  const Finished run = lockctl({"run", "-s", both, "--all", "a", other, "--", "true"});
  EXPECT_EQ(run.status, 64);
  EXPECT_TRUE(has(run.errors, "are on different servers")) << run.errors;
  EXPECT_EQ(lockctl({"acquire", "-s", both, "-n", "a"}).status, 69);
}

TEST(Sets, ACommandSeesThemAndTheyAreReleasedBehindIt) {
  const FakeApi server(granting(10min));
  const Finished finished = lockctl(
      run_all(server,
              {"--ttl", "600", "--name", "me", "--note", "why", "a", "b", "--", "/bin/sh", "-c",
               "echo \"$LOCKD_KEYS,$LOCKD_FENCE,${LOCKD_KEY-none},${LOCKD_TOKEN-none}\""}),
      {.environment = {"LOCKD_KEY=of a run around it"}});
  EXPECT_EQ(finished.output, "a\nb,7,none,none\n") << finished.errors;
  EXPECT_EQ(finished.status, 0);
  EXPECT_EQ(lockctl(run_all(server, {"a", "b", "-c", "exit 3"})).status, 3);
  const auto calls = server.calls();
  ASSERT_EQ(calls.size(), 4U);
  EXPECT_TRUE(calls[0].starts_with(R"(POST /v1/acquire {"keys":["a","b"],"holder":"me#)"))
      << calls[0];
  EXPECT_TRUE(has(calls[0], R"(,"ttl_ms":600000,"note":"why","wait_ms":)")) << calls[0];
  EXPECT_TRUE(calls[1].starts_with("POST /v1/release ")) << calls[1];
  EXPECT_TRUE(has(calls[1], R"("token":7})")) << calls[1];
}

TEST(Sets, AreReleasedWhenTheCommandCannotBeStarted) {
  const FakeApi server(granting(10min));
  EXPECT_EQ(lockctl(run_all(server, {"a", "b", "--", "/nonexistent"})).status, 127);
  EXPECT_EQ(count(server.calls(), "release"), 1);
}

TEST(Sets, AreLostAsSoonAsTheServerSaysSoAndTheRestIsGivenBack) {
  const FakeApi server(
      granting(3s, {"409 Conflict", R"({"error":"expired","detail":"over","key":"b"})"}));
  const Finished finished = lockctl(run_all(server, {"a", "b", "--", "sleep", "600"}));
  EXPECT_EQ(finished.status, 79);
  EXPECT_EQ(finished.errors,
            "lockctl: the lock on 'a', 'b' is lost: the server says that b is held no more; the "
            "command is stopped\n");
  EXPECT_EQ(count(server.calls(), "release"), 1);
}

TEST(Sets, ThatWereLostBeforeTheReleaseWereLost) {
  const FakeApi server([](const std::string& call) -> FakeApi::Answer {
    if (call != "POST /v1/release") return {"200 OK", grant_json(10min)};
    return {"200 OK", R"({"released":["a"],"not_held":["b"]})"};
  });
  EXPECT_EQ(lockctl(run_all(server, {"a", "b", "--", "true"})).status, 79);
}

}  // namespace
}  // namespace lockd
