// The command that `run` runs: a child that keeps what lockctl was started with; and all that the
// command starts in turn.
//
// It stays in our group of processes, so the terminal is its as it is ours; it begins with the
// signals blocked that were blocked when we began, and with the descriptors that we inherited, for
// all of our own are closed when it is executed. It does not outlive us: the kernel kills it when
// the thread that started it ends. So that must be the first thread.
//
// What was sent to our group before it was in there, as by ^C, and that nobody has read, is passed
// on to it before it begins; ^Z stops us first.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lockctl/run/signals.h"

namespace lockd::cli {

struct ChildCommand {
  std::vector<std::string> words;        // the program, looked for in PATH, and its arguments
  std::vector<std::string> environment;  // "NAME=value", all of it
};

// Its process id. Throws Failure: 127 when there is no such program, 126 when it cannot be
// executed, 71 when there can be no process.
pid_t start_child(const ChildCommand& command, const SignalSource& signals);

// This process's environment without the variables named in `left_out`, and with `added`, which are
// "NAME=value".
std::vector<std::string> environment_with(const std::vector<std::string>& added,
                                          const std::vector<std::string>& left_out);

// --- our descendants: the command, and all that it has started ---
//
// A command that must stop must stop with its children: a shell that gets SIGTERM leaves behind
// what it was waiting for. With adopt_orphans() a process whose parent has ended becomes ours, and
// stays a descendant.

// For the rest of this process's life; its children have to be reaped, all of them.
void adopt_orphans();

// All there are now, parents before their children.
std::vector<pid_t> descendants();

// Sends a signal to each.
void signal_descendants(int number);

}  // namespace lockd::cli
