#include "histories/server_under_test.h"

#include <signal.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "histories/recording.h"
#include "server/log.h"
#include "server/server.h"
#include "support/test_authority.h"

namespace lockd::histories {

ServerUnderTest::Place ServerUnderTest::place(std::size_t node) const {
  const std::lock_guard lock(mutex_);
  return nodes_[node].place;
}

bool ServerUnderTest::is_ending(std::uint32_t life, std::size_t node) const {
  const std::lock_guard lock(mutex_);
  return life <= nodes_[node].ended;
}

void ServerUnderTest::goes_down(std::size_t node) {
  const std::lock_guard lock(mutex_);
  Node& down = nodes_[node];
  down.ended = down.place.life;
  down.place.line_port = 0;
  down.place.http_port = 0;
}

void ServerUnderTest::begins_to_end(std::size_t node) {
  const std::lock_guard lock(mutex_);
  Node& ending = nodes_[node];
  ending.ended = ending.place.life;
  ending.place.line_port = 0;
}

void ServerUnderTest::came_up(std::uint16_t line_port, std::uint16_t http_port, std::size_t node) {
  const std::lock_guard lock(mutex_);
  Place& place = nodes_[node].place;
  place = {line_port, http_port, place.life + 1};
}

std::vector<std::string> ServerUnderTest::common_flags() const {
  std::vector<std::string> flags{"--host",           "127.0.0.1", "--max-locks",        "100000",
                                 "--threads",        "2",         "--shutdown-timeout", "1",
                                 "--detailed-errors"};
  if (!settings_.auto_release) flags.emplace_back("--no-auto-release-on-disconnect");
  return flags;
}

ProcessUnderTest::ProcessUnderTest(Settings settings)
    : ServerUnderTest(std::move(settings)),
      faults_(LiveFaults::map((this->settings().directory + "/faults").c_str())) {
  reboot();
}

bool ProcessUnderTest::has_faults() const {
#ifdef LOCKD_FAULT_SHIM
  return true;
#else
  return false;
#endif
}

std::vector<std::string> ProcessUnderTest::flags() const {
  std::vector<std::string> flags = common_flags();
  flags.insert(flags.end(), {"--wal", settings().directory + "/wal", "--http-addr", "127.0.0.1:0"});
  if (settings().tls) {
    const TestAuthority& authority = test_authority();
    flags.insert(flags.end(), {"--tls-cert", authority.certificate("server"), "--tls-key",
                               authority.key("server")});
  }
  return flags;
}

void ProcessUnderTest::start() {
  ServerProcess::Launch launch{.may_refuse = true};
#ifdef LOCKD_FAULT_SHIM
  launch.environment = {"LD_PRELOAD=" LOCKD_FAULT_SHIM,
                        "LOCKD_FAULT_LIVE=" + settings().directory + "/faults",
                        "LOCKD_FAULT_BOOT_ID=" + settings().directory + "/boot_id"};
#endif
  process_.emplace(flags(), launch);
  if (process_->port() == 0) fail("does not start");
  came_up(process_->port(), process_->http_port());
}

void ProcessUnderTest::stop() {
  ask_to_stop();
  await_end();
}

void ProcessUnderTest::ask_to_stop() {
  begins_to_end();
  process_->terminate();
}

void ProcessUnderTest::await_end() {
  if (process_->await_exit() != 0) fail("does not stop in good order");
  goes_down();
  process_.reset();
}

void ProcessUnderTest::fail(const std::string& what) {
  throw std::runtime_error("server " + settings().name + " " + what + ":\n" + process_->log());
}

void ProcessUnderTest::kill() {
  goes_down();
  process_->kill();
  process_.reset();
}

void ProcessUnderTest::await_failure() {
  if (process_->await_exit() <= 0) fail("does not end with a failure though its disk has failed");
  process_.reset();
}

void ProcessUnderTest::freeze() { ::kill(process_->pid(), SIGSTOP); }
void ProcessUnderTest::thaw() { ::kill(process_->pid(), SIGCONT); }

void ProcessUnderTest::withhold_descriptors() {
  ::prlimit(process_->pid(), RLIMIT_NOFILE, nullptr, &descriptors_);
  const rlimit none{process_->descriptors(), descriptors_.rlim_max};
  ::prlimit(process_->pid(), RLIMIT_NOFILE, &none, nullptr);
}

void ProcessUnderTest::grant_descriptors() {
  ::prlimit(process_->pid(), RLIMIT_NOFILE, &descriptors_, nullptr);
}

void ProcessUnderTest::reboot() {
  std::array<char, 64> id;
  std::snprintf(id.data(), id.size(), "1b4e28ba-2fa1-11d2-883f-%012u", ++boots_);
  std::ofstream(settings().directory + "/boot_id") << id.data() << "\n";
}

HostUnderTest::HostUnderTest(Settings settings) : ServerUnderTest(std::move(settings)) {
  set_up_log(LogLevel::error, LogFormat::text);
}

HostUnderTest::~HostUnderTest() = default;

void HostUnderTest::start() {
  Options options;
  options.host = "127.0.0.1";
  options.port = 0;
  options.http_addr = Endpoint{"127.0.0.1", 0};
  options.threads = 2;
  options.max_locks = 100'000;
  options.detailed_errors = true;
  options.auto_release_on_disconnect = settings().auto_release;
  options.wal = settings().directory + "/wal";
  const std::unique_lock lock(server_mutex_);
  closed_to_visits_ = false;  // also when it does not start: then there is nobody in
  server_ = std::make_unique<Server>(options);
  if (const std::string error = server_->start(); !error.empty()) {
    throw std::runtime_error("server " + settings().name + " does not start: " + error);
  }
  came_up(server_->port(), server_->http_port());
}

void HostUnderTest::stop() {
  begins_to_end();
  closed_to_visits_ = true;
  server_->drain();
  const Instant deadline = now() + kSecond;
  while (server_->line_connections() > 0 && now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  goes_down();
  server_->stop();  // whoever is blocked in the engine returns
  const std::unique_lock lock(server_mutex_);
  server_.reset();
}

HostUnderTest::Visit::Visit(HostUnderTest& subject) : server_(subject) {
  while (subject.closed_to_visits_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  lock_ = std::shared_lock(subject.server_mutex_);
}

Engine* HostUnderTest::Visit::engine() {
  return server_.server_ == nullptr ? nullptr : &server_.server_->engine();
}

}  // namespace lockd::histories
