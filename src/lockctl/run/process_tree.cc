#include "lockctl/run/process_tree.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "base/text.h"

namespace lockd::cli {
namespace {

// The parent, from /proc/PID/stat: the second field behind the name, which is in parentheses and
// may have any in it. 0 when the process has gone.
pid_t parent_of(const std::string& pid) {
  std::ifstream stream("/proc/" + pid + "/stat");
  std::string line;
  std::getline(stream, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  int parent = 0;
  char state = 0;
  return std::sscanf(line.c_str() + name_end + 1, " %c %d", &state, &parent) == 2 ? parent : 0;
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc"), ::closedir);
  while (const dirent* entry = all == nullptr ? nullptr : ::readdir(all.get())) {
    const auto pid = parse_whole(entry->d_name, 1, INT32_MAX);
    if (!pid) continue;
    const pid_t parent = parent_of(entry->d_name);
    if (parent != 0) children.emplace(parent, static_cast<pid_t>(*pid));
  }
  return children;
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

std::vector<pid_t> descendants() {
  const auto children = children_by_parent();
  std::vector<pid_t> found{::getpid()};
  for (std::size_t next = 0; next < found.size(); ++next) {
    const auto [first, last] = children.equal_range(found[next]);
    std::transform(first, last, std::back_inserter(found),
                   [](const auto& one) { return one.second; });
  }
  found.erase(found.begin());
  return found;
}

void signal_descendants(int number) {
  for (const pid_t pid : descendants()) ::kill(pid, number);
}

}  // namespace lockd::cli
