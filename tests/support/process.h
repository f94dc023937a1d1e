// Programs that a test starts, each in a process of its own, which ends with the test's.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockd {

struct Program {
  std::vector<std::string> words;  // the first is its path
  std::vector<std::string> environment{};
  // Descriptors of ours that become its own; -1: it has /dev/null.
  int input = -1;
  int output = -1;
  int errors = -1;
  std::vector<int> kept{};  // of ours that it has under the same numbers; no others
  std::function<void()>
      in_child{};  // done before it begins: nothing that takes a lock or allocates
};

// Begins it; the test's program ends when that cannot be.
pid_t spawn(const Program& program);
// Kills it and waits for its end. Nothing happens when `pid` is none.
void kill_and_wait(pid_t pid);

// "NAME=value" of this process.
std::vector<std::string> our_environment();

// The strings as exec wants them. They must stay where they are.
std::vector<char*> exec_words(std::vector<std::string>& strings);

// A file without a name, for what a program writes: nobody need read it while it runs.
int new_file(std::string_view content = {});
// All that is in it, but for the first `from` bytes.
std::string read_file(int file, std::size_t from = 0);

}  // namespace lockd
