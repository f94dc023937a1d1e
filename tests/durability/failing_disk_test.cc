// A disk that fails, and one that does everything by halves.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class FailingDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_faults()) GTEST_SKIP() << "faults come from fault_shim";
  }

  // The nth sync of a server fails. With `loses`, so does all that it was to make durable.
  ServerProcess::Launch failing_sync(int n, bool loses) {
    return {.environment = faults(
                {"SYNC=" + std::to_string(n), loses ? "LOSES=1" : "LOSES=0", "MARK=" + mark(n)}),
            .may_refuse = true};
  }

  // When it did.
  Instant failed_at(int n) {
    std::ifstream file(mark(n));
    std::int64_t ns = 0;
    EXPECT_TRUE(file >> ns);
    return Instant(std::chrono::nanoseconds(ns));
  }

  const TemporaryDirectory directory_;

 private:
  std::string mark(int n) { return elsewhere_.path() + "/" + std::to_string(n); }

  const TemporaryDirectory elsewhere_;
};

TEST_F(FailingDiskTest, AFailedSyncIsTheLast) {
  Crowd crowd;
  int refused = 0;
  for (int n = 1; n <= 60 && !HasFailure(); ++n) {
    SCOPED_TRACE("sync " + std::to_string(n));
    ServerProcess server(durable(directory_.path()), failing_sync(n, n % 2 == 0));
    if (server.port() == 0) ++refused;
    EXPECT_EQ(server.port() == 0 ? server.await_exit() : crowd.outlive(server), 1);
    EXPECT_TRUE(says(server.log(), directory_.path()));
    EXPECT_TRUE(says(server.log(), "sync"));
    EXPECT_TRUE(says(server.log(), "Input/output error"));
    EXPECT_LE(crowd.last_success(), failed_at(n));
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 30);

  ServerProcess server(durable(directory_.path()));
  crowd.verify(server);
  EXPECT_GT(crowd.grants(), 100U);
}

// Whoever takes the files away, nobody is told of what goes there afterwards.
TEST(RemovedJournalTest, NothingIsAcknowledgedIntoNowhere) {
  namespace fs = std::filesystem;
  const std::vector<std::function<void(const std::string&)>> ways = {
      [](const std::string& directory) { fs::remove(directory + "/journal-0000000000000001.log"); },
      [](const std::string& directory) { fs::remove_all(directory); },
      [](const std::string& directory) { fs::rename(directory, directory + "-elsewhere"); },
  };
  for (const auto& take_away : ways) {
    const TemporaryDirectory parent;
    const std::string directory = parent.path() + "/journal";
    ServerProcess server(durable(directory));
    LineClient client = server.connect();
    ASSERT_NE(token_of(client.ask(request("l", "before", "0 1000"))), "");
    take_away(directory);
    client.send(request("l", "after", "0 1000"));
    EXPECT_EQ(server.await_exit(), 1);
    EXPECT_TRUE(client.read_line().starts_with('<')) << "an answer, not the end";
    EXPECT_TRUE(says(server.log(), "removed or replaced; nothing more is acknowledged"));
  }
}

// The machine's crash that an interval does not outlast: what was told since the last sync is gone.
TEST_F(FailingDiskTest, NoFenceIsToldTwiceWhenWhatWasToldIsLost) {
  std::string last;
  for (int n = 1; n <= 31; n += 2) {
    SCOPED_TRACE("sync " + std::to_string(n));
    ServerProcess server(durable(directory_.path(), {"--wal-sync", "10ms"}), failing_sync(n, true));
    LineClient client = server.connect();
    for (;;) {
      const std::string token =
          server.port() == 0 ? "" : token_of(client.ask(request("sl", "pool", "0 1000000 1000")));
      if (token.empty()) break;
      ASSERT_LT(last, token);
      last = token;
    }
    EXPECT_EQ(server.await_exit(), 1);
  }
  EXPECT_NE(last, "");
}

TEST_F(FailingDiskTest, HalvesAndInterruptionsAreMadeWhole) {
  const std::string directory = directory_.path() + "/new";
  Crowd crowd;
  for (int i = 0; i < 5; ++i) {
    ServerProcess server(durable(directory), {.environment = faults({"HALVES=1"})});
    crowd.live(server, 50ms);
  }
  ServerProcess server(durable(directory));
  crowd.verify(server);
  EXPECT_GT(crowd.grants(), 0U);
}

}  // namespace
}  // namespace lockd
