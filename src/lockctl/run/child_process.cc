#include "lockctl/run/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/run/signals.h"

namespace lockd::cli {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (const std::string& string : strings) all.push_back(const_cast<char*>(string.c_str()));
  all.push_back(nullptr);
  return all;
}

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// The child, between fork and exec: nothing that takes a lock or allocates. Says by the pipe why it
// could not become the command; when it did, exec closes the pipe.
[[noreturn]] void become(char* const* words, char* const* environment, const sigset_t& mask,
                         pid_t parent, const EventFd& go, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitSoftware);  // it died before the kernel knew
  pollfd event{.fd = go.descriptor(), .events = POLLIN, .revents = 0};
  ::poll(&event, 1, -1);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words, environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = ::write(pipe, &error, sizeof error);
  ::_exit(kExitNotFound);
}

[[noreturn]] void refuse(const std::string& what, int error, ExitCode code) {
  throw Failure(code, what + ": " + std::generic_category().message(error));
}

// To a child that has them all blocked still: so one that it was sent as well does not reach it
// twice.
void pass_on_unread(const SignalSource& signals, pid_t child) {
  while (const auto signal = signals.next()) {
    if (is_stop(signal->number)) {
      ::kill(::getpid(), SIGSTOP);
    } else {
      ::kill(child, signal->number);
    }
  }
}

}  // namespace

pid_t start_child(const ChildCommand& command, const SignalSource& signals) {
  const std::vector<char*> words = pointers(command.words);
  const std::vector<char*> environment = pointers(command.environment);
  const EventFd go;
  if (go.descriptor() < 0) refuse("eventfd", errno, kExitSystem);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse("pipe", errno, kExitSystem);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    become(words.data(), environment.data(), signals.original_mask(), parent, go, ends[1]);
  }
  const int fork_error = errno;
  ::close(ends[1]);
  if (child > 0) pass_on_unread(signals, child);
  go.set();
  int error = 0;
  ssize_t size = 0;
  do {
    size = child < 0 ? 0 : ::read(ends[0], &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  ::close(ends[0]);
  if (child < 0) refuse("cannot start a process", fork_error, kExitSystem);
  if (size != sizeof error) return child;
  ::waitpid(child, nullptr, 0);
  refuse(printable(command.words.front()), error,
         error == ENOENT ? kExitNotFound : kExitNotExecutable);
}

std::vector<std::string> environment_with(const std::vector<std::string>& added,
                                          const std::vector<std::string>& left_out) {
  std::vector<std::string> all = added;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name = name_of(*variable);
    const bool replaced = std::any_of(added.begin(), added.end(),
                                      [&](const std::string& one) { return name_of(one) == name; });
    const bool unwanted = std::find(left_out.begin(), left_out.end(), name) != left_out.end();
    if (!replaced && !unwanted) all.emplace_back(*variable);
  }
  return all;
}

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
