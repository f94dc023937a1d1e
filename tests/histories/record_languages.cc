// Records a history of clients in several languages on one server, while it is killed and stopped,
// connections break, and whole clients stand still.
//
//   record_languages FOLDER [--operations N] [--faults N] [--seconds N] [--seed N]
//
// HISTORIES_DRIVERS has a line for each language: its name, and the command that drives its client
// (drivers/README.md). The server, w, keeps a journal, and a connection that ends releases nothing:
// what a client believes rests on its lease alone. After --seconds it is over, whatever there is.
// FOLDER/history.jsonl is the history.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "histories/chaos_proxy.h"
#include "histories/history_file.h"
#include "histories/recorder.h"
#include "histories/recording.h"
#include "histories/server_under_test.h"

namespace {

using namespace lockd;
using namespace lockd::histories;

struct Order {
  std::string folder;
  std::uint64_t operations = 200'000;
  std::uint64_t faults = 100;
  std::uint64_t seconds = 160;
  std::uint64_t seed = 0;
};

constexpr std::uint32_t kProcsOfDriver = 1000;

// A process that drives one client. Its lines are read by a thread of its own.
class Driver {
 public:
  Driver(std::string name, const std::string& command, std::atomic<std::size_t>& operations)
      : name_(std::move(name)), operations_(operations) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("there is no pipe for " + name_);
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    stop_ = in[1];
    reader_ = std::thread([this, from = ::fdopen(out[0], "r")] { read(from); });
  }
  ~Driver() { end(); }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const std::string& name() const { return name_; }
  std::size_t count() const { return count_; }
  void pause() const { ::kill(pid_, SIGSTOP); }
  void resume() const { ::kill(pid_, SIGCONT); }

  // Whether it ended well. All its lines are there then.
  bool end() {
    if (pid_ == 0) return true;
    ::close(stop_);
    reader_.join();
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  const std::string& lines() const { return lines_; }

 private:
  void read(std::FILE* from) {
    char* line = nullptr;
    std::size_t size = 0;
    for (ssize_t length; (length = ::getline(&line, &size, from)) > 0;) {
      lines_.append(line, static_cast<std::size_t>(length));
      ++count_;
      ++operations_;
    }
    std::free(line);
    std::fclose(from);
  }

  const std::string name_;
  std::atomic<std::size_t>& operations_;
  std::atomic<std::size_t> count_ = 0;
  pid_t pid_ = 0;
  int stop_ = -1;  // closed, it ends
  std::string lines_;
  std::thread reader_;
};

// By how much CLOCK_MONOTONIC is behind, for whoever has no other.
Instant asleep() {
  timespec monotonic{};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return now() - (Instant{monotonic.tv_sec} * kSecond + monotonic.tv_nsec);
}

class Run {
 public:
  explicit Run(const Order& order)
      : order_(order),
        random_(order.seed),
        recording_(order.seed),
        server_(settings()),
        proxy_(random_()),
        http_proxy_(random_()) {}

  void play() {
    const std::uint16_t port = proxy_.listen(server_.settings().number, [this] {
      const ServerUnderTest::Place place = server_.place();
      return ChaosProxy::Upstream{place.line_port, place.life};
    });
    const std::uint16_t http_port = http_proxy_.listen(server_.settings().number, [this] {
      const ServerUnderTest::Place place = server_.place();
      return ChaosProxy::Upstream{place.http_port, place.life};
    });
    server_.start();
    proxy_.start();
    http_proxy_.start();
    ::setenv("HISTORIES_HTTP_PORT", std::to_string(http_port).c_str(), 1);
    add_drivers(port);
    add_blows();
    be_broken();
    come_to_rest();
  }

 private:
  ServerUnderTest::Settings settings() {
    const std::string directory = order_.folder + "/w";
    std::filesystem::create_directories(directory);
    return {.name = "w",
            .number = recording_.add_server("w", false),
            .auto_release = false,
            .directory = directory};
  }

  void add_drivers(std::uint16_t port) {
    ::setenv("HISTORIES_ASLEEP_NS", std::to_string(asleep()).c_str(), 1);
    const char* const commands = std::getenv("HISTORIES_DRIVERS");
    std::istringstream lines(commands == nullptr ? "" : commands);
    std::string name;
    std::string command;
    while (lines >> name && std::getline(lines, command)) {
      const std::size_t proc = kProcsOfDriver * (drivers_.size() + 1);
      command += " " + std::to_string(port) + " " + std::to_string(proc) + " " +
                 std::to_string(random_() % 1'000'000);
      drivers_.push_back(std::make_unique<Driver>(name, command, operations_));
    }
    if (drivers_.empty()) throw std::runtime_error("HISTORIES_DRIVERS names none");
  }

  void add_blows() {
    blows_.emplace_back([this] { end_life("kill9", [this] { server_.kill(); }); });
    blows_.emplace_back([this] { end_life("term", [this] { server_.stop(); }); });
    blows_.emplace_back([this] {
      const Instant begun = now();
      server_.freeze();
      pause_ms(50, 1200);
      server_.thaw();
      note(kStop, begun);
    });
    // For longer than some leases last, too.
    blows_.emplace_back([this] {
      const Driver& driver = *drivers_[random_() % drivers_.size()];
      const Instant begun = now();
      driver.pause();
      pause_ms(100, 4000);
      driver.resume();
      note("client_pause", begun);
    });
    for (std::size_t i = 0; i < ChaosProxy::kFaults; ++i) {
      blows_.emplace_back([this, fault = static_cast<ChaosProxy::LinkFault>(i)] {
        const Instant begun = now();
        ChaosProxy& proxy = random_() % 2 == 0 ? proxy_ : http_proxy_;
        proxy.inject(fault, server_.settings().number, 2, between(100, 2000) * 1'000'000);
        note(ChaosProxy::name_of(fault), begun);
      });
    }
  }

  void note(std::string_view fault, Instant begun) {
    recording_.note_fault(fault, server_.settings().number, server_.place().life, begun, now());
  }

  void end_life(std::string_view name, const std::function<void()>& how) {
    const Instant begun = now();
    how();
    note(name, begun);
    if (random_() % 3 == 0) pause_ms(10, 1500);
    server_.start();
    note(kRestart, begun);
  }

  void be_broken() {
    const Instant begun = now();
    const Instant over = begun + static_cast<Instant>(order_.seconds) * kSecond;
    while (now() < over &&
           (operations_ < order_.operations || recording_.faults() < order_.faults)) {
      if (next_ % blows_.size() == 0) std::shuffle(blows_.begin(), blows_.end(), random_);
      blows_[next_++ % blows_.size()]();
      pause_ms(100, 400);
    }
    pause_ms(2500, 2500);  // until the last stall in the network is over
    recording_.note_heal();
    std::printf("%.1f s under faults\n", static_cast<double>(now() - begun) / kSecond);
  }

  void come_to_rest() {
    std::string text = R"({"f":"server","srv":"w","auto_release":false})"
                       "\n";
    for (const auto& driver : drivers_) {
      if (!driver->end()) throw std::runtime_error("the driver of " + driver->name() + " failed");
      if (driver->count() == 0) throw std::runtime_error(driver->name() + " did nothing");
      std::printf("%s: %zu operations\n", driver->name().c_str(), driver->count());
      text += driver->lines();
    }
    server_.stop();
    History history = parse_history(text, "the drivers");
    const History& faults = recording_.finish();
    history.seed = order_.seed;
    history.faults = faults.faults;
    history.operations.insert(history.operations.end(), faults.operations.begin(),
                              faults.operations.end());
    write_history(history, order_.folder + "/history.jsonl");
  }

  void pause_ms(std::int64_t least, std::int64_t most) {
    std::this_thread::sleep_for(std::chrono::milliseconds(between(least, most)));
  }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  const Order order_;
  std::mt19937_64 random_;
  Recording recording_;
  ProcessUnderTest server_;
  ChaosProxy proxy_;       // to the line port
  ChaosProxy http_proxy_;  // to the HTTP port, which HISTORIES_HTTP_PORT names to the drivers
  std::atomic<std::size_t> operations_ = 0;
  std::vector<std::unique_ptr<Driver>> drivers_;
  std::vector<std::function<void()>> blows_;
  std::size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Order order;
  return record(argc, argv, order.folder, order.seed,
                {{"--operations", &order.operations},
                 {"--faults", &order.faults},
                 {"--seconds", &order.seconds}},
                [&] { Run(order).play(); });
}
