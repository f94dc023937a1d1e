#include "config/environment.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/text.h"
#include "config/values.h"

namespace lockd::config {
namespace {

std::uint64_t files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : Environment{}.files_max;
}

std::uint64_t machine_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_size = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_size <= 0) return 0;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_size);
}

// Where the limits of one line of /proc/self/cgroup stand: "0::/group" is version 2, and
// "9:cpu,memory:/group" version 1. An empty folder: it says nothing of memory.
struct MemoryGroup {
  std::string folder{};
  std::string group{};
  std::string file{};
};

MemoryGroup memory_group(std::string_view line) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return {};
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const std::string group(line.substr(second + 1));
  if (controllers.empty()) return {"/sys/fs/cgroup", group, "/memory.max"};
  const auto names = split_list(controllers);
  if (std::find(names.begin(), names.end(), "memory") == names.end()) return {};
  return {"/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes"};
}

std::vector<std::string> variable_names() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace

std::uint64_t memory_within(std::uint64_t machine,
                            const std::function<FileText(const std::string& path)>& read_file) {
  std::uint64_t least = machine;
  const std::string groups = read_file("/proc/self/cgroup").text;
  for (std::string_view left = groups; !left.empty();) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    MemoryGroup group = memory_group(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
    while (!group.folder.empty()) {  // up to the root, whose group is empty
      const FileText limit = read_file(group.folder + group.group + group.file);
      // "max", which is none, is no number.
      const auto bytes = parse_whole(trimmed(limit.text), 1, UINT64_MAX);
      if (bytes) least = std::min(least, *bytes);
      if (group.group.empty()) break;
      group.group.resize(group.group.rfind('/') == std::string::npos ? 0 : group.group.rfind('/'));
    }
  }
  return least;
}

Environment process_environment() {
  return {.variable = [](const char* name) -> const char* { return std::getenv(name); },
          .read_file = read_regular_file,
          .read_config = read_file_or_pipe,
          .names = variable_names(),
          .cores = std::thread::hardware_concurrency(),
          .files_max = files_max(),
          .memory = memory_within(machine_memory(), read_regular_file)};
}

void hide_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return;
  const std::string kept = value;
  const std::string start = std::string(name) + '=';
  for (char** variable = environ; *variable != nullptr; ++variable) {  // it may be there twice
    if (!std::string_view(*variable).starts_with(start)) continue;
    char* const shown = *variable + start.size();
    std::memset(shown, '*', std::strlen(shown));
  }
  ::setenv(name, kept.c_str(), 1);
}

}  // namespace lockd::config
