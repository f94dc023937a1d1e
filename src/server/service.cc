#include "server/service.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "server/log.h"
#include "server/server.h"
#include "server/systemd.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr int kNoSignal = 0;

// Signals are taken by the first thread, where it waits for them, and by no other.
class Signals {
 public:
  Signals() {
    sigemptyset(&waited_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&waited_, signal);
    sigset_t blocked = waited_;
    sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  }

  // The next one, or kNoSignal when none comes in time.
  int next(std::chrono::microseconds within) const {
    timespec time{};
    time.tv_sec = within.count() / 1'000'000;
    time.tv_nsec = within.count() % 1'000'000 * 1000;
    return std::max(::sigtimedwait(&waited_, nullptr, &time), kNoSignal);
  }

 private:
  sigset_t waited_;
};

class Service {
 public:
  Service(const Options& options, const Surroundings& surroundings)
      : options_(options), systemd_(surroundings), server_(options) {}

  int run() {
    if (const std::string error = server_.start(systemd_.sockets()); !error.empty()) {
      std::fprintf(stderr, "dflockd: %s\n", error.c_str());
      return EXIT_FAILURE;
    }
    log_event(LogLevel::info, "listening",
              {{"host", options_.host.empty() ? "*" : options_.host},
               {"port", std::to_string(server_.port())},
               {"threads", std::to_string(options_.threads)},
               {"tls", options_.tls_cert.empty() ? "no" : "yes"},
               {"protected", options_.line_is_protected() ? "yes" : "no"}});
    systemd_.ready();
    while (wait(1h) != Asked::stop) {
    }
    stop();
    return EXIT_SUCCESS;
  }

 private:
  enum class Asked { nothing, stop };

  // For a signal, for as long as `within` or until the watchdog wants to hear something.
  Asked wait(std::chrono::microseconds within) {
    if (systemd_.watchdog() > 0us) within = std::min(within, systemd_.watchdog() / 4);
    const int signal = signals_.next(within);
    if (signal == SIGHUP) {
      reload();
    } else if (signal != kNoSignal) {
      return Asked::stop;
    }
    // A loop that hangs is a server that hangs, however well this thread may be.
    if (systemd_.watchdog() > 0us && server_.is_turning()) systemd_.alive();
    return Asked::nothing;
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

  void stop() {
    log_event(LogLevel::info, "stopping");
    systemd_.stopping();
    server_.drain();
    const auto deadline = SteadyClock::now() + options_.shutdown_timeout;
    const bool forever = options_.shutdown_timeout == Duration::zero();
    while (!server_.is_drained() && (forever || SteadyClock::now() < deadline)) {
      if (wait(20ms) == Asked::stop) break;  // asked twice: at once
    }
    server_.stop();
    log_event(LogLevel::info, "stopped");
  }

  const Options& options_;
  const Signals signals_;
  const Systemd systemd_;
  Server server_;
};

}  // namespace

int serve(const Options& options, const Surroundings& surroundings) {
  return Service(options, surroundings).run();
}

}  // namespace lockd
