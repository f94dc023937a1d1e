#include "support/server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "support/process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::size_t kLogShown = 8 * 1024;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

// The line of that event, as text or as JSON, if it is there and whole; else empty.
std::string_view line_of(std::string_view log, std::string_view event) {
  const std::string name(event);
  const std::size_t begin = std::min(log.find(" " + name + " "), log.find("\"" + name + "\","));
  const std::size_t end = log.find('\n', begin);
  return end == std::string_view::npos ? std::string_view() : log.substr(begin, end - begin);
}

std::size_t number_behind(std::string_view text, std::string_view name) {
  std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  if (at == std::string_view::npos) return 0;
  std::size_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& flags) { start(flags, {}, nullptr); }

ServerProcess::ServerProcess(const std::vector<std::string>& flags, Descriptors limit) {
  start(flags, {}, &limit);
}

ServerProcess::ServerProcess(const std::vector<std::string>& flags, const Launch& launch) {
  start(flags, launch, nullptr);
}

void ServerProcess::start(const std::vector<std::string>& flags, const Launch& launch,
                          const Descriptors* limit) {
  std::vector<std::string> words{LOCKD_TEST_SERVER, "--port", "0", "--shutdown-timeout", "5",
                                 "--http-addr",     "off"};
  const auto given = [&](const char* flag) { return std::ranges::count(flags, flag) > 0; };
  if (!given("--wal") && !given("--etcd")) words.emplace_back("--memory");
  if (!launch.program.empty()) words.front() = launch.program;
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<std::string> environment = launch.environment;
  for (std::string& setting : our_environment()) environment.push_back(std::move(setting));
  std::function<void()> set_limit;
  if (limit != nullptr) {
    set_limit = [bounds = rlimit{.rlim_cur = limit->soft, .rlim_max = limit->hard}] {
      ::setrlimit(RLIMIT_NOFILE, &bounds);
    };
  }
  log_ = new_file();
  Descriptor stuck;
  if (launch.log_is_stuck) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) give_up("no pipe");
    pipe_ = Descriptor(ends[0]);
    stuck = Descriptor(ends[1]);
  }
  pid_ = spawn({.words = std::move(words),
                .environment = std::move(environment),
                .errors = stuck ? stuck.get() : log_,
                .in_child = set_limit});
  await_port(launch.may_refuse);
  if (pipe_) fill_pipe();
}

// What is there now belongs to the log.
void ServerProcess::read_pipe() const {
  std::array<char, 4096> bytes{};
  pollfd readable{pipe_.get(), POLLIN, 0};
  while (::poll(&readable, 1, 0) > 0) {
    const ssize_t size = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (size <= 0 || ::write(log_, bytes.data(), static_cast<std::size_t>(size)) != size) return;
  }
}

// By a descriptor of its own, which does not wait, while that of the server does.
void ServerProcess::fill_pipe() const {
  const std::string path = "/proc/self/fd/" + std::to_string(pipe_.get());
  const Descriptor end(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string page(4096, 'x');
  while (::write(end.get(), page.data(), page.size()) > 0) continue;
}

void ServerProcess::await_port(bool may_refuse) {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  while (SteadyClock::now() < deadline && !has_ended()) {
    if (pipe_) read_pipe();
    const std::string text = log();
    if (const std::string_view line = line_of(text, "listening"); !line.empty()) {
      port_ = static_cast<std::uint16_t>(number_behind(line, "port"));
      return;
    }
    std::this_thread::sleep_for(1ms);
  }
  if (!may_refuse || !ended_) give_up("the server does not start: " + log());
}

std::uint16_t ServerProcess::http_port() const {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  while (SteadyClock::now() < deadline) {
    const std::string text = log();
    if (const std::string_view line = line_of(text, "listening http"); !line.empty()) {
      return static_cast<std::uint16_t>(number_behind(line, "port"));
    }
    std::this_thread::sleep_for(1ms);
  }
  give_up("the server does not serve HTTP: " + log());
}

bool ServerProcess::has_ended() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) != 0;
  return ended_;
}

void ServerProcess::terminate() const { ::kill(pid_, SIGTERM); }

void ServerProcess::kill() {
  EXPECT_FALSE(has_ended()) << "the server had ended by itself: wait status " << status_;
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
  ended_ = true;
}

int ServerProcess::await_exit() {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  while (!has_ended()) {
    if (SteadyClock::now() > deadline) {
      ADD_FAILURE() << "the server does not stop";
      kill();
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

ServerProcess::~ServerProcess() {
  if (!ended_) {
    terminate();
    EXPECT_EQ(await_exit(), 0);
  }
  if (testing::Test::HasFailure()) {
    const std::string text = log();
    const std::size_t shown = std::min(text.size(), kLogShown);
    std::fprintf(stderr, "--- the end of the server's log\n%s---\n",
                 text.c_str() + text.size() - shown);
  }
  ::close(log_);
}

std::size_t ServerProcess::descriptors() const {
  const fs::directory_iterator all("/proc/" + std::to_string(pid_) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t ServerProcess::await_descriptors(std::size_t count) const {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  std::size_t now = descriptors();
  while (now > count && SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
    now = descriptors();
  }
  return now;
}

std::chrono::milliseconds ServerProcess::cpu_time() const {
  // utime and stime are the 12th and 13th field behind the name, which ends with a parenthesis.
  const std::string stat = proc("stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  long user = 0;
  long system = 0;
  fields >> user >> system;
  return std::chrono::milliseconds((user + system) * 1000 / ::sysconf(_SC_CLK_TCK));
}

std::size_t ServerProcess::sleeps() const {
  std::size_t all = 0;
  const fs::path process = "/proc/" + std::to_string(pid_);
  for (const auto& thread : fs::directory_iterator(process / "task")) {
    const std::string file = "task/" + thread.path().filename().string() + "/status";
    all += number_behind(proc(file), "voluntary_ctxt_switches:");
  }
  return all;
}

std::vector<std::size_t> ServerProcess::watched_by_loops() const {
  std::vector<std::size_t> counts;
  const fs::path process = "/proc/" + std::to_string(pid_);
  for (const fs::directory_entry& entry : fs::directory_iterator(process / "fd")) {
    std::error_code closed_meanwhile;
    if (fs::read_symlink(entry.path(), closed_meanwhile) != "anon_inode:[eventpoll]") continue;
    std::ifstream watched(process / "fdinfo" / entry.path().filename());
    std::size_t count = 0;
    for (std::string line; std::getline(watched, line);) {
      if (line.starts_with("tfd:")) ++count;
    }
    counts.push_back(count);
  }
  return counts;
}

std::size_t ServerProcess::descriptor_limit() const {
  return number_behind(proc("limits"), "Max open files");
}

std::string ServerProcess::log(std::size_t from) const { return read_file(log_, from); }

std::string ServerProcess::reload() const {
  const std::size_t before = log().size();
  ::kill(pid_, SIGHUP);
  const auto deadline = SteadyClock::now() + ClientSocket::kPatience;
  while (SteadyClock::now() < deadline) {
    const std::string said = log(before);
    if (said.find("reloaded") != std::string::npos && said.ends_with('\n')) return said;
    std::this_thread::sleep_for(5ms);
  }
  return "";
}

bool ServerProcess::comes_to_log(std::string_view words) const {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  while (log().find(words) == std::string::npos) {
    if (SteadyClock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

std::size_t ServerProcess::status_value(std::string_view name) const {
  return number_behind(proc("status"), name);
}

std::string ServerProcess::proc(std::string_view file) const {
  std::ifstream in("/proc/" + std::to_string(pid_) + "/" + std::string(file));
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace lockd
