// dflockd: locks and semaphores over the line protocol.
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "server/load_options.h"
#include "server/log.h"
#include "server/option_text.h"
#include "server/server.h"

namespace lockd {
namespace {

using SteadyClock = std::chrono::steady_clock;

// The signals that end the server are taken by the first thread, where it waits for them.
sigset_t block_signals() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGTERM);
  sigaddset(&stops, SIGINT);
  sigset_t blocked = stops;
  sigaddset(&blocked, SIGPIPE);
  sigaddset(&blocked, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  return stops;
}

bool stop_signal_comes(const sigset_t& stops, std::chrono::milliseconds within) {
  timespec time{};
  time.tv_sec = within.count() / 1000;
  time.tv_nsec = within.count() % 1000 * 1'000'000;
  return ::sigtimedwait(&stops, nullptr, &time) > 0;
}

int complain(const std::string& error) {
  std::fprintf(stderr, "dflockd: %s\n", error.c_str());
  return EXIT_FAILURE;
}

// What is in the table of settings and not in this server must not be passed over in silence.
std::string what_is_missing(const Options& options) {
  if (!options.tls_cert.empty() || !options.tls_client_ca.empty()) return "--tls-cert";
  if (options.http_addr.has_value()) return "--http-addr";
  if (!options.wal.empty()) return "--wal";
  return {};
}

int serve(const Options& options) {
  const sigset_t stops = block_signals();
  Server server(options);
  if (const std::string error = server.start(); !error.empty()) return complain(error);
  log_event(LogLevel::info, "listening",
            {{"host", options.host.empty() ? "*" : options.host},
             {"port", std::to_string(server.port())},
             {"threads", std::to_string(options.threads)},
             {"protected", options.line_is_protected() ? "yes" : "no"}});
  while (!stop_signal_comes(stops, std::chrono::hours(1))) {
  }
  log_event(LogLevel::info, "stopping");
  server.drain();
  const auto deadline = SteadyClock::now() + options.shutdown_timeout;
  const bool forever = options.shutdown_timeout == Duration::zero();
  while (!server.is_drained() && (forever || SteadyClock::now() < deadline)) {
    if (stop_signal_comes(stops, std::chrono::milliseconds(20))) break;  // asked twice: at once
  }
  server.stop();
  log_event(LogLevel::info, "stopped");
  return EXIT_SUCCESS;
}

int run(int argc, char** argv) {
  Loaded loaded = load_options(Flavour::dflockd, {argv + 1, argv + argc}, process_surroundings());
  if (!loaded.error.empty()) return complain(loaded.error);
  scrub_secrets(loaded);
  switch (loaded.action) {
    case Action::help: return std::fputs(help_text(Flavour::dflockd).c_str(), stdout) < 0;
    case Action::version: return std::puts("dflockd " LOCKD_VERSION) < 0;
    case Action::print_config: return std::fputs(config_text(loaded).c_str(), stdout) < 0;
    case Action::check_config:
    case Action::serve: break;
  }
  set_up_log(loaded.options.log_level, loaded.options.log_format);
  for (const std::string& warning : loaded.warnings) log_event(LogLevel::warn, warning);
  if (const std::string missing = what_is_missing(loaded.options); !missing.empty()) {
    return complain(missing + " is not supported by this version");
  }
  return loaded.action == Action::check_config ? EXIT_SUCCESS : serve(loaded.options);
}

}  // namespace
}  // namespace lockd

int main(int argc, char** argv) { return lockd::run(argc, argv); }
