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
        client->acquire({.key = "k", .lease = kLongLease, .on_lost = [this](const Status& s) {
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

TEST(Restart, OfAServerWithAJournalLosesNothing) {
  const TemporaryDirectory journal;
  Options options = line_options();
  options.wal = journal.path();
  Scene scene(options);
  const auto before = scene.lock.expires_at();
  scene.restart(options);
  ASSERT_TRUE(eventually([&] { return scene.lock.expires_at() > before; }));
  EXPECT_EQ(scene.lost, Outcome::ok);
  EXPECT_EQ(scene.client->acquire({.key = "k"}).outcome, Outcome::timeout);
  EXPECT_TRUE(scene.lock.release());
  EXPECT_TRUE(scene.client->acquire({.key = "k"}));
}

TEST(Restart, ReleasesByTokenWhatTheOldConnectionHeld) {
  const TemporaryDirectory journal;
  Options options = line_options();
  options.wal = journal.path();
  Scene scene(options);
  scene.restart(options);
  EXPECT_EQ(scene.lock.release().outcome, Outcome::ok);
  EXPECT_TRUE(scene.client->acquire({.key = "k"}));
}

}  // namespace
}  // namespace lockd::client
