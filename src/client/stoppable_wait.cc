#include "client/stoppable_wait.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <utility>

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

// No sleep is longer: poll's clock stands still while the machine is suspended.
constexpr BootClock::duration kSleepMax = 1s;
// Where no eventfd could be had, the token is looked at this often.
constexpr BootClock::duration kSleepMaxWithoutEventFd = 20ms;

int new_wake_fd(const std::stop_token& stop) {
  return stop.stop_possible() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
}

}  // namespace

StoppableWait::StoppableWait(std::stop_token stop)
    : stop_(std::move(stop)), wake_fd_(new_wake_fd(stop_)) {
  if (wake_fd_ >= 0) wake_.emplace(stop_, Wake{wake_fd_});
}

StoppableWait::~StoppableWait() {
  wake_.reset();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void StoppableWait::Wake::operator()() const noexcept { ::eventfd_write(wake_fd, 1); }

void StoppableWait::wait(pollfd interest, BootClock::time_point until) const {
  const bool deaf = wake_fd_ < 0 && stop_.stop_possible();
  const auto left = std::clamp<BootClock::duration>(until - BootClock::now(), 0ns,
                                                    deaf ? kSleepMaxWithoutEventFd : kSleepMax);
  const auto whole = std::chrono::floor<std::chrono::seconds>(left);
  const timespec timeout{.tv_sec = whole.count(), .tv_nsec = (left - whole).count()};
  std::array<pollfd, 2> watched{interest, pollfd{.fd = wake_fd_, .events = POLLIN}};
  ::ppoll(watched.data(), watched.size(), &timeout, nullptr);
}

}  // namespace lockd::client
