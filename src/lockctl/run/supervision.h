// Watches over the command of `run` until it ends, or has to.
//
//   signals     are passed on to the child. One from the terminal has reached it already, as it is
//               in our group, and is not doubled.
//   a stop      of the child by the terminal (^Z) stops us too, so that the shell takes over. When
//               we continue, so does the child, if our locks are still held.
//   a suspicion that a lock may be lost stops the child and all its descendants (SIGSTOP). They
//               continue once the lock is held again.
//   a loss      of a lock ends the child and all its descendants: SIGTERM, and SIGKILL when
//               the grace is over.
//
// For the first thread, which has started the child.
#pragma once

#include <sys/types.h>

#include <functional>

#include "lockctl/run/signals.h"
#include "lockd/types.h"

namespace lockd::cli {

// What the child may run for.
struct LockGuard {
  std::function<bool()> is_held;                    // asked whenever anything happens
  std::function<bool()> is_lost;                    // for good; neither is suspect
  const EventFd& news;                              // set when it is lost or suspect, by any thread
  std::function<void(bool is_suspect)> on_suspect;  // before the child is stopped, or continued
  std::function<void()> on_loss;                    // called once, before the child is ended
};

struct ChildExit {
  int status = 0;     // as waitpid tells it
  bool lost = false;  // the guard was lost while the child ran
};

ChildExit supervise(pid_t child, const SignalSource& signals, const LockGuard& guard,
                    Duration grace);

// The exit status that stands for it: the child's own, or 128 and the signal.
int exit_status_of(int wait_status);

}  // namespace lockd::cli
