// Several keys at once, against the real server: all of them or none, under one fence.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/test_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

HeldLock take_all(Client& client, const LockRequest& request) {
  auto held = client.acquire(request);
  EXPECT_TRUE(held) << describe(held);
  return std::move(*held);
}

bool is_free(Client& client, std::string_view key) {
  return client.acquire({.keys = key}).outcome == Outcome::ok;
}

// Whether so many keys that are held have one waiter each.
bool has_waiters(const TestServer& server, int keys) {
  const auto stats = server.open().stats();
  EXPECT_TRUE(stats) << describe(stats);
  int found = 0;
  for (std::size_t at = 0; (at = stats->find("\"waiters\":1", at)) != std::string::npos; ++at) {
    ++found;
  }
  return found == keys;
}

void revoke(const TestServer& server, const std::string& key) {
  const auto answer =
      server.open().api({.method = "POST",
                         .path = "/v1/admin/release",
                         .json = R"({"key":")" + key + R"(","all":true,"reason":"a test"})"});
  ASSERT_TRUE(answer) << describe(answer);
  EXPECT_EQ(answer->status, 200U) << answer->json;
}

TEST(ClientSets, AreHeldWholeOrNotAtAll) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock held = take_all(client, {.keys = std::vector<KeyItem>{"a", "b"}, .lease = 600s});
  EXPECT_EQ(held.keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(held.key(), "a");
  EXPECT_EQ(held.lease(), 600s);
  EXPECT_TRUE(held.is_held());
  EXPECT_FALSE(is_free(client, "a"));
  EXPECT_FALSE(is_free(client, "b"));
  const auto refused = client.acquire({.keys = std::vector<KeyItem>{"c", "b"}});
  EXPECT_EQ(refused.outcome, Outcome::timeout);
  EXPECT_EQ(refused.detail.find("b is held by "), 0U) << refused.detail;
  EXPECT_TRUE(is_free(client, "c"));
  EXPECT_TRUE(held.release());
  EXPECT_FALSE(held.is_held());
  EXPECT_TRUE(is_free(client, "a"));
  EXPECT_TRUE(is_free(client, "b"));
}

TEST(ClientSets, MixLocksAndSemaphores) {
  const TestServer server;
  Client client(server.client_options());
  const std::vector<KeyItem> keys{"room", shared("prices"), semaphore("cores", 8, 4)};
  const HeldLock held = take_all(client, {.keys = keys});
  EXPECT_FALSE(is_free(client, "room"));
  EXPECT_TRUE(client.acquire({.keys = shared("prices")}));
  EXPECT_FALSE(is_free(client, "prices"));
  const auto cores = [&](std::uint32_t permits) {
    return client.acquire({.keys = semaphore("cores", 8, permits), .lease = 600s}).outcome;
  };
  EXPECT_EQ(cores(5), Outcome::timeout);
  EXPECT_EQ(cores(4), Outcome::ok);
}

TEST(ClientSets, OfOneClientExcludeEachOther) {
  const TestServer server;
  Client client(server.client_options());
  const HeldLock held = take_all(client, {.keys = std::vector<KeyItem>{"a", "b"}});
  EXPECT_EQ(client.acquire({.keys = std::vector<KeyItem>{"a", "b"}}).outcome, Outcome::timeout);
}

TEST(ClientSets, WaitUntilAllAreFree) {
  const TestServer server;
  Client client(server.client_options());
  auto first = client.acquire({.keys = "a", .lease = 600s});
  auto second = client.acquire({.keys = "b", .lease = 600s});
  std::atomic<bool> is_done = false;
  Result<HeldLock> got;
  std::jthread waiter([&] {
    got = client.acquire({.keys = std::vector<KeyItem>{"a", "b"}, .wait = 120s});
    is_done = true;
  });
  ASSERT_TRUE(eventually([&] { return has_waiters(server, 2); }));
  EXPECT_TRUE(first->release());
  EXPECT_FALSE(is_free(client, "a")) << "free, and not for who came later";
  EXPECT_FALSE(is_done);
  EXPECT_TRUE(second->release());
  waiter.join();
  ASSERT_TRUE(got) << describe(got);
  EXPECT_GT(got->fence(), second->fence());
  EXPECT_FALSE(got->queued_again());
}

TEST(ClientSets, ThatCrossDoNotBlockEachOther) {
  const TestServer server;
  Client client(server.client_options());
  const std::vector<std::vector<KeyItem>> orders{{"a", "b"}, {"b", "a"}, {"b", "c"}, {"c", "a"}};
  std::mutex mutex;
  std::vector<std::string> inside;
  std::vector<std::jthread> workers;
  for (const auto& keys : orders) {
    workers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const HeldLock held = take_all(client, {.keys = keys, .wait = 120s});
        {
          const std::lock_guard lock(mutex);
          for (const std::string& key : held.keys()) {
            EXPECT_EQ(std::ranges::count(inside, key), 0) << key;
            inside.push_back(key);
          }
        }
        std::this_thread::yield();
        const std::lock_guard lock(mutex);
        for (const std::string& key : held.keys()) std::erase(inside, key);
      }
    });
  }
  workers.clear();
  for (const char* key : {"a", "b", "c"}) EXPECT_TRUE(is_free(client, key)) << key;
}

TEST(ClientSets, ABoundedWaitIsNeverOverEarly) {
  const TestServer server;
  Client client(server.client_options());
  const auto other = client.acquire({.keys = "b", .lease = 600s});
  for (const Duration wait : {Duration(300ms), Duration(1234567us)}) {
    const auto before = BootClock::now();
    EXPECT_EQ(client.acquire({.keys = std::vector<KeyItem>{"a", "b"}, .wait = wait}).outcome,
              Outcome::timeout);
    EXPECT_GE(BootClock::now() - before, wait);
  }
  EXPECT_TRUE(is_free(client, "a"));
}

TEST(ClientSets, RenewThemselves) {
  const TestServer server;
  Client client(server.client_options());
  const HeldLock held = take_all(client, {.keys = std::vector<KeyItem>{"a", "b"}, .lease = 6s});
  const auto granted_until = held.expires_at();
  EXPECT_TRUE(eventually([&] { return held.expires_at() > granted_until; }));
  EXPECT_TRUE(held.is_held());
  EXPECT_FALSE(held.loss());
}

TEST(ClientSets, OfWhichOneIsTakenAwayAreLost) {
  const TestServer server;
  Client client(server.client_options());
  std::atomic<int> told = 0;
  const HeldLock held = take_all(
      client,
      {.keys = std::vector<KeyItem>{"a", "b"}, .lease = 6s, .on_lost = [&](const Status& s) {
         EXPECT_EQ(s.outcome, Outcome::lost);
         ++told;
       }});
  revoke(server, "b");
  ASSERT_TRUE(eventually([&] { return told == 1; }));
  EXPECT_FALSE(held.is_held());
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_EQ(held.loss()->detail, "the server says that b is held no more");
  EXPECT_TRUE(eventually([&] { return is_free(client, "a"); })) << "the rest is given back";
}

TEST(ClientSets, AReleaseTellsOfWhatWasLostBefore) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock held = take_all(client, {.keys = std::vector<KeyItem>{"a", "b"}, .lease = 600s});
  revoke(server, "b");
  const Status released = held.release();
  EXPECT_EQ(released.outcome, Outcome::lost);
  EXPECT_EQ(released.detail, "the server says that b was held no more");
  EXPECT_TRUE(is_free(client, "a"));
}

TEST(ClientSets, AreAskedForAgainWhenTheServerCutsTheWait) {
  Options options = line_options();
  options.max_set_wait = 1s;
  const TestServer server(options);
  Client client(server.client_options());
  auto other = client.acquire({.keys = "b", .lease = 600s});
  const auto before = BootClock::now();
  EXPECT_EQ(client.acquire({.keys = std::vector<KeyItem>{"a", "b"}, .wait = 2500ms}).outcome,
            Outcome::timeout);
  EXPECT_GE(BootClock::now() - before, 2500ms);
  std::atomic<bool> was_cut = false;
  Result<HeldLock> got;
  std::jthread waiter([&] {
    got = client.acquire({.keys = std::vector<KeyItem>{"a", "b"},
                          .wait = 120s,
                          .on_interrupted = [&](const Status&) { was_cut = true; }});
  });
  ASSERT_TRUE(eventually([&] { return was_cut.load(); }));
  EXPECT_TRUE(other->release());
  waiter.join();
  ASSERT_TRUE(got) << describe(got);
  EXPECT_TRUE(got->queued_again());
}

TEST(ClientSets, SurviveARestartWhileTheyAreHeldAndWhileTheyAreWaitedFor) {
  const TemporaryDirectory journal;
  Options options = line_options();
  options.wal = journal.path();
  std::optional<TestServer> server(options);
  options.port = server->port();
  Client client(server->client_options());
  HeldLock held = take_all(client, {.keys = std::vector<KeyItem>{"a", "b"}, .lease = 20s});
  Result<HeldLock> got;
  std::jthread waiter([&] {
    got = client.acquire({.keys = std::vector<KeyItem>{"b", "c"}, .wait = 120s});
  });
  ASSERT_TRUE(eventually([&] { return has_waiters(*server, 1); }));
  const auto granted_until = held.expires_at();
  server.reset();
  server.emplace(options);
  ASSERT_TRUE(eventually([&] { return held.expires_at() > granted_until; }));
  ASSERT_TRUE(eventually([&] { return has_waiters(*server, 1); }));
  EXPECT_TRUE(held.release());
  waiter.join();
  ASSERT_TRUE(got) << describe(got);
  EXPECT_TRUE(got->queued_again());
}

TEST(ClientSets, OfServersThatShareTheKeysMustBeOnOne) {
  const TestServer one;
  const TestServer two;
  ClientOptions options = one.client_options();
  options.servers.push_back(two.address());
  Client client(options);
  std::string other = "a";
  while (shard_of(other, 2) == shard_of("a", 2)) other += "x";
  std::string same = "ax";
  while (shard_of(same, 2) != shard_of("a", 2)) same += "x";
  const auto apart = client.acquire({.keys = std::vector<KeyItem>{"a", other}});
  EXPECT_EQ(apart.outcome, Outcome::invalid);
  EXPECT_NE(apart.detail.find("on different servers"), std::string::npos) << apart.detail;
  EXPECT_TRUE(client.acquire({.keys = std::vector<KeyItem>{"a", same}}));
}

}  // namespace
}  // namespace lockd::client
