#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "net/listen.h"

namespace lockd {

Server::Server(const Options& options, std::function<void()> on_failure)
    : on_failure_(std::move(on_failure)), shared_(options, [this] { on_durable(); }) {}

Server::~Server() {
  stop();
  tell({});
}

std::string Server::start(const std::vector<Systemd::Socket>& passed) {
  if (std::string error = shared_.tls.load(); !error.empty()) return error;
  if (passed.size() > 1) return "systemd passes more than one socket: there is one port to serve";
  const Options& options = shared_.options;
  const ListeningSocket socket = passed.empty() ? listen_on(options.host, options.port.value_or(0))
                                                : adopt_listener(passed.front().descriptor);
  if (!socket.error.empty()) return socket.error;
  listening_ = socket.descriptor;
  port_ = socket.port;
  for (std::uint32_t i = 0; i < options.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(shared_, listening_, socket.ipv6));
  }
  std::vector<Worker*> started;
  for (const auto& worker : workers_) {
    worker->start();
    started.push_back(worker.get());
  }
  tell(std::move(started));
  running_ = true;
  return {};
}

// On the journal's thread.
void Server::on_durable() {
  MutexLock lock(told_mutex_);
  for (Worker* worker : told_) worker->on_durable();
  const bool failed = shared_.journal->state() == Journal::State::failed;
  if (failed && on_failure_ && !std::exchange(has_failed_, true)) on_failure_();
}

void Server::tell(std::vector<Worker*> workers) {
  MutexLock lock(told_mutex_);
  told_ = std::move(workers);
}

bool Server::is_turning() {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->has_turned(); });
}

void Server::drain() {
  for (const auto& worker : workers_) worker->drain();
  // The workers watch duplicates: the port is closed when the last of them is.
  if (listening_ >= 0) ::close(std::exchange(listening_, -1));
}

void Server::stop() {
  if (!std::exchange(running_, false)) return;
  drain();
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  // The workers listen: they stay until all they waited for is settled, and they have heard of it.
  shared_.engine.close();
  shared_.engine.wait_until_told();
  shared_.side_work.join();  // before the workers go that it would report to
}

}  // namespace lockd
