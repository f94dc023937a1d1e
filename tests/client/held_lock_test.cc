// Locks that keep themselves, against the real server.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/test_server.h"
#include "journal/testing/temporary_directory.h"
#include "support/lying_server.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// A lease that a slow machine can renew in time.
constexpr auto kLease = 8s;

HeldLock acquire(Client& client, const LockRequest& request) {
  auto lock = client.acquire(request);
  EXPECT_TRUE(lock) << describe(lock);
  return std::move(*lock);
}

// How many descriptors may be open, until the end of the scope; those that are stay so.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lowered{.rlim_cur = limit, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(HeldLock, IsReleasedByItsDestructor) {
  const TestServer server;
  Client client(server.client_options());
  Fence first = 0;
  {
    const HeldLock lock = acquire(client, {.keys = "my-job", .lease = 600s});
    first = lock.fence();
    EXPECT_TRUE(lock.is_held());
    EXPECT_EQ(lock.key(), "my-job");
    EXPECT_EQ(lock.lease(), 600s);
    EXPECT_EQ(lock.token().size(), 32u);
    EXPECT_GT(lock.expires_at(), BootClock::now());
    EXPECT_EQ(lock.loss(), std::nullopt);
    EXPECT_EQ(client.acquire({.keys = "my-job"}).outcome, Outcome::timeout);
  }
  const HeldLock again = acquire(client, {.keys = "my-job"});
  EXPECT_GT(again.fence(), first);
}

TEST(HeldLock, MovesAsAValue) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock a = acquire(client, {.keys = "a"});
  HeldLock b = acquire(client, {.keys = "b"});
  HeldLock moved = std::move(a);
  EXPECT_FALSE(a.is_held());  // NOLINT: it says so
  EXPECT_EQ(a.key(), "");
  EXPECT_EQ(a.release().outcome, Outcome::refused);
  b = std::move(moved);
  EXPECT_EQ(b.key(), "a");
  EXPECT_TRUE(client.acquire({.keys = "b"})) << "what it held before was released";
  EXPECT_TRUE(b.release());
  EXPECT_TRUE(b.release()) << "as the first time";
  EXPECT_FALSE(b.is_held());
  EXPECT_EQ(b.token(), "");
  EXPECT_EQ(b.loss(), std::nullopt);
}

TEST(HeldLock, OutlivesItsLeaseByRenewal) {
  const TestServer server;
  Client client(server.client_options());
  std::atomic<int> lost = 0;
  const HeldLock lock =
      acquire(client, {.keys = "k", .lease = kLease, .on_lost = [&](const Status&) { ++lost; }});
  const auto until = lock.expires_at() + kLease / 2;
  auto last = lock.expires_at();
  while (BootClock::now() < until) {
    ASSERT_TRUE(lock.is_held());
    ASSERT_GE(lock.expires_at(), last) << "certainty went back";
    last = lock.expires_at();
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(client.acquire({.keys = "k"}).outcome, Outcome::timeout);
  EXPECT_EQ(lost, 0);
}

TEST(HeldLock, IsLostWhenSomebodyElseReleasesIt) {
  const TestServer server;
  Client client(server.client_options());
  std::atomic<Outcome> lost = Outcome::ok;
  HeldLock lock = acquire(client, {.keys = "k", .lease = kLease, .on_lost = [&](const Status& s) {
                                     lost = s.outcome;
                                   }});
  std::atomic<bool> stopped = false;
  const std::stop_callback on_stop(lock.lost(), [&] { stopped = true; });
  ASSERT_TRUE(server.open().release({.key = "k", .token = lock.token()}));
  ASSERT_TRUE(eventually([&] { return lost != Outcome::ok; }));
  EXPECT_EQ(lost, Outcome::lost);
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(lock.is_held());
  EXPECT_EQ(lock.loss()->outcome, Outcome::lost);
  EXPECT_EQ(lock.release().outcome, Outcome::lost);
}

TEST(HeldLock, MayBeDestroyedByTheCallbackTheClientToo) {
  const TestServer server;
  auto client = std::make_unique<Client>(server.client_options());
  std::optional<HeldLock> lock;
  std::atomic<bool> told = false;
  lock = acquire(*client, {.keys = "k", .lease = kLease, .on_lost = [&](const Status&) {
                             lock.reset();
                             told = true;
                           }});
  const std::string token = lock->token();
  client.reset();  // the lock has the background thread to itself
  ASSERT_TRUE(server.open().release({.key = "k", .token = token}));
  EXPECT_TRUE(eventually([&] { return told.load(); }));
}

TEST(HeldLock, OutlivesTheClient) {
  const TestServer server;
  HeldLock lock;
  {
    Client client(server.client_options());
    lock = acquire(client, {.keys = "k", .lease = kLease});
  }
  const auto first = lock.expires_at();
  EXPECT_TRUE(eventually([&] { return lock.expires_at() > first; }));
  EXPECT_TRUE(lock.release());
}

// What may be watched at once is limited by what may be open.
TEST(HeldLock, ManyAreKeptWhenFewDescriptorsMayBeOpen) {
  constexpr int kHeld = 50;
  const TestServer server;
  Client client(server.client_options());
  std::vector<HeldLock> locks;
  for (int i = 0; i < kHeld; ++i) {
    locks.push_back(acquire(client, {.keys = "k" + std::to_string(i), .lease = kLease}));
  }
  for (const rlim_t limit : {rlim_t{kHeld + 10}, rlim_t{10}}) {
    const DescriptorLimit lowered(limit);
    const auto before = BootClock::now() + kLease;
    EXPECT_TRUE(eventually([&] {
      return std::all_of(locks.begin(), locks.end(), [&](const HeldLock& lock) {
        return lock.expires_at() > before || !lock.is_held();
      });
    })) << limit;
    for (const HeldLock& lock : locks) EXPECT_TRUE(lock.is_held()) << lock.key() << ' ' << limit;
  }
}

TEST(HeldLock, ThreadsThatShareAClientExcludeEachOther) {
  const TestServer server;
  Client client(server.client_options());
  std::atomic<int> inside = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const HeldLock lock = acquire(client, {.keys = "k", .wait = 60s, .lease = 60s});
        EXPECT_EQ(++inside, 1);
        EXPECT_TRUE(lock.is_held());
        --inside;
      }
    });
  }
}

TEST(HeldLock, APlaceInLineIsAwaitedOrGivenUp) {
  const TestServer server;
  Client client(server.client_options());
  auto first = client.enqueue({.keys = "k", .lease = 600s});
  ASSERT_TRUE(first) << describe(first);
  EXPECT_TRUE(first->is_granted());
  auto second = client.enqueue({.keys = "k"});
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_granted());
  {
    const auto third = client.enqueue({.keys = "k"});
    ASSERT_TRUE(third);
  }
  // The server sees later that it has gone.
  LineClient observer(server.port());
  await_stats(observer, "\"waiters\":1");
  auto lock = first->wait(0s);
  ASSERT_TRUE(lock) << describe(lock);
  EXPECT_EQ(first->wait(0s).outcome, Outcome::not_enqueued) << "used up";
  EXPECT_TRUE(lock->release());
  {
    const auto next = second->wait(60s);
    ASSERT_TRUE(next) << describe(next);
    EXPECT_GT(next->fence(), lock->fence());
  }
  {
    const auto granted = client.enqueue({.keys = "k", .lease = 600s});
    ASSERT_TRUE(granted && granted->is_granted()) << "the third is gone";
  }
  EXPECT_TRUE(client.acquire({.keys = "k", .wait = 60s})) << "and so is the one after it";
}

TEST(HeldLock, AGrantThatNobodyAwaitedInTimeIsNone) {
  const TestServer server;
  Client client(server.client_options());
  auto place = client.enqueue({.keys = "k", .lease = 1s});
  ASSERT_TRUE(place);
  const HeldLock next = acquire(client, {.keys = "k", .wait = 60s});
  EXPECT_EQ(place->wait(0s).outcome, Outcome::lease_expired);
  EXPECT_TRUE(next.is_held());
}

TEST(HeldLock, KeysAreSpreadOverTheServers) {
  const TestServer servers[3];
  ClientOptions options = servers[0].client_options();
  options.servers = {servers[0].address(), servers[1].address(), servers[2].address()};
  Client client(options);
  const HeldLock lock = acquire(client, {.keys = "clé-日本"});
  for (std::size_t i = 0; i < 3; ++i) {
    const auto stats = servers[i].open().stats();
    EXPECT_EQ(stats->find("clé-日本") != std::string::npos, i == 2) << i << ": " << *stats;
  }
  const auto connection = client.connect("clé-日本");
  EXPECT_TRUE(connection);
  EXPECT_EQ(client.server_of("clé-日本"), servers[2].address());
}

TEST(HeldLock, InvalidRequestsAreSentNowhere) {
  Client client({.servers = {{"no-such-host.invalid"}}});
  EXPECT_EQ(client.acquire({.keys = ""}).outcome, Outcome::invalid);
  EXPECT_EQ(client.acquire({.keys = "k", .wait = -1ns}).outcome, Outcome::invalid);
  EXPECT_EQ(client.acquire({.keys = "k", .lease = 0s}).outcome, Outcome::invalid);
  EXPECT_EQ(client.enqueue({.keys = KeyItem("k", Kind::lock, Mode::exclusive, 2, 1)}).outcome,
            Outcome::invalid);
  EXPECT_EQ(client.acquire({.keys = "k"}).outcome, Outcome::unreachable);
}

}  // namespace
}  // namespace lockd::client
