// Fifty of them for one key: one at a time, in the order in which they came.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

TEST(RunContention, OneAtATimeInOrderOfArrival) {
  constexpr int kCrowd = 50;
  ServerProcess server;
  LineClient first = server.connect();
  const std::string token = token_of(first.ask(request("l", "k", "0 600")));
  LineClient watcher = server.connect();
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/log";

  std::vector<std::unique_ptr<Lockctl>> crowd;
  for (int i = 0; i < kCrowd; ++i) {
    const std::string number = std::to_string(i);
    crowd.push_back(std::make_unique<Lockctl>(
        std::vector<std::string>{"run", "-s", address_of(server), "k", "--", "/bin/sh", "-c",
                                 "echo begin " + number + " >> " + log + "; sleep 0.01; echo end " +
                                     number + " $LOCKD_FENCE >> " + log + "; exit " + number}));
    // Each is in the queue before the next one comes.
    await_stats(watcher, "\"waiters\":" + std::to_string(i + 1) + "}");
  }
  EXPECT_EQ(first.ask(request("r", "k", token)), "ok");
  for (int i = 0; i < kCrowd; ++i) {
    EXPECT_EQ(crowd[static_cast<std::size_t>(i)]->await_exit(), i);
  }

  std::ifstream lines(log);
  unsigned long long last = 0;
  for (int i = 0; i < kCrowd; ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line, "begin " + std::to_string(i));
    ASSERT_TRUE(std::getline(lines, line));
    const std::string end = "end " + std::to_string(i) + ' ';
    ASSERT_TRUE(line.starts_with(end)) << line;
    const unsigned long long fence = std::stoull(line.substr(end.size()));
    EXPECT_GT(fence, last) << "fences rise";
    last = fence;
  }
}

}  // namespace
}  // namespace lockd
