#include "server/daemon.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/version.h"
#include "server/log.h"
#include "server/server.h"
#include "server/settings/option_table.h"
#include "server/systemd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// Fewer are not worth it: 4 MB if each has kept a page from going.
constexpr std::uint64_t kTrimThreshold = 1'000;

constexpr int kNoSignal = 0;
constexpr std::chrono::microseconds kBetweenLives = 100ms;
constexpr int kJournalFailed = SIGUSR1;  // sent to ourselves

// Signals are taken by the first thread, where it waits for them, and by no other. A write that
// fails says so by itself: no signal for that ends the process.
class Signals {
 public:
  Signals() {
    sigemptyset(&waited_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, kJournalFailed}) sigaddset(&waited_, signal);
    sigset_t blocked = waited_;
    for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  }

  // The next one, or kNoSignal when none comes in time. What somebody else says of our journal does
  // not count.
  int next(std::chrono::microseconds within) const {
    timespec time{};
    time.tv_sec = within.count() / 1'000'000;
    time.tv_nsec = within.count() % 1'000'000 * 1000;
    siginfo_t from{};
    const int signal = std::max(::sigtimedwait(&waited_, &from, &time), kNoSignal);
    return signal == kJournalFailed && from.si_pid != ::getpid() ? kNoSignal : signal;
  }

 private:
  sigset_t waited_;
};

// A drain that is over within the delay needs no explanation.
constexpr auto kDrainLogDelay = 200ms;
constexpr auto kDrainLogInterval = 5s;

class Daemon {
 public:
  enum class ExitReason { stopped, failed, begins_anew };

  Daemon(const Options& options, const config::Environment& environment, const Signals& signals,
         const ClusterSupport& support)
      : options_(options),
        signals_(signals),
        systemd_(environment),
        server_(
            options, [] { ::kill(::getpid(), kJournalFailed); }, support) {}

  ExitReason run() {
    if (const std::string error = server_.start(systemd_.sockets()); !error.empty()) {
      complain(error);
      return ExitReason::failed;
    }
    if (server_.port() != 0) {
      log_event(LogLevel::info, "listening",
                {{"host", options_.host.empty() ? "*" : options_.host},
                 {"port", server_.port()},
                 {"threads", options_.threads},
                 {"tls", !options_.tls_cert.empty()},
                 {"protected", options_.line_is_protected()}});
    }
    if (server_.http_port() != 0) log_http();
    systemd_.ready();
    Asked asked = Asked::nothing;
    while (asked == Asked::nothing) {
      asked = wait(std::chrono::duration_cast<std::chrono::microseconds>(options_.gc_interval));
      trim_heap();
      PeerEvent::log_left_out(SteadyClock::now());
    }
    if (asked == Asked::stop) asked = drain();
    server_.stop();
    if (asked == Asked::fail && begins_anew()) return ExitReason::begins_anew;
    log_event(LogLevel::info, "stopped");
    return asked == Asked::fail ? ExitReason::failed : ExitReason::stopped;
  }

 private:
  enum class Asked { nothing, stop, fail };

  // For a signal, for as long as `within` or until the watchdog wants to hear something.
  Asked wait(std::chrono::microseconds within) {
    if (systemd_.watchdog() > 0us) within = std::min(within, systemd_.watchdog() / 4);
    const int signal = signals_.next(within);
    if (signal == SIGHUP) reload();
    if (signal == SIGTERM || signal == SIGINT) return Asked::stop;
    if (signal == kJournalFailed) {
      if (resigned_) return Asked::stop;
      if (server_.cluster() == nullptr) {
        log_event(LogLevel::error,
                  "the journal has failed: nothing can be kept, so nothing is served");
      }
      return Asked::fail;
    }
    // A loop that hangs is a server that hangs, however well this thread may be.
    if (systemd_.watchdog() > 0us && server_.is_turning()) systemd_.alive();
    return Asked::nothing;
  }

  // The memory of keys, connections and subscriptions that are gone stays with the allocator, for
  // the next ones. When far fewer are left than there were, and no fewer than a while ago, it goes
  // back to the system.
  void trim_heap() {
    const std::uint64_t objects = server_.objects();
    const bool falling = objects < std::exchange(last_objects_, objects);
    most_objects_ = std::max(most_objects_, objects);
    if (most_objects_ < kTrimThreshold || objects > most_objects_ / 2 || falling) return;
    ::malloc_trim(0);
    most_objects_ = objects;
  }

  void log_http() {
    const std::string& host = options_.http_addr.value_or(Endpoint{}).host;
    log_event(LogLevel::info, "listening http",
              {{"host", host.empty() ? "*" : host},
               {"port", server_.http_port()},
               {"tls", !options_.tls_cert.empty()},
               {"protected", options_.http_is_protected()}});
  }

  void reload() {
    systemd_.reloading();
    if (const std::string error = server_.reload(); !error.empty()) {
      log_event(LogLevel::error, "not reloaded: all stays as it was", {{"error", error}});
    } else {
      log_event(LogLevel::info, "reloaded");
    }
    systemd_.ready();
  }

  // What systemd has opened is closed by now: then it is systemd who starts it again.
  bool begins_anew() const {
    const ClusterJournal* const cluster = server_.cluster();
    return cluster != nullptr && !cluster->status().refused && systemd_.sockets().empty();
  }

  // Waits until no line connection holds anything, then until the last HTTP replies are sent; at
  // most --shutdown-timeout for both, and not beyond a second signal. In a cluster another server
  // may lead at once, and there is nothing more to wait for.
  Asked drain() {
    log_event(LogLevel::info, "stopping");
    systemd_.stopping();
    const auto began = SteadyClock::now();
    server_.drain();
    resigned_ = server_.cluster() != nullptr;
    server_.resign();
    Asked asked =
        wait_until_zero(began, {"1 connection still holds a lock", " connections still hold locks"},
                        [this] { return server_.line_connections(); });
    if (asked != Asked::nothing) return asked;
    server_.close_http();
    return wait_until_zero(
        began, {"1 connection still waits for a reply", " connections still wait for replies"},
        [this] { return server_.connections(); });
  }

  // What a drain waits for, in the log.
  struct DrainText {
    const char* one;
    const char* several;
  };

  template <typename Count>
  Asked wait_until_zero(SteadyClock::time_point began, DrainText text, Count connections) {
    const bool forever = options_.shutdown_timeout == Duration::zero();
    auto next_log = SteadyClock::now() + kDrainLogDelay;
    Asked asked = Asked::nothing;
    while (const std::uint64_t count = connections()) {
      const auto now = SteadyClock::now();
      const Duration left = options_.shutdown_timeout - Duration(now - began);
      if (!forever && left <= Duration::zero()) break;
      if (now >= next_log) {
        const std::string what = count == 1 ? text.one : std::to_string(count) + text.several;
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
        const std::string limit = forever ? "" : " up to " + std::to_string(seconds) + " s";
        log_event(LogLevel::info, "draining: " + what + "; waiting" + limit +
                                      " (a second signal stops the server now)");
        next_log = now + kDrainLogInterval;
      }
      asked = wait(20ms);
      if (asked != Asked::nothing) break;
    }
    return asked;
  }

  const Options& options_;
  const Signals& signals_;
  const Systemd systemd_;
  Server server_;
  std::uint64_t last_objects_ = 0;
  std::uint64_t most_objects_ = 0;  // since memory was last returned
  bool resigned_ = false;
};

void log_start(const Options& options) {
  const std::string_view journal = options.etcd.empty() ? options.wal : options.etcd_cluster;
  log_event(LogLevel::info, "starting",
            {{"program", ::program_invocation_short_name},
             {"version", kVersion},
             {"pid", ::getpid()},
             {"journal", journal.empty() ? "none" : journal}});
}

}  // namespace

int complain(const std::string& error) {
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_short_name, error.c_str());
  return EXIT_FAILURE;
}

int serve(const Options& options, const config::Environment& environment,
          const ClusterSupport& support) {
  const Signals signals;  // blocked before there is a second thread
  log_start(options);
  try {
    while (true) {
      switch (Daemon(options, environment, signals, support).run()) {
        case Daemon::ExitReason::stopped: return EXIT_SUCCESS;
        case Daemon::ExitReason::failed: return EXIT_FAILURE;
        case Daemon::ExitReason::begins_anew: break;
      }
      const int signal = signals.next(kBetweenLives);
      if (signal == SIGTERM || signal == SIGINT) return EXIT_SUCCESS;
      log_event(LogLevel::info, "begins anew");
    }
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}

}  // namespace lockd
