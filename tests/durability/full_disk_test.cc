// A disk that is full: one that fault_shim makes so, a real one that is small, and one on which
// files may not grow.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "durability/durable_server.h"
#include "durability/private_mount.h"
#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

struct Held {
  std::string key;
  std::string token;
};

// Takes locks until one is refused for want of space, or for any other reason.
std::vector<Held> take_all(LineClient& client) {
  std::vector<Held> held;
  for (;;) {
    std::string key = "key-" + std::to_string(held.size());
    const std::string reply = client.ask(request("l", key, "0 1000"));
    if (token_of(reply).empty()) {
      EXPECT_EQ(reply, "error_storage");
      return held;
    }
    held.push_back({std::move(key), token_of(reply)});
  }
}

void release_some(LineClient& client, std::vector<Held>& held, std::size_t count,
                  std::vector<Held>& released) {
  for (; count > 0 && !held.empty(); --count) {
    EXPECT_EQ(client.ask(request("r", held.back().key, held.back().token)), "ok");
    released.push_back(std::move(held.back()));
    held.pop_back();
  }
}

void expect_full(LineClient& client, std::vector<Held>& held, std::vector<Held>& released) {
  ASSERT_GT(held.size(), 10U);
  EXPECT_EQ(client.ask(request("sl", "pool", "0 5 1000")), "error_storage");
  EXPECT_EQ(client.ask(request("e", "other", "1000")), "error_storage");
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(client.ask(request("n", held[i].key, held[i].token + " 2000")), "ok 2000");
  }
  release_some(client, held, 5, released);
  // What is free is not granted either.
  EXPECT_EQ(client.ask(request("l", released[0].key, "0 1000")), "error_storage");
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

void await_service(LineClient& client) {
  const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
  std::string reply;
  while (LineClient::Clock::now() < deadline) {
    reply = client.ask(request("l", "after", "0 1000"));
    if (reply != "error_storage") break;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(masked(reply), "ok <token> 1000");
}

// Renews one many times over. Returns how often before the first refusal, which is for want of
// space.
std::size_t renew_often(LineClient& client, const Held& hold, std::size_t times) {
  constexpr std::size_t kAtOnce = 500;
  std::string renewals;
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    renewals += request("n", hold.key, hold.token + " 1000");
  }
  std::size_t renewed = 0;
  bool refused = false;
  while (renewed < times && !refused && !testing::Test::HasFailure()) {
    client.send(renewals);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::string reply = client.read_line();
      if (reply != "ok 1000") {
        EXPECT_EQ(reply, "error_storage");
        refused = true;
      }
      if (!refused) ++renewed;
    }
  }
  return renewed;
}

void expect_in_force(const std::string& directory, const std::vector<Held>& held,
                     const std::vector<Held>& released) {
  ServerProcess server(durable(directory));
  LineClient client = server.connect();
  for (const Held& hold : held) {
    ASSERT_EQ(client.ask(request("l", hold.key, "0 1000")), "timeout");
    ASSERT_EQ(client.ask(request("n", hold.key, hold.token)), "ok 1000");
  }
  for (const Held& hold : released) {
    ASSERT_EQ(client.ask(request("n", hold.key, hold.token)), "error");
    ASSERT_EQ(masked(client.ask(request("l", hold.key, "0 1000"))), "ok <token> 1000");
  }
}

// A directory that holds a reserve, 16 KiB besides, and no more until there is relief.
class ScantDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_faults()) GTEST_SKIP() << "faults come from fault_shim";
  }

  void relieve() { std::ofstream(relief_) << "\n"; }

  const TemporaryDirectory directory_;
  const TemporaryDirectory elsewhere_;
  const std::string relief_ = elsewhere_.path() + "/relief";
  const ServerProcess::Launch scant_{
      .environment =
          faults({"SPACE=" + std::to_string((1 << 20) + (16 << 10)), "RELIEF=" + relief_})};
};

TEST_F(ScantDiskTest, ServiceReturnsWithSpace) {
  std::vector<Held> held;
  std::vector<Held> released;
  {
    ServerProcess server(durable(directory_.path()), scant_);
    LineClient client = server.connect();
    held = take_all(client);
    expect_full(client, held, released);
    EXPECT_TRUE(server.comes_to_log("No space left on device"));
    relieve();
    await_service(client);
    EXPECT_TRUE(server.comes_to_log("there is space on the disk again"));
    release_some(client, held, 5, released);
    server.kill();
  }
  expect_in_force(directory_.path(), held, released);
}

// Several times what the reserve has room for: what is held is little, and a snapshot of it frees
// what the renewals have used.
TEST_F(ScantDiskTest, RenewalsDoNotUseTheReserveUp) {
  std::vector<Held> held;
  std::vector<Held> released;
  {
    ServerProcess server(durable(directory_.path()), scant_);
    LineClient client = server.connect();
    held = take_all(client);
    expect_full(client, held, released);
    EXPECT_GE(renew_often(client, held.front(), 100'000), 100'000U);
    release_some(client, held, 1, released);
    server.kill();
  }
  {
    ServerProcess server(durable(directory_.path()), scant_);
    LineClient client = server.connect();
    EXPECT_EQ(client.ask(request("n", held.front().key, held.front().token)), "ok 1000");
    release_some(client, held, 1, released);
  }
  expect_in_force(directory_.path(), held, released);
}

// So much is held that no snapshot of it fits.
class CrowdedDiskTest : public ScantDiskTest {
 protected:
  std::vector<Held> hold_much(LineClient& client) {
    constexpr std::size_t kAtOnce = 100;
    std::vector<Held> held;
    for (bool refused = false; !refused;) {
      std::string requests;
      std::vector<std::string> keys;
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        keys.push_back(std::string(200, 'k') + std::to_string(held.size() + i));
        requests += request("l", keys.back(), "0 1000");
      }
      client.send(requests);
      for (std::string& key : keys) {
        const std::string reply = client.read_line();
        refused |= token_of(reply).empty();
        if (!token_of(reply).empty()) held.push_back({std::move(key), token_of(reply)});
      }
    }
    return held;
  }

  const ServerProcess::Launch crowded_{
      .environment =
          faults({"SPACE=" + std::to_string((1 << 20) + (800 << 10)), "RELIEF=" + relief_})};
};

// A full disk is a state: the server lives through it, also from the start, and it ends with it.
TEST_F(CrowdedDiskTest, RenewalsAreRefusedBeforeTheReserveIsGone) {
  std::vector<Held> held;
  std::vector<Held> released;
  const std::vector<std::string> flags = durable(directory_.path(), {"--http-addr", "127.0.0.1:0"});
  {
    ServerProcess server(flags, crowded_);
    HttpClient browser({.port = server.http_port()});
    const HttpReply grant =
        browser.post("/v1/acquire", R"({"key":"k","holder":"a","ttl_ms":600000})");
    LineClient client = server.connect();
    held = hold_much(client);
    ASSERT_GT(held.size(), 1000U);
    const std::size_t renewed = renew_often(client, held.front(), 100'000);
    EXPECT_GT(renewed, 1000U);
    EXPECT_LT(renewed, 100'000U);
    EXPECT_TRUE(server.comes_to_log("renewals are refused"));
    EXPECT_EQ(client.ask(request("n", held[1].key, held[1].token)), "error_storage");
    EXPECT_EQ(client.ask(request("sn", "none", held[1].token)), "error_storage");
    const std::string hold =
        R"({"key":"k","holder":"a","token":)" + std::to_string(grant.number("token")) + "}";
    const HttpReply refused = browser.post("/v1/renew", hold);
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.text("error"), "storage");
    EXPECT_EQ(refused.field("Retry-After"), "1");
    release_some(client, held, 5, released);
    EXPECT_EQ(browser.post("/v1/release", hold).status, 200);
    EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
    server.kill();
  }
  {
    ServerProcess server(flags, crowded_);
    LineClient client = server.connect();
    EXPECT_EQ(client.ask(request("l", "other", "0 1000")), "error_storage");
    EXPECT_EQ(client.ask(request("n", held[1].key, held[1].token)), "error_storage");
    release_some(client, held, 5, released);
    relieve();
    await_service(client);
    EXPECT_EQ(client.ask(request("n", held[1].key, held[1].token)), "ok 1000");
  }
  held.resize(200);
  expect_in_force(directory_.path(), held, released);
}

// A limit on the size of files (ulimit -f, LimitFSIZE=): a disk that is full, as far as the server
// can tell.
class FileSizeLimitTest : public testing::Test {
 protected:
  // Processes that start while it lives may make no file longer than that.
  class Limited {
   public:
    explicit Limited(rlim_t bytes) {
      ::getrlimit(RLIMIT_FSIZE, &before_);
      const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
      EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    ~Limited() { ::setrlimit(RLIMIT_FSIZE, &before_); }
    Limited(const Limited&) = delete;
    Limited& operator=(const Limited&) = delete;

   private:
    rlimit before_{};
  };

  static void lift_limit(const ServerProcess& server) {
    rlimit limit{};
    ASSERT_EQ(::prlimit(server.pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::prlimit(server.pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  }

  const TemporaryDirectory directory_;
};

TEST_F(FileSizeLimitTest, IsAFullDiskAndKillsNobody) {
  std::vector<Held> held;
  std::vector<Held> released;
  {
    std::optional<Limited> limited(std::in_place, (1 << 20) + (16 << 10));  // 16 KiB and a reserve
    ServerProcess server(durable(directory_.path()));
    limited.reset();
    LineClient client = server.connect();
    held = take_all(client);
    expect_full(client, held, released);
    EXPECT_TRUE(server.comes_to_log("File too large"));
    lift_limit(server);
    await_service(client);
    EXPECT_TRUE(server.comes_to_log("there is space on the disk again"));
    server.kill();
  }
  expect_in_force(directory_.path(), held, released);
}

class SmallDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mount_.is_there()) GTEST_SKIP() << "a file system cannot be mounted here";
  }

  // Nothing fits any more until what fills it is removed.
  void fill() {
    std::ofstream file(filling_, std::ios::binary);
    const std::string page(4096, 'x');
    while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }

  const TemporaryDirectory directory_;
  const PrivateMount mount_{directory_.path(), "size=1280k,mode=0700"};
  const std::string journal_ = directory_.path() + "/journal";
  const std::string filling_ = directory_.path() + "/filling";
};

TEST_F(SmallDiskTest, AServerStartsOnAFullDisk) {
  std::vector<Held> held;
  std::vector<Held> released;
  {
    ServerProcess server(durable(journal_));
    LineClient client = server.connect();
    for (int i = 0; i < 200; ++i) {
      const std::string key = "early-" + std::to_string(i);
      held.push_back({key, token_of(client.ask(request("l", key, "0 1000")))});
    }
    server.kill();
  }
  fill();
  for (int start = 0; start < 3; ++start) {
    ServerProcess server(durable(journal_));
    LineClient client = server.connect();
    ASSERT_EQ(client.ask(request("l", "other", "0 1000")), "error_storage");
    ASSERT_EQ(client.ask(request("n", held.front().key, held.front().token)), "ok 1000");
    release_some(client, held, 5, released);
    if (start == 1) server.kill();
  }
  {
    ServerProcess server(durable(journal_));
    LineClient client = server.connect();
    std::filesystem::remove(filling_);
    await_service(client);
  }
  std::filesystem::copy(journal_, directory_.path() + "-copy");
  expect_in_force(directory_.path() + "-copy", held, released);
  std::filesystem::remove_all(directory_.path() + "-copy");
}

// What it has written comes to many times the disk, and what is held to next to nothing.
TEST_F(SmallDiskTest, ItIsNotFullOfItsOwnPastForLong) {
  constexpr std::size_t kAtOnce = 200;
  ServerProcess server(durable(journal_));
  LineClient client = server.connect();
  const std::string key(200, 'k');
  std::string requests;
  for (std::size_t i = 0; i < kAtOnce; ++i) requests += request("sl", key, "0 1000000 1000");
  std::size_t granted = 0;
  const auto deadline = LineClient::Clock::now() + 4 * LineClient::kPatience;
  while (granted < 15'000 && LineClient::Clock::now() < deadline) {
    client.send(requests);
    std::string releases;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const std::string reply = client.read_line();
      if (token_of(reply).empty()) {
        ASSERT_EQ(reply, "error_storage");
        continue;
      }
      ++taken;
      releases += request("sr", key, token_of(reply));
    }
    client.send(releases);
    for (std::size_t i = 0; i < taken; ++i) ASSERT_EQ(client.read_line(), "ok");
    granted += taken;
  }
  EXPECT_GE(granted, 15'000U);
}

}  // namespace
}  // namespace lockd
