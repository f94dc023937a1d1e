// Deadlines that cannot overflow, and a wait for a descriptor, a deadline or a stop token.
#pragma once

#include <poll.h>

#include <optional>
#include <stop_token>

#include "lockd/client/boot_clock.h"
#include "lockd/types.h"

namespace lockd::client {

// Leases and waits may last for 292 years.
inline constexpr BootClock::time_point kNever = BootClock::time_point::max();

// Precondition: `length` is not negative.
constexpr BootClock::time_point later(BootClock::time_point from, Duration length) {
  return length > kNever - from ? kNever : from + length;
}

// Waits for whichever comes first. For one call, on one thread: the token's callback lives as long
// as this does.
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
