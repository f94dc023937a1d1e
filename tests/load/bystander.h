// A well-behaved client, in a thread of its own, that takes and releases a lock again and again.
//
// Whatever a test does to the server meanwhile must not reach it: at the end of its scope it fails
// the test if a request of it was not granted, or waited longer than kSlowest.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include "support/server_process.h"

namespace lockd {

class Bystander {
 public:
  // Generous: it is for requests that are stuck, on a machine that is busy.
  static constexpr std::chrono::seconds kSlowest{15};

  explicit Bystander(const ServerProcess& server);
  ~Bystander();
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  // Waits until it has been served `rounds` times more: beside what the test has just done.
  void await_rounds(std::size_t rounds) const;

 private:
  using Clock = LineClient::Clock;

  void run();
  std::string timed_ask(const std::string& request);

  LineClient client_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::atomic<std::size_t> rounds_{0};
  // Of the thread, until it ends.
  std::string unexpected_;
  Clock::duration slowest_{};
  std::thread thread_;
};

}  // namespace lockd
