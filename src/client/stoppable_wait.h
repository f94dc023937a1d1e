// Waits for a descriptor, a deadline or a stop token, whichever comes first.
//
// For one call, on one thread: the token's callback lives as long as this does.
#pragma once

#include <poll.h>

#include <optional>
#include <stop_token>

#include "lockd/client/boot_clock.h"

namespace lockd::client {

class StoppableWait {
 public:
  explicit StoppableWait(std::stop_token stop);
  ~StoppableWait();
  StoppableWait(const StoppableWait&) = delete;
  StoppableWait& operator=(const StoppableWait&) = delete;

  bool stop_requested() const { return stop_.stop_requested(); }
  // Returns when something has happened, or for no reason at all.
  void wait(pollfd interest, BootClock::time_point until) const;

 private:
  struct Wake {
    int wake_fd;
    void operator()() const noexcept;
  };

  const std::stop_token stop_;
  const int wake_fd_;  // an eventfd, or -1 when nobody can stop us
  std::optional<std::stop_callback<Wake>> wake_;
};

}  // namespace lockd::client
