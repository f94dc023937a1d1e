// Signals as something to read, instead of something that interrupts; an event to wait for beside
// them; and a stop token that a signal fires.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>

namespace lockd::cli {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;          // 0: the kernel
  bool from_kernel = false;  // as from a terminal, which sends it to a whole group of processes
};

// Whether it would not have ended us if we had left it to the system.
inline bool is_harmless(int number) {
  return number == SIGCHLD || number == SIGWINCH || number == SIGCONT || number == SIGURG;
}

// Whether it stops a process, as ^Z does.
inline bool is_stop(int number) {
  return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

// From its beginning to the end of the process nothing that can be caught is delivered any other
// way, except what a program's own mistakes cause. To be made by the first thread, before there are
// others: they inherit what is blocked.
class SignalSource {
 public:
  SignalSource();
  ~SignalSource();
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  // Readable when there is a signal.
  int descriptor() const { return descriptor_; }
  // Nothing when there is none.
  std::optional<ReceivedSignal> next() const;

  // What was blocked before: for a child, which is to begin as we did.
  const sigset_t& original_mask() const { return original_mask_; }

 private:
  sigset_t original_mask_{};
  int descriptor_ = -1;
};

// Whether poll() tells that nobody reads what is written there.
inline bool has_no_reader(short revents) { return (revents & (POLLERR | POLLHUP)) != 0; }

// An event that one thread sets and another waits for with poll(). It stays set until it is
// cleared.
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
  void clear() const {
    eventfd_t count = 0;
    ::eventfd_read(descriptor_, &count);
  }

 private:
  const int descriptor_;
};

// Lets a signal end a wait in the queue: reads signals on its own thread, and fires a stop token.
// That nobody reads from a pipe any more counts as SIGPIPE.
//
//   SignalStop stopper(signals);
//   auto lock = client.acquire(request, stopper.token());
//   if (const int signal = stopper.finish()) return 128 + signal;
class SignalStop {
 public:
  // `signals` outlives it.
  explicit SignalStop(const SignalSource& signals, int pipe = -1);
  ~SignalStop() { finish(); }
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  // Reads no more. The signal that came, or 0; those that come later are left for others to read.
  int finish();

 private:
  void watch();

  const SignalSource& signals_;
  const int pipe_;
  std::stop_source stop_;
  EventFd done_;
  int signal_ = 0;
  std::thread thread_;  // last: it uses the others
};

}  // namespace lockd::cli
