#include "config/environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace lockd::config {
namespace {

constexpr std::uint64_t kMachine = std::uint64_t{8} << 30;

std::uint64_t memory_by(const std::map<std::string, std::string>& files) {
  return memory_within(kMachine, [&](const std::string& path) {
    const auto found = files.find(path);
    return found == files.end() ? FileText{.error = "none", .missing = true}
                                : FileText{.text = found->second};
  });
}

TEST(MemoryWithin, IsTheMachinesWhereNoGroupLimitsIt) {
  EXPECT_EQ(memory_by({}), kMachine);
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "0::/\n"}}), kMachine);
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/memory.max", "max\n"}}),
            kMachine);
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "garbage\n1:\n"}}), kMachine);
}

TEST(MemoryWithin, IsTheLeastOfTheGroupAndThoseAboveIt) {
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "0::/a/b\n"},
                       {"/sys/fs/cgroup/a/b/memory.max", "3000000\n"},
                       {"/sys/fs/cgroup/a/memory.max", "2000000\n"}}),
            2'000'000U);
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "5\n"}}), 5U)
      << "within a container";
}

TEST(MemoryWithin, KnowsTheFirstVersion) {
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "9:cpu,memory:/a\n1:name=systemd:/a\n0::/a\n"},
                       {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"}}),
            4096U);
  EXPECT_EQ(memory_by({{"/proc/self/cgroup", "9:memory:/\n"},
                       {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}),
            kMachine)
      << "which is how it writes that there is no limit";
}

// To open a FIFO without a writer blocks, which would stop the server at a reload.
TEST(ReadFile, OnlyTheFileOfConfigMayBeAPipe) {
  std::string folder = ::testing::TempDir() + "read_file.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Environment environment = process_environment();
  EXPECT_EQ(environment.read_file(folder).error, "not a regular file");
  EXPECT_EQ(environment.read_file("/dev/null").error, "not a regular file");
  EXPECT_EQ(environment.read_file(pipe).error, "not a regular file");
  std::ofstream(folder + "/file") << "text";
  EXPECT_EQ(environment.read_file(folder + "/file").text, "text");
  EXPECT_EQ(environment.read_config(folder + "/file").text, "text");
  std::thread writer([&] { std::ofstream(pipe) << "from a pipe"; });
  EXPECT_EQ(environment.read_config(pipe).text, "from a pipe");
  writer.join();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace lockd::config
