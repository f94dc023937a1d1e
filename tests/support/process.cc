#include "support/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace lockd {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

// In the child.
[[noreturn]] void become(const Program& program, char* const* words, char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that dies leaves nobody behind
  if (program.in_child) program.in_child();
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(program.input < 0 ? null : program.input, STDIN_FILENO);
  ::dup2(program.output < 0 ? null : program.output, STDOUT_FILENO);
  ::dup2(program.errors < 0 ? null : program.errors, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);  // what we inherited is none of its
  for (const int descriptor : program.kept) ::fcntl(descriptor, F_SETFD, 0);
  ::execve(words[0], words, environment);
  ::_exit(127);
}

}  // namespace

pid_t spawn(const Program& program) {
  std::vector<std::string> words = program.words;
  std::vector<std::string> settings = program.environment;
  const std::vector<char*> arguments = exec_words(words);
  const std::vector<char*> environment = exec_words(settings);
  const pid_t pid = ::fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) become(program, arguments.data(), environment.data());
  return pid;
}

void kill_and_wait(pid_t pid) {
  if (pid <= 0) return;  // those are everybody, to kill(2)
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

std::vector<std::string> our_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  return all;
}

std::vector<char*> exec_words(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& string : strings) all.push_back(string.data());
  all.push_back(nullptr);
  return all;
}

int new_file(std::string_view content) {
  const int file = ::memfd_create("test", MFD_CLOEXEC);
  if (file < 0) give_up("memfd_create");
  if (::pwrite(file, content.data(), content.size(), 0) < 0) give_up("pwrite");
  // Several may write at once: each behind what is there, wherever it thought to be.
  ::fcntl(file, F_SETFL, O_APPEND);
  return file;
}

std::string read_file(int file, std::size_t from) {
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t size; (size = ::pread(file, bytes.data(), bytes.size(),
                                     static_cast<off_t>(from + text.size()))) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace lockd
