// How run and hold come by their lock, or by several keys: they wait in the queue, and say
// meanwhile who is waited for.
//
// For the first thread, before there are others.
#pragma once

#include <optional>
#include <string>

#include "lockctl/commands/commands.h"
#include "lockctl/run/signals.h"
#include "lockd/client/held_lock.h"

namespace lockd::cli {

struct TakenLock {
  std::optional<client::HeldLock> lock{};
  int status = 0;  // what to exit with when there is none
};

// With --all it is several keys, in one step. Sets `news` when the lock is lost or suspect, by any
// thread. A signal ends the wait; so does the end of everybody who reads from `pipe`, if it is one.
// Throws Failure.
TakenLock take_lock(const Invocation& invocation, const SignalSource& signals, const EventFd& news,
                    int pipe = -1);

// Whether it is lost for good, and not merely suspect.
bool is_lost(const client::HeldLock& lock);

// For people: "the lock on 'seat-12', 'seat-13'".
std::string name_of(const client::HeldLock& lock);

// A line on standard error.
void say(const std::string& line);

}  // namespace lockd::cli
