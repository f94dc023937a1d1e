#include "config/environment.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

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

}  // namespace
}  // namespace lockd::config
