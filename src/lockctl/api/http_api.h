// The API over HTTP, of a server or of a cluster's servers: then of the one that leads.
//
// Of several addresses it looks for the one whose /leader says so, before each request and for
// ConnectOptions::connect_timeout at most. A request that was sent is sent to nobody else, unless
// the answer is that nothing was done.
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

#include "lockctl/api/api.h"
#include "lockctl/api/http_client.h"
#include "lockctl/output/failure.h"
#include "lockctl/settings.h"
#include "lockd/types.h"

namespace lockd::cli {

class HttpApi final : public Api {
 public:
  // Precondition: there is an address.
  HttpApi(const std::vector<HttpAddress>& addresses, const client::ConnectOptions& options);

  ApiReply get(const std::string& path, const Parameters& parameters) override;
  ApiReply post(const std::string& path, const Parameters& parameters, Duration wait) override;
  ApiReply follow(const std::string& path, const Parameters& parameters, const Sink& sink) override;
  void interrupt() override;
  std::string server() const override { return servers_[here_]->address().to_string(); }

 private:
  using Clock = std::chrono::steady_clock;

  ApiReply at_leader(const std::function<ApiReply(HttpClient&)>& ask);
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
