// How run and hold come by their lock: they wait in the queue, and say meanwhile who is waited for.
//
// For the first thread, before there are others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lockctl/commands/commands.h"
#include "lockctl/run/held_set.h"
#include "lockctl/run/signals.h"
#include "lockd/client/held_lock.h"

namespace lockd::cli {

struct TakenLock {
  std::optional<client::HeldLock> lock{};
  int status = 0;  // what to exit with when there is none
};

// Sets `lost` when the lock is no longer held, by any thread. A signal ends the wait; so does the
// end of everybody who reads from `pipe`, if it is one. Throws Failure.
TakenLock take_lock(const Invocation& invocation, const SignalSource& signals, const EventFd& lost,
                    int pipe = -1);

struct TakenSet {
  std::unique_ptr<HeldSet> set{};
  int status = 0;  // what to exit with when there is none
};

// The same for several keys, in one step.
TakenSet take_set(const Invocation& invocation, const SignalSource& signals, const EventFd& lost);

// A line on standard error.
void say(const std::string& line);

}  // namespace lockd::cli
