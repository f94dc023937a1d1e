// Clients that behave, beside a test that does not: one keeps a lease of five seconds by renewing
// it, one takes and releases a lock again and again; if they are asked to, one connects anew again
// and again, and one reads /metrics.
//
// At the end of their scope they fail the test if any of their requests was not answered as it
// should be, and print how long the slowest took.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "support/server_process.h"

namespace lockd {

// An auth token that they know, and strangers do not.
inline const std::string kHonestToken = "a secret of many characters";
// What /metrics says of a server that asks for it; -1: nothing.
double metric(const ServerProcess& server, const std::string& name);

class HonestClients {
 public:
  struct Setup {
    std::string attack;          // what is printed
    std::string token{};         // the auth token, if one is needed
    bool reads_metrics = false;  // the server was given --http-addr
    bool comes_anew = false;     // one more connects for each of its requests
    bool tls = tests_use_tls();
  };

  HonestClients(const ServerProcess& server, Setup setup);
  ~HonestClients();
  HonestClients(const HonestClients&) = delete;
  HonestClients& operator=(const HonestClients&) = delete;

  // Waits until the second client has taken and released its lock `rounds` times more.
  void await_rounds(std::size_t rounds) const;

 private:
  using Clock = SteadyClock;

  // What one of them is: asks something, and says what was wrong with the answer, if anything was.
  using Round = std::function<std::string()>;
  void start(const char* what, std::chrono::milliseconds pause, Round round);
  void run(const char* what, std::chrono::milliseconds pause, const Round& round);
  LineClient connect() const;

  const ServerProcess& server_;
  const Setup setup_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> rounds_{0};
  Mutex mutex_;
  std::string report_ GUARDED_BY(mutex_);
  std::string unexpected_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace lockd
