// Signals as something to read, instead of something that interrupts.
//
// From its beginning to the end of the process nothing that can be caught is delivered any other
// way, except what a program's own mistakes cause. To be made by the first thread, before there are
// others: they inherit what is blocked.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>

namespace lockd::cli {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;          // 0: the kernel
  bool from_kernel = false;  // as from a terminal, which sends it to a whole group of processes
};

// Whether it stops a process, as ^Z does.
inline bool is_stop(int number) {
  return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

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

}  // namespace lockd::cli
