// The server goes and comes back while something is held.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "client/test_server.h"
#include "journal/testing/temporary_directory.h"
#include "support/lying_server.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// Long enough for a slow machine to start a server in.
constexpr auto kLongLease = 20s;

struct Scene {
  std::optional<TestServer> server;
  std::optional<Client> client;
  HeldLock lock;
  std::atomic<Outcome> lost = Outcome::ok;

  explicit Scene(const Options& options) {
    server.emplace(options);
    client.emplace(server->client_options());
    auto acquired =
        client->acquire({.keys = "k", .lease = kLongLease, .on_lost = [this](const Status& s) {
                           lost = s.outcome;
                         }});
    EXPECT_TRUE(acquired) << describe(acquired);
    lock = std::move(*acquired);
  }
  void restart(Options options) {
    options.port = server->port();
    server.reset();
    server.emplace(options);
  }
};

TEST(Restart, OfAServerThatKeepsNothingLosesTheLock) {
  if (::getenv("LOCKD_TEST_WAL") != nullptr) GTEST_SKIP() << "the servers here keep a journal";
  Scene scene(line_options());
  scene.restart(line_options());
  ASSERT_TRUE(eventually([&] { return scene.lost != Outcome::ok; }));
  EXPECT_EQ(scene.lost, Outcome::lost);
  EXPECT_FALSE(scene.lock.is_held());
}

// Restarts the server while somebody waits behind a hold of `Scene`.
struct WaitingScene : Scene {
  using Scene::Scene;

  void restart_behind_a_waiter(const Options& options) {
    waiter = std::thread([this] {
      Client other(server_options);
      LockRequest request{.keys = "k", .wait = 120s};
      request.on_interrupted = [this](const Status&) { interrupted = true; };
      got = other.acquire(request);
    });
    ASSERT_TRUE(eventually(
        [&] { return server->open().stats()->find("\"waiters\":1") != std::string::npos; }));
    restart(options);
  }
  ~WaitingScene() { waiter.join(); }

  const ClientOptions server_options = server->client_options();
  std::atomic<bool> interrupted = false;
  Result<HeldLock> got;
  std::thread waiter;
};

TEST(Restart, AWaitGoesOnBehindWhatIsHeldStill) {
  const TemporaryDirectory journal;
  Options options = line_options();
  options.wal = journal.path();
  WaitingScene scene(options);
  scene.restart_behind_a_waiter(options);
  ASSERT_TRUE(eventually(
      [&] { return scene.server->open().stats()->find("\"waiters\":1") != std::string::npos; }));
  EXPECT_TRUE(scene.interrupted);
  EXPECT_TRUE(eventually([&] { return scene.lock.is_held(); }));
  EXPECT_TRUE(scene.lock.release());
  ASSERT_TRUE(eventually(
      [&] { return scene.server->open().stats()->find("\"waiters\":0") != std::string::npos; }));
}

TEST(Restart, AWaitIsGrantedByTheServerThatCameBack) {
  if (::getenv("LOCKD_TEST_WAL") != nullptr) GTEST_SKIP() << "the servers here keep a journal";
  WaitingScene scene(line_options());
  scene.restart_behind_a_waiter(line_options());
  scene.waiter.join();
  ASSERT_TRUE(scene.got) << describe(scene.got);
  EXPECT_TRUE(scene.got->queued_again());
  EXPECT_TRUE(scene.got->is_held());
  scene.waiter = std::thread([] {});
}

TEST(Restart, AWaitThatEndsBeforeTheServerIsBackSaysThatItStopped) {
  Options options = line_options();
  options.auto_release_on_disconnect = false;  // nobody is granted what its end would release
  std::optional<TestServer> server(options);
  ClientOptions impatient = server->client_options();
  impatient.release_timeout = 100ms;  // at the end there is nobody to release it
  Client client(impatient);
  const auto held = client.acquire({.keys = "k", .lease = kLongLease});
  Result<HeldLock> got;
  std::thread waiter([&] {
    Client other(server->client_options());
    got = other.acquire({.keys = "k", .wait = 3s});
  });
  ASSERT_TRUE(eventually(
      [&] { return server->open().stats()->find("\"waiters\":1") != std::string::npos; }));
  server.reset();
  waiter.join();
  EXPECT_EQ(got.outcome, Outcome::draining) << describe(got);
}

// Else it would stay for its lease.
TEST(Restart, AReleaseWaitsForAServerThatRestarts) {
  const TemporaryDirectory journal;
  Options options = line_options();
  options.wal = journal.path();
  Scene scene(options);
  options.port = scene.server->port();
  scene.server.reset();
  std::thread later([&] {
    std::this_thread::sleep_for(1s);
    scene.server.emplace(options);
  });
  const Status released = scene.lock.release();
  later.join();
  EXPECT_EQ(released.outcome, Outcome::ok) << describe(released);
  EXPECT_TRUE(scene.client->acquire({.keys = "k"}));
}

}  // namespace
}  // namespace lockd::client
