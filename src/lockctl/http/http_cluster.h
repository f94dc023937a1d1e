// The HTTP API of a server, or of a cluster's servers: then of the one that leads.
//
// Of several addresses it looks for the one whose /leader says so, before each request and for
// ConnectOptions::connect_timeout at most. A request that was sent is sent to nobody else, unless
// the answer is that nothing was done. With one address it is an HttpClient.
//
// Throws Failure when there is no answer. Used by one thread at a time, except interrupt().
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lockctl/http/http_client.h"
#include "lockctl/output/failure.h"
#include "lockctl/settings.h"
#include "lockd/types.h"

namespace lockd::cli {

class HttpCluster {
 public:
  // Precondition: there is an address.
  HttpCluster(const std::vector<HttpAddress>& addresses, const client::ConnectOptions& options);

  // As with an HttpClient.
  HttpReply get(const std::string& target);
  HttpReply post(const std::string& target, const std::string& json, Duration wait = {});
  HttpReply follow(const std::string& target, const EventStreamParser::Sink& sink);
  void interrupt();

  // Who was asked last.
  const HttpAddress& address() const { return servers_[here_]->address(); }

 private:
  using Clock = std::chrono::steady_clock;

  HttpReply at_leader(const std::function<HttpReply(HttpClient&)>& ask);
  void find_leader(Clock::time_point deadline);
  // Nothing when it leads.
  std::optional<Failure> why_not_leader(Duration patience);
  void rest(Duration pause);

  std::vector<std::unique_ptr<HttpClient>> servers_;  // constant once it is made
  const Duration patience_;
  std::size_t here_ = 0;
  std::mutex mutex_;
  std::condition_variable interruption_;
  bool interrupted_ = false;  // guarded by the mutex
};

}  // namespace lockd::cli
