// Clients that queue for one lock one behind the other: each asks when the statistics show that the
// one before it is in the queue. So a history knows the order in which they came.
//
// On a thread of its own, straight to the server.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "histories/recording.h"
#include "histories/server_under_test.h"
#include "support/line_client.h"

namespace lockd::histories {

class Ladder {
 public:
  // `keys` are locks that nobody else uses.
  Ladder(Recording& recording, ServerUnderTest& subject, std::vector<std::uint32_t> keys);
  ~Ladder();
  // How often all came in and out.
  std::size_t climbed() const { return climbed_; }

 private:
  // A client, and the request of its that is under way.
  struct Rung {
    LineClient client;
    std::uint64_t conn = 0;
    std::uint32_t proc = 0;
    Instant alive_at = 0;
    bool dead = false;
    Operation operation{};
    std::string token{};
  };

  void run();
  bool climb(std::uint32_t key);
  bool climb(std::uint32_t key, std::vector<Rung>& rungs);
  Rung rung(const ServerUnderTest::Place& place);
  void ask(Rung& rung, Function function, std::uint32_t key);
  bool hear(Rung& rung);
  bool await_waiters(Rung& onlooker, std::uint32_t key, std::uint32_t count);
  bool release(Rung& rung, std::uint32_t key);
  void leave(Rung& rung);

  Recording& recording_;
  Recording::Scribe& scribe_;
  ServerUnderTest& server_;
  const std::vector<std::uint32_t> keys_;
  std::size_t node_ = 0;
  std::uint32_t life_ = 0;
  std::atomic<std::size_t> climbed_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace lockd::histories
