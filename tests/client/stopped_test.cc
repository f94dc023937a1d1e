// Processes that are stopped beyond their leases, as by SIGSTOP, a debugger or a busy machine; and
// servers that are killed or stop under those who wait.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/fenced_store.h"
#include "journal/testing/temporary_directory.h"
#include "lockd/client/client.h"
#include "support/lying_server.h"
#include "support/process.h"
#include "support/server_process.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// The program `actor`, whose output can be read line by line.
class Actor {
 public:
  // It has the descriptors `kept` of ours.
  explicit Actor(std::vector<std::string> arguments, std::vector<int> kept = {}) {
    arguments.insert(arguments.begin(), LOCKD_CLIENT_ACTOR);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = spawn({.words = std::move(arguments),
                  .environment = our_environment(),
                  .output = ends[1],
                  .errors = STDERR_FILENO,
                  .kept = std::move(kept)});
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~Actor() {
    if (!ended_) kill_and_wait(pid_);
    std::fclose(output_);
  }
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  // Empty at the end.
  std::string read_line() {
    std::string line;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_)) {
      line.push_back(static_cast<char>(c));
    }
    return line;
  }
  void stop() {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    stopped_ = WIFSTOPPED(status);
    EXPECT_TRUE(stopped_);
  }
  void go_on() {
    stopped_ = false;
    ::kill(pid_, SIGCONT);
  }
  // Looks what has become of it.
  void look() {
    int status = 0;
    if (ended_ || ::waitpid(pid_, &status, WNOHANG | WUNTRACED) != pid_) return;
    stopped_ = WIFSTOPPED(status);
    ended_ = !stopped_;
    if (ended_) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    }
  }
  bool is_stopped() const { return stopped_; }
  bool has_ended() const { return ended_; }

 private:
  pid_t pid_ = -1;
  std::FILE* output_ = nullptr;
  bool stopped_ = false;
  bool ended_ = false;
};

ClientOptions options(const ServerProcess& server) {
  return {.servers = {{"127.0.0.1", server.port()}},
          .connect = {.connect_timeout = 60s, .reply_timeout = 60s}};
}

TEST(Stopped, AHolderFindsOutBeforeItBelievesAgain) {
  const ServerProcess server({"--host", "127.0.0.1"});
  Client client(options(server));
  Actor holder({"hold", std::to_string(server.port())});
  ASSERT_EQ(holder.read_line(), "held");
  holder.stop();
  // Its lease is over when somebody else has the lock.
  const auto next = client.acquire({.keys = "k", .wait = 60s});
  const auto acquired = BootClock::now();
  ASSERT_TRUE(next) << describe(next);
  holder.go_on();
  const std::string said = holder.read_line();
  ASSERT_TRUE(said.starts_with("last held ")) << said;
  const BootClock::time_point last_held{BootClock::duration(std::stoll(said.substr(10)))};
  EXPECT_LT(last_held, acquired) << "asked after the end, it said that it held";
  EXPECT_EQ(holder.read_line(), "told " + std::string(describe(Outcome::unsure)));
  EXPECT_TRUE(eventually([&] {
    holder.look();
    return holder.has_ended();
  }));
  EXPECT_TRUE(next->is_held()) << "the one that came back has not released what is ours";
}

// Two writers that are stopped, three times each, between their look at the lock and their write,
// until the other has written.
struct WriterStats {
  std::uint64_t confirmed = 0;
  std::uint64_t value = 0;
  int overtaken = 0;  // how often somebody wrote while the other was stopped
};

WriterStats run_writers(bool checks) {
  const ServerProcess server({"--host", "127.0.0.1"});
  const int memory = ::memfd_create("store", 0);
  if (memory < 0 || ::ftruncate(memory, sizeof(FencedStore)) != 0) std::abort();
  FencedStore* const store = new (FencedStore::map(memory)) FencedStore;
  store->checks = checks;
  const auto writer = [&](unsigned seed) {
    return std::vector<std::string>{"write", std::to_string(server.port()), std::to_string(memory),
                                    std::to_string(seed)};
  };
  std::array<Actor, 2> writers{Actor(writer(1), {memory}), Actor(writer(2), {memory})};
  std::array<std::uint64_t, 2> writes_when_stopped{};
  WriterStats stats;
  EXPECT_TRUE(eventually(
      [&] {
        for (std::size_t i = 0; i < 2; ++i) {
          Actor& one = writers[i];
          Actor& other = writers[1 - i];
          const bool was_stopped = one.is_stopped();
          one.look();
          if (one.is_stopped() && !was_stopped) writes_when_stopped[i] = store->writes;
          if (!one.is_stopped()) continue;
          const bool overtaken = store->writes > writes_when_stopped[i];
          if (overtaken) ++stats.overtaken;
          // If both are stopped, or the other is done, nobody would ever write.
          if (overtaken || other.is_stopped() || other.has_ended()) one.go_on();
        }
        return writers[0].has_ended() && writers[1].has_ended();
      },
      240s));
  stats.confirmed = store->confirmed;
  stats.value = store->value();
  ::munmap(store, sizeof(FencedStore));
  ::close(memory);
  return stats;
}

TEST(Stopped, WritersUnderFencesLoseNoUpdate) {
  const WriterStats stats = run_writers(/*checks=*/true);
  EXPECT_GT(stats.overtaken, 0) << "nothing was tried";
  EXPECT_GT(stats.confirmed, 60u);
  EXPECT_EQ(stats.value, stats.confirmed);
}

TEST(Stopped, WritersWithoutFencesLoseUpdates) {
  const WriterStats stats = run_writers(/*checks=*/false);
  EXPECT_GT(stats.overtaken, 0) << "nothing was tried";
  EXPECT_LT(stats.value, stats.confirmed) << "the store was not needed, or the test does not bite";
}

// --- a server that is stopped, for good ---

// A server with a journal, killed or asked to stop while somebody waits there, and started again.
TEST(Stopped, AWaitGoesOnWhenTheServerIsKilledOrStopsAndComesBack) {
  for (const bool is_killed : {true, false}) {
    const TemporaryDirectory journal;
    std::vector<std::string> flags{"--wal", journal.path()};
    std::optional<ServerProcess> server(std::in_place, flags);
    const Address address{"127.0.0.1", server->port()};
    flags.insert(flags.end(), {"--port", std::to_string(address.port)});
    Client client({.servers = {address}, .connect = {.connect_timeout = 60s}});
    // Several keys are held by a name: no connection that ends releases them.
    auto first = client.acquire({.keys = std::vector<KeyItem>{"k", "j"}, .lease = 60s});
    ASSERT_TRUE(first) << describe(first);
    Result<HeldLock> got;
    std::atomic<bool> interrupted = false;
    std::jthread waiter([&](const std::stop_token& stop) {
      LockRequest request{.keys = "k", .wait = 120s};
      request.on_interrupted = [&](const Status&) { interrupted = true; };
      got = client.acquire(request, stop);
    });
    const auto is_waited_for = [&] {
      return server->connect().ask(request("stats", "", "")).find("\"waiters\":1") !=
             std::string::npos;
    };
    ASSERT_TRUE(eventually(is_waited_for));
    if (is_killed) {
      server->kill();
    } else {
      server->terminate();
      EXPECT_EQ(server->await_exit(), 0);
    }
    server.emplace(flags);
    ASSERT_TRUE(eventually(is_waited_for)) << "behind what is held still";
    EXPECT_TRUE(interrupted);
    EXPECT_TRUE(first->is_held());
    EXPECT_TRUE(first->release());
    waiter.join();
    ASSERT_TRUE(got) << describe(got);
    EXPECT_TRUE(got->queued_again());
  }
}

}  // namespace
}  // namespace lockd::client
