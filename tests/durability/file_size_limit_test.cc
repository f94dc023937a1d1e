// A limit on the size of files (ulimit -f, LimitFSIZE=): a disk that is full, as far as we can
// tell.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

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

  static std::string ask_until_it_is_not(const std::string& refusal, LineClient& client) {
    const auto deadline = LineClient::Clock::now() + LineClient::kPatience;
    std::string reply = refusal;
    while (reply == refusal && LineClient::Clock::now() < deadline) {
      reply = client.ask(request("l", "after", "0 1000"));
      std::this_thread::sleep_for(10ms);
    }
    return masked(reply);
  }

  const TemporaryDirectory directory_;
};

TEST_F(FileSizeLimitTest, IsAFullDiskAndKillsNobody) {
  std::vector<std::pair<std::string, std::string>> held;
  {
    std::optional<Limited> limited(std::in_place, (1 << 20) + (16 << 10));  // 16 KiB and a reserve
    ServerProcess server(durable(directory_.path()));
    limited.reset();
    LineClient client = server.connect();
    std::string reply;
    do {
      const std::string key = "key-" + std::to_string(held.size());
      reply = client.ask(request("l", key, "0 1000"));
      if (!token_of(reply).empty()) held.emplace_back(key, token_of(reply));
    } while (!token_of(reply).empty());
    EXPECT_EQ(reply, "error_storage");
    EXPECT_TRUE(server.comes_to_log("File too large"));
    ASSERT_GT(held.size(), 10U);
    EXPECT_EQ(client.ask(request("n", held[0].first, held[0].second + " 2000")), "ok 2000");
    EXPECT_EQ(client.ask(request("r", held.back().first, held.back().second)), "ok");
    held.pop_back();
    lift_limit(server);
    EXPECT_EQ(ask_until_it_is_not("error_storage", client), "ok <token> 1000");
    EXPECT_TRUE(server.comes_to_log("there is space on the disk again"));
    server.kill();
  }
  ServerProcess server(durable(directory_.path()));
  LineClient client = server.connect();
  for (const auto& [key, token] : held) {
    ASSERT_EQ(client.ask(request("n", key, token)), "ok 1000");
  }
}

}  // namespace
}  // namespace lockd
