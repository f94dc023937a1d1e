// What each command does. Every one gets what it was told, and returns the status to exit with; it
// throws Failure when it cannot go on.
#pragma once

#include "lockctl/arguments.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/output/output.h"
#include "lockctl/settings.h"

namespace lockd::cli {

struct Invocation {
  const Command& command;
  const Arguments& arguments;
  const Settings& settings;
  Output& output;
};

int execute_run(const Invocation& invocation);

int execute_acquire(const Invocation& invocation);
int execute_renew(const Invocation& invocation);
int execute_release(const Invocation& invocation);
int execute_fence(const Invocation& invocation);

int execute_list(const Invocation& invocation);
int execute_describe(const Invocation& invocation);
int execute_watch(const Invocation& invocation);
int execute_stats(const Invocation& invocation);
int execute_top(const Invocation& invocation);

int execute_ping(const Invocation& invocation);
int execute_listen(const Invocation& invocation);
int execute_signal(const Invocation& invocation);

int execute_bench(const Invocation& invocation);

int execute_wal_inspect(const Invocation& invocation);
int execute_wal_verify(const Invocation& invocation);

int execute_completion(const Invocation& invocation);
int execute_man(const Invocation& invocation);

}  // namespace lockd::cli
