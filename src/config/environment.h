// What a program's settings read from its environment: variables, files, cores, memory, limits.
//
// For main, which passes those of the process, and for tests, which pass their own. Used by one
// thread, at the start, before others could change the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file_text.h"

namespace lockd::config {

using lockd::FileText;

struct Environment {
  // As getenv: null when there is none. What it returns stays where it is.
  std::function<const char*(const char* name)> variable;
  // Regular files only, so that no reload waits for a FIFO.
  std::function<FileText(const std::string& path)> read_file;
  // The file of --config, which may be a pipe.
  std::function<FileText(const std::string& path)> read_config;
  std::vector<std::string> names{};  // of all variables
  unsigned cores = 1;
  std::uint64_t files_max = 1024;  // how many it may have open
  std::uint64_t memory = 0;        // bytes that this process may use; 0: it is not known
};

Environment process_environment();

// What is left of the machine's memory under the limits of the control groups that a process is in
// (version 2 or 1), by what files such as /proc/self/cgroup say. The limit of a group above counts
// too.
std::uint64_t memory_within(std::uint64_t machine,
                            const std::function<FileText(const std::string& path)>& read_file);

// Moves the variable's value away from where others can read it: /proc shows the memory that the
// environment of a process began in, to its children too. It is found by its name as before.
// Precondition: there are no other threads.
void hide_variable(const char* name);

}  // namespace lockd::config
