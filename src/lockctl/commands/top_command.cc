// lockctl top: asks a server again and again on one thread, and draws on another.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "lockctl/commands/commands.h"
#include "lockctl/http/http_cluster.h"
#include "lockctl/http/json.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/output/terminal.h"
#include "lockctl/output/top_view.h"
#include "lockctl/run/signals.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;

// More than any screen has lines.
constexpr std::size_t kKeysMax = 500;

// Takes snapshots of the server: over HTTP if there is an address, else over the line port.
class Observer {
 public:
  explicit Observer(const Settings& settings) : settings_(settings) {
    if (!settings.http.empty()) {
      http_ = std::make_unique<HttpCluster>(settings.http, settings.connect);
    }
  }

  std::string server() const {
    if (http_ != nullptr) return http_->address().to_string();
    std::string names;
    for (const client::Address& server : settings_.servers) {
      names += (names.empty() ? "" : ",") + server.to_string();
    }
    return names;
  }

  Snapshot take(std::stop_token stop) {
    Snapshot taken = http_ != nullptr ? over_http() : over_line(std::move(stop));
    taken.at = std::chrono::steady_clock::now();
    return taken;
  }

  void interrupt() {
    if (http_ != nullptr) http_->interrupt();
  }

 private:
  Snapshot over_http() {
    const HttpReply overview = http_->get("/v1/overview");
    require(overview);
    const HttpReply locks = http_->get("/v1/locks?order=waiters&limit=" + std::to_string(kKeysMax));
    require(locks);
    Snapshot taken;
    taken.view = overview_view(parse_json(overview.body, server()));
    const auto page = parse_json(locks.body, server());
    for (const auto& lock : array_of(page, "locks")) taken.keys.push_back(key_view(lock));
    return taken;
  }

  Snapshot over_line(std::stop_token stop) {
    Snapshot taken;
    for (const client::Address& server : servers_to_ask(settings_, stop)) {
      const auto json = parse_json(fetch_stats(settings_, server, stop), server.to_string());
      add(taken.view, stats_view(json));
      for (KeyView& key : keys_of_stats(json)) {
        if (!key.idle_for) taken.keys.push_back(std::move(key));
      }
    }
    sort_by_waiters(taken.keys);
    if (taken.keys.size() > kKeysMax) taken.keys.resize(kKeysMax);
    return taken;
  }

  static void add(ServerView& sum, const ServerView& one) {
    sum.connections += one.connections;
    sum.keys += one.keys;
    sum.keys_idle += one.keys_idle;
    sum.locks_held += one.locks_held;
    sum.lock_waiters += one.lock_waiters;
    sum.semaphore_holders += one.semaphore_holders;
    sum.semaphore_waiters += one.semaphore_waiters;
    sum.listeners += one.listeners;
  }

  const Settings& settings_;
  std::unique_ptr<HttpCluster> http_;
};

// Keeps the picture up to date, on a thread of its own.
class Sampler {
 public:
  Sampler(const Settings& settings, Duration interval)
      : observer_(settings),
        interval_(interval),
        thread_([this](std::stop_token stop) { run(stop); }) {}
  ~Sampler() {
    thread_.request_stop();
    observer_.interrupt();
  }

  // Readable when there is a newer picture.
  int descriptor() const { return news_.descriptor(); }
  TopPicture picture() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(news_.descriptor(), &count, sizeof count);
    const std::lock_guard guard(mutex_);
    return picture_;
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      sample(stop);
      std::unique_lock lock(mutex_);
      pause_.wait_for(lock, stop, interval_, [] { return false; });
    }
  }

  void sample(const std::stop_token& stop) {
    std::optional<Snapshot> taken;
    std::string trouble;
    try {
      taken = observer_.take(stop);
    } catch (const Failure& failure) {
      trouble = failure.what();
    }
    const std::lock_guard guard(mutex_);
    picture_.server = observer_.server();
    picture_.trouble = std::move(trouble);
    if (taken) {
      picture_.before = std::exchange(picture_.now, std::move(taken));
    }
    news_.set();
  }

  Observer observer_;
  const Duration interval_;
  EventFd news_;
  std::mutex mutex_;
  std::condition_variable_any pause_;
  TopPicture picture_;   // guarded by the mutex
  std::jthread thread_;  // last: it uses the others
};

// The exit status, if the signal is one to end by.
std::optional<int> take(const ReceivedSignal& signal, FullScreen& screen) {
  switch (signal.number) {
    case SIGCHLD:
    case SIGWINCH:
    case SIGCONT: return std::nullopt;
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      screen.leave();
      ::kill(::getpid(), SIGSTOP);
      screen.enter();
      return std::nullopt;
    case SIGINT: return kExitOk;
    default: return kExitSignal + signal.number;
  }
}

}  // namespace

int execute_top(const Invocation& invocation) {
  constexpr Duration kShortest = 100ms;
  const Duration interval =
      std::clamp<Duration>(invocation.arguments.seconds("interval").value_or(1s), kShortest, 1h);
  const SignalSource signals;
  FullScreen screen;
  Sampler sampler(invocation.settings, interval);
  TopPicture picture;
  for (;;) {
    screen.show(draw(picture, screen.size(), invocation.output.style()));
    pollfd watched[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                        {.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                        {.fd = sampler.descriptor(), .events = POLLIN, .revents = 0}};
    ::poll(watched, std::size(watched), -1);
    while (const auto signal = signals.next()) {
      if (const auto status = take(*signal, screen)) return *status;
    }
    if ((watched[0].revents & (POLLHUP | POLLERR)) != 0) return kExitSignal + SIGHUP;
    if (const char key = screen.key(); key == 'q' || key == 'Q' || key == '\x04') return kExitOk;
    picture = sampler.picture();
  }
}

}  // namespace lockd::cli
