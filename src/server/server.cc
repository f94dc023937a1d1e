#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/listen.h"
#include "server/log.h"

namespace lockd {

Server::Server(const Options& options, std::function<void()> on_failure,
               const ClusterSupport& support)
    : on_failure_(std::move(on_failure)),
      context_(
          options, [this] { on_durable(); }, support) {}

Server::~Server() {
  stop();
  tell({});
}

std::string Server::start(const std::vector<Systemd::Socket>& passed) {
  // In its second life in a cluster the files may be others than when the options were loaded.
  if (std::string error = read_files().error; !error.empty()) return error;
  if (std::string error = open_ports(passed); !error.empty()) return error;
  context_.line_port = port();
  context_.http_port = http_port();
  for (std::uint32_t i = 0; i < context_.options.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(context_));
  }
  for (const auto& [port, protocol] :
       {std::pair(&line_, Protocol::line), {&http_, Protocol::http}}) {
    if (std::string error = accept_at(*port, protocol); !error.empty()) return error;
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
    ListeningSocket& port = is_http ? http_.socket : line_.socket;
    if (port.descriptor) {
      return "systemd passes more than one socket for one port; the one for HTTP must have "
             "FileDescriptorName=http";
    }
    port = adopt_listener(socket.descriptor);
    if (!port.error.empty()) return port.error;
  }
  if (options.port.has_value() && !line_.socket.descriptor) {
    line_.socket = listen_on(options.host, *options.port);
    if (!line_.socket.error.empty()) return line_.socket.error;
  }
  if (options.http_addr.has_value() && !http_.socket.descriptor) {
    http_.socket = listen_on(options.http_addr->host, options.http_addr->port);
  }
  return http_.socket.error;
}

std::string Server::accept_at(Port& port, Protocol protocol) {
  if (!port.socket.descriptor) return {};
  Worker& first = *workers_.front();
  port.acceptor.emplace(
      first.loop(), std::move(port.socket.descriptor), first.stats(),
      [this, protocol](Descriptor socket, const boost::asio::ip::tcp::endpoint& peer) {
        least_busy().let_in(protocol, std::move(socket), peer);
      });
  if (port.acceptor->open()) return {};
  return "port " + std::to_string(port.socket.port) + " cannot be watched";
}

// Of those who have equally few the next in turn.
Worker& Server::least_busy() {
  std::size_t best = last_chosen_;
  for (std::size_t i = 1; i <= workers_.size(); ++i) {
    const std::size_t next = (last_chosen_ + i) % workers_.size();
    if (i == 1 || workers_[next]->connections() < workers_[best]->connections()) best = next;
  }
  last_chosen_ = best;
  return *workers_[best];
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

std::string Server::reload() {
  const Access::Reading read = read_files();
  if (read.error.empty() && !read.warning.empty()) log_event(LogLevel::warn, read.warning);
  return read.error;
}

// All of them, or none.
Access::Reading Server::read_files() {
  Access::Reading read = context_.access.read_again();
  if (read.error.empty()) read.error = context_.tls.load();
  if (read.error.empty() && context_.cluster != nullptr) read.error = context_.cluster->reload();
  if (read.error.empty()) context_.access.replace(read, std::chrono::system_clock::now());
  return read;
}

bool Server::is_turning() {
  return std::all_of(workers_.begin(), workers_.end(),
                     [](const auto& worker) { return worker->has_turned(); });
}

void Server::drain() {
  context_.draining = true;
  close(line_);
  if (context_.cluster != nullptr) close(http_);
  for (const auto& worker : workers_) worker->drain();
}

void Server::close_http() {
  close(http_);
  for (const auto& worker : workers_) worker->close_http();
}

void Server::resign() {
  if (context_.cluster != nullptr) context_.cluster->resign();
}

void Server::close(Port& port) {
  if (!port.acceptor) return;
  workers_.front()->loop().post([&port] { port.acceptor->close(); });
}

void Server::stop() {
  if (!std::exchange(running_, false)) return;
  drain();
  close(http_);
  for (const auto& worker : workers_) worker->stop();
  for (const auto& worker : workers_) worker->join();
  // The workers listen: they stay until all they waited for has ended, and they have heard of it.
  context_.engine.close();
  context_.engine.drain_notifications();
  context_.reports.join();  // before the workers go that it would report to
}

}  // namespace lockd
