// Lets a signal end a wait in line: reads signals on a thread of its own, and fires a stop token.
//
//   LineLeaver leaver(signals);
//   auto lock = client.acquire(request, leaver.token());
//   if (const int signal = leaver.finish()) return 128 + signal;
#pragma once

#include <stop_token>
#include <thread>

#include "cli/bell.h"
#include "cli/signal_source.h"

namespace lockd::cli {

class LineLeaver {
 public:
  // `signals` outlives it.
  explicit LineLeaver(const SignalSource& signals);
  ~LineLeaver() { finish(); }
  LineLeaver(const LineLeaver&) = delete;
  LineLeaver& operator=(const LineLeaver&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  // Reads no more. The signal that came, or 0; those that come later are left for others to read.
  int finish();

 private:
  void watch();

  const SignalSource& signals_;
  std::stop_source stop_;
  Bell done_;
  int signal_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockd::cli
