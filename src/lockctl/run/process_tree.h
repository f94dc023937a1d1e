// Our descendants: the command, and all that it has started.
//
// A command that must stop must stop with its children: a shell that gets SIGTERM leaves behind
// what it was waiting for. With adopt_orphans() a process whose parent has ended becomes ours, and
// stays a descendant.
#pragma once

#include <sys/types.h>

#include <vector>

namespace lockd::cli {

// For the rest of this process's life; its children have to be reaped, all of them.
void adopt_orphans();

// All there are now, parents before their children.
std::vector<pid_t> descendants();

// Sends a signal to each.
void signal_descendants(int number);

}  // namespace lockd::cli
