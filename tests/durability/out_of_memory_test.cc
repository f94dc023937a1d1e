// A server that gets no more memory: it ends, says why, and what it acknowledged is there.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/test_size.h"
#include "durability/durable_server.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

// It is the process that ends, not the machine.
const std::vector<std::string> kUnsynced = {"--threads", "1", "--wal-sync", "1s"};

// All that is private and can be written to, which RLIMIT_DATA bounds.
std::size_t data_kib(const ServerProcess& server) {
  std::ifstream status("/proc/" + std::to_string(server.pid()) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) return std::stoul(line.substr(7));
  }
  return 0;
}

TEST(OutOfMemory, EndsTheServerWithAWordAndLosesNothing) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's allocator has words of its own";
  const TemporaryDirectory directory;
  std::vector<std::pair<std::string, std::string>> held;
  {
    ServerProcess server(durable(directory.path(), kUnsynced));
    LineClient client = server.connect();
    ASSERT_EQ(client.ask(request("ping", "", "")), "ok");
    const rlim_t bytes = (data_kib(server) + 512) << 10;
    const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
    ASSERT_EQ(::prlimit(server.pid(), RLIMIT_DATA, &limit, nullptr), 0);
    while (true) {
      std::string key = std::string(200, 'k') + std::to_string(held.size());
      const std::string token = token_of(client.ask(request("l", key, "0 1000")));
      if (token.empty()) break;
      held.emplace_back(std::move(key), token);
    }
    EXPECT_EQ(server.await_exit(), -1) << "it is a signal that ends it";
    EXPECT_TRUE(says(server.log(), "lockd: out of memory"));
  }
  ASSERT_GT(held.size(), 100U);
  ServerProcess server(durable(directory.path(), kUnsynced));
  LineClient client = server.connect();
  for (const auto& [key, token] : held) {
    ASSERT_EQ(client.ask(request("n", key, token)), "ok 1000");
  }
}

}  // namespace
}  // namespace lockd
