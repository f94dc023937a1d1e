// An event that one thread sets and another waits for with poll(). Once set, it stays so.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace lockd::cli {

class EventFd {
 public:
  EventFd() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~EventFd() { ::close(descriptor_); }
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  int descriptor() const { return descriptor_; }
  void set() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
  }

 private:
  const int descriptor_;
};

}  // namespace lockd::cli
