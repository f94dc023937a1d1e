// A caller in the server's own process: carries out a plan through the engine, on a thread of its
// own, in the same queues as the server's clients.
#pragma once

#include <atomic>
#include <thread>

#include "histories/plan.h"
#include "histories/recording.h"
#include "histories/server_under_test.h"

namespace lockd::histories {

class Caller {
 public:
  Caller(Recording& recording, HostUnderTest& subject, Plan plan);
  ~Caller();

  // It gives back what it holds, and ends.
  void finish() { finishing_ = true; }

 private:
  void run();
  void call(const Request& request);
  Reply execute(Engine& engine, const Request& request);
  Reply execute_set(Engine& engine, const Request& request);

  Recording& recording_;
  Recording::Scribe& scribe_;
  HostUnderTest& server_;
  Plan plan_;
  std::uint32_t proc_;
  std::atomic<bool> finishing_{false};
  std::thread thread_;
};

}  // namespace lockd::histories
