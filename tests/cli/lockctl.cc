#include "cli/lockctl.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/testing/eventually.h"
#include "support/process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

Words environment_with(Words all) {
  for (std::string& variable : our_environment()) {
    const auto is = [&](const char* start) { return variable.starts_with(start); };
    if (is("DFLOCKD_") || is("LOCKD_") || is("HOME=") || is("XDG_") || is("TERM=") ||
        is("NO_COLOR=") || is("SHELL=")) {
      continue;
    }
    all.push_back(std::move(variable));
  }
  all.emplace_back("HOME=/nonexistent");
  all.emplace_back("TERM=xterm");
  return all;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++found;
  }
  return found;
}

}  // namespace

Lockctl::Lockctl(const Words& arguments) : Lockctl(arguments, Launch{}) {}

Lockctl::Lockctl(const Words& arguments, Launch launch) {
  start(joined({launch.program.empty() ? path_of_lockctl() : launch.program}, arguments), launch);
}

void Lockctl::start(const Words& words, const Launch& launch) {
  const Words environment = environment_with(launch.environment);
  if (launch.terminal) return start_under_terminal(words, environment);
  output_ = new_file();
  errors_ = new_file();
  const int input = new_file(launch.input);
  pid_ = spawn({.words = words,
                .environment = environment,
                .input = input,
                .output = output_,
                .errors = errors_,
                .kept = launch.descriptors,
                .in_child = [input] { ::lseek(input, 0, SEEK_SET); }});
  ::close(input);
}

void Lockctl::start_under_terminal(Words words, Words environment) {
  const std::vector<char*> arguments = exec_words(words);
  const std::vector<char*> variables = exec_words(environment);
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ < 0) give_up("forkpty");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  ::fcntl(terminal_, F_SETFD, FD_CLOEXEC);
  ::fcntl(terminal_, F_SETFL, O_NONBLOCK);
}

Lockctl::~Lockctl() {
  if (!has_ended()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "--- output\n%s--- errors\n%s---\n", output().c_str(), errors().c_str());
  }
  for (const int descriptor : {output_, errors_, terminal_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void Lockctl::signal(int number) const { ::kill(pid_, number); }  // it was started: not -1

bool Lockctl::has_ended() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

int Lockctl::await_exit() {
  // A terminal that nobody reads is full at some time.
  if (!eventually([&] { return output(), has_ended(); })) {
    ADD_FAILURE() << "lockctl does not end";
    return -1;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1 - WTERMSIG(status_);
}

std::string Lockctl::output() {
  if (terminal_ < 0) return read_file(output_);
  std::array<char, 4096> bytes;
  for (ssize_t size; (size = ::read(terminal_, bytes.data(), bytes.size())) > 0;) {
    shown_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return shown_;
}

std::string Lockctl::errors() const { return errors_ < 0 ? "" : read_file(errors_); }

void Lockctl::await_output(std::string_view part, std::size_t times) {
  await_part(part, times, [this] { return output(); });
}

void Lockctl::await_errors(std::string_view part) {
  await_part(part, 1, [this] { return errors(); });
}

void Lockctl::await_part(std::string_view part, std::size_t times,
                         const std::function<std::string()>& text) {
  eventually([&] {
    const bool over = has_ended();
    return count(text(), part) >= times || over;
  });
  EXPECT_GE(count(text(), part), times) << part << " is not in:\n" << text();
}

void Lockctl::type(std::string_view keys) const {
  EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void Lockctl::resize(unsigned short rows, unsigned short columns) const {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  EXPECT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
}

Finished lockctl(const Words& arguments, Lockctl::Launch launch) {
  Lockctl process(arguments, std::move(launch));
  Finished finished;
  finished.status = process.await_exit();
  finished.output = process.output();
  finished.errors = process.errors();
  return finished;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words with_options(Words words, const Words& options) {
  words.insert(words.begin() + 1, options.begin(), options.end());
  return words;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Words run(const ServerProcess& server, const Words& more) {
  return joined({"run", "-s", address_of(server)}, more);
}

std::string address_of(const ServerProcess& server) {
  return "127.0.0.1:" + std::to_string(server.port());
}

bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return false;
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end + 1, 2, " Z") != 0;
}

bool await_death(pid_t pid) {
  return eventually([pid] { return !is_alive(pid); });
}

pid_t pid_behind(const std::string& text, std::string_view name) {
  const std::size_t at = text.find(name);
  const pid_t pid = at == std::string::npos ? 0 : std::atoi(text.c_str() + at + name.size());
  if (pid > 1) return pid;
  std::fprintf(stderr, "no process id behind '%s' in '%s'\n", std::string(name).c_str(),
               text.c_str());
  std::abort();
}

std::string path_of_lockctl() { return LOCKD_LOCKCTL; }

}  // namespace lockd
