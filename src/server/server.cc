#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "net/listen.h"

namespace lockd {

Server::Server(const Options& options, std::function<void()> on_failure, OpenCluster open_cluster)
    : on_failure_(std::move(on_failure)),
      context_(
          options, [this] { on_durable(); }, open_cluster) {}

Server::~Server() {
  stop();
  close_ports();
  tell({});
}

std::string Server::start(const std::vector<Systemd::Socket>& passed) {
  if (std::string error = context_.tls.load(); !error.empty()) return error;
  if (std::string error = open_ports(passed); !error.empty()) return error;
  for (std::uint32_t i = 0; i < context_.options.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(context_, ports_));
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

// Of sockets that systemd passes, the one named `http` is for HTTP, any other for the line
// protocol, if that is served.
std::string Server::open_ports(const std::vector<Systemd::Socket>& passed) {
  const Options& options = context_.options;
  for (const Systemd::Socket& socket : passed) {
    const bool is_http = socket.name == "http" || !options.port.has_value();
    ListeningSocket& port = is_http ? ports_.http : ports_.line;
    if (port.descriptor >= 0) {
      return "systemd passes more than one socket for one port; the one for HTTP must have "
             "FileDescriptorName=http";
    }
    port = adopt_listener(socket.descriptor);
    if (!port.error.empty()) return port.error;
  }
  if (options.port.has_value() && ports_.line.descriptor < 0) {
    ports_.line = listen_on(options.host, *options.port);
    if (!ports_.line.error.empty()) return ports_.line.error;
  }
  if (options.http_addr.has_value() && ports_.http.descriptor < 0) {
    ports_.http = listen_on(options.http_addr->host, options.http_addr->port);
  }
  return ports_.http.error;
}

// On the journal's thread.
void Server::on_durable() {
  MutexLock lock(told_mutex_);
  for (Worker* worker : told_) worker->on_durable();
  const bool failed = context_.journal->state() == Journal::State::failed;
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
  context_.draining = true;
  for (const auto& worker : workers_) worker->drain();
  close_ports();
}

void Server::resign() {
  if (context_.cluster != nullptr) context_.cluster->resign();
}

// The workers watch duplicates: a port is closed when the last of them is.
void Server::close_ports() {
  for (ListeningSocket* port : {&ports_.line, &ports_.http}) {
    if (port->descriptor >= 0) ::close(std::exchange(port->descriptor, -1));
  }
}

void Server::stop() {
  if (!std::exchange(running_, false)) return;
  drain();
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  // The workers listen: they stay until all they waited for has ended, and they have heard of it.
  context_.engine.close();
  context_.engine.drain_notifications();
  context_.side_work.join();  // before the workers go that it would report to
}

}  // namespace lockd
