// Lets a signal end a wait in the queue: reads signals on its own thread, and fires a stop token.
//
//   SignalStop stopper(signals);
//   auto lock = client.acquire(request, stopper.token());
//   if (const int signal = stopper.finish()) return 128 + signal;
#pragma once

#include <stop_token>
#include <thread>

#include "lockctl/run/event_fd.h"
#include "lockctl/run/signal_source.h"

namespace lockd::cli {

class SignalStop {
 public:
  // `signals` outlives it.
  explicit SignalStop(const SignalSource& signals);
  ~SignalStop() { finish(); }
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  // Reads no more. The signal that came, or 0; those that come later are left for others to read.
  int finish();

 private:
  void watch();

  const SignalSource& signals_;
  std::stop_source stop_;
  EventFd done_;
  int signal_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockd::cli
