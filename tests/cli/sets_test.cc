// Several keys at once, at a server that says what a test wants: what is asked, and every way in
// which keys that are held together come to be held no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/fake_http.h"
#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/client/client.h"
#include "support/lying_server.h"
#include "support/silent_port.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

bool asks_for(const FakeRequest& request, std::string_view path) {
  return request.line.starts_with("POST /v1/" + std::string(path) + " ");
}

std::string grant_json(std::chrono::milliseconds lease) {
  const std::string ms = std::to_string(lease.count());
  return R"({"keys":["a","b"],"holder":"x","token":7,"ttl_ms":)" + ms +
         R"(,"expires_at_unix_ms":1,"expires_in_ms":)" + ms + "}";
}

std::string grant_of(std::chrono::milliseconds lease) {
  return json_reply("200 OK", grant_json(lease));
}

std::string trimmed_line(std::string line) {
  while (line.ends_with('\n')) line.pop_back();
  return line;
}

// A server whose command `api` answers as the test says: "200 {...}". It keeps what it was asked.
class FakeSets {
 public:
  using Answer = std::function<std::string(const client::Asked& call)>;

  explicit FakeSets(Answer answer)
      : answer_(std::move(answer)), server_([this](client::Peer& peer) {
          while (const auto asked = peer.read_request()) {
            keep(*asked);
            peer.send("ok " + answer_(*asked) + "\n");
          }
        }) {}

  // Grants for so long and releases; renewals are the test's.
  FakeSets(std::chrono::milliseconds lease, std::string renewal)
      : FakeSets([lease, renewal = std::move(renewal)](const client::Asked& call) {
          if (call.key == "POST /v1/renew") return renewal;
          return call.key == "POST /v1/release" ? kReleased : "200 " + grant_json(lease);
        }) {}

  std::string address() const { return server_.address().to_string(); }
  std::vector<client::Asked> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::size_t count(const std::string& path) const {
    const auto all = calls();
    return static_cast<std::size_t>(
        std::ranges::count(all, "POST /v1/" + path, &client::Asked::key));
  }

  static inline const std::string kReleased = R"(200 {"released":["a","b"],"not_held":[]})";

 private:
  void keep(const client::Asked& asked) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(asked);
  }

  const Answer answer_;
  mutable std::mutex mutex_;
  std::vector<client::Asked> calls_;
  const client::LyingServer server_;  // last: it uses the others
};

Words run_all(const FakeSets& server, const Words& more) {
  return joined({"run", "-s", server.address(), "--all"}, more);
}

TEST(Sets, AreReservedInOneCallUnderOneHandle) {
  FakeHttp http([](const FakeRequest&) { return grant_of(10min); });
  const auto acquire = [&](const Words& more) {
    return lockctl(joined({"acquire", "--http", http.address(), "--holder", "me", "-n"}, more));
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

const char* const kConflict = R"({"error":"held","detail":"it is held","conflicts":[)"
                              R"({"key":"a","kind":"lock","holder":"ana","token":3,"waiters":0},)"
                              R"({"key":"b","kind":"lock","waiters":1}]})";

TEST(Sets, AreRefusedWithWhatIsInTheWay) {
  FakeHttp http([](const FakeRequest&) { return json_reply("409 Conflict", kConflict); });
  const Finished finished = lockctl({"acquire", "--http", http.address(), "-n", "a", "b"});
  EXPECT_EQ(finished.status, 1);
  EXPECT_EQ(finished.errors, "lockctl: it is held: 'a' is held by 'ana', 'b' is waited for\n");
  const FakeSets server([](const client::Asked&) { return "409 " + std::string(kConflict); });
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
  FakeHttp http([](const FakeRequest&) { return grant_of(10min); });
  const auto refused = [&](const Words& more) {
    bool all = true;
    for (const char* command : {"renew", "release"}) {
      all = all && lockctl(joined({command, "--http", http.address()}, more)).status == 64;
    }
    return all;
  };
  EXPECT_TRUE(refused({"a", "b", "a", "7.me"}));
  EXPECT_TRUE(refused({"a", "b", "00031517a4824c9a0123456789abcdef"})) << "a token is one key's";
  EXPECT_TRUE(refused({"a", "b"})) << "no handle";
  EXPECT_TRUE(refused({"a"}));
  EXPECT_TRUE(http.requests().empty());
}

TEST(Sets, ThatNoServerTakesAreNotSent) {
  const FakeSets server(10min, "200 " + grant_json(10min));
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
  const FakeSets server(10min, "200 " + grant_json(10min));
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
  EXPECT_TRUE(calls[0].argument.starts_with(R"({"keys":["a","b"],"holder":"me#)"))
      << calls[0].argument;
  EXPECT_TRUE(has(calls[0].argument, R"(,"ttl_ms":600000,"note":"why","wait_ms":)"))
      << calls[0].argument;
  EXPECT_EQ(calls[1].key, "POST /v1/release");
  EXPECT_TRUE(has(calls[1].argument, R"("token":7})")) << calls[1].argument;
}

TEST(Sets, AreReleasedWhenTheCommandCannotBeStarted) {
  const FakeSets server(10min, "200 " + grant_json(10min));
  EXPECT_EQ(lockctl(run_all(server, {"a", "b", "--", "/nonexistent"})).status, 127);
  EXPECT_EQ(server.count("release"), 1U);
}

TEST(Sets, AreLostAsSoonAsTheServerSaysSoAndTheRestIsGivenBack) {
  const FakeSets server(3s, R"(409 {"error":"expired","detail":"over","key":"b"})");
  const Finished finished = lockctl(run_all(server, {"a", "b", "--", "sleep", "600"}));
  EXPECT_EQ(finished.status, 79);
  EXPECT_EQ(finished.errors,
            "lockctl: the lock on 'a', 'b' is lost: the server says that b is held no more; the "
            "command is stopped\n");
  EXPECT_EQ(server.count("release"), 1U);
}

TEST(Sets, ThatWereLostBeforeTheReleaseWereLost) {
  const FakeSets server([](const client::Asked& call) {
    if (call.key != "POST /v1/release") return "200 " + grant_json(10min);
    return std::string(R"(200 {"released":["a"],"not_held":["b"]})");
  });
  EXPECT_EQ(lockctl(run_all(server, {"a", "b", "--", "true"})).status, 79);
}

}  // namespace
}  // namespace lockd
