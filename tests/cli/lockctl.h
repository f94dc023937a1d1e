// lockctl as a process of its own: with files for its output, or under a terminal.
//
// Its environment is ours without what could set it up: no DFLOCKD_ variables, no home. It ends
// with the object, and with this process. Belongs to the thread of the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/server_process.h"

namespace lockd {

using Words = std::vector<std::string>;

class Lockctl {
 public:
  struct Launch {
    Words environment{};             // "NAME=value"
    std::string input{};             // on standard input
    bool terminal = false;           // a terminal for everything, of 24 lines and 80 columns
    std::vector<int> descriptors{};  // of ours that it inherits, under the same numbers
    std::string program{};           // instead of lockctl
  };

  explicit Lockctl(const Words& arguments);
  Lockctl(const Words& arguments, Launch launch);
  ~Lockctl();
  Lockctl(const Lockctl&) = delete;
  Lockctl& operator=(const Lockctl&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  bool has_ended();
  // Waits for its end. Its exit status; less than -1 is a signal that ended it, and -1 that it does
  // not end.
  int await_exit();

  // All it has written so far; under a terminal, everything it has shown.
  std::string output();
  std::string errors() const;
  // Waits until it is there, `times` over; the test fails when it does not come.
  void await_output(std::string_view part, std::size_t times = 1);
  void await_errors(std::string_view part);

  // Under a terminal.
  void type(std::string_view keys) const;
  void resize(unsigned short rows, unsigned short columns) const;
  int terminal() const { return terminal_; }

 private:
  void start(const Words& words, const Launch& launch);
  void start_under_terminal(Words words, Words environment);
  void await_part(std::string_view part, std::size_t times,
                  const std::function<std::string()>& text);

  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
  int output_ = -1;
  int errors_ = -1;
  int terminal_ = -1;
  std::string shown_;
};

// What a lockctl that ends by itself comes to.
struct Finished {
  int status = -1;
  std::string output;
  std::string errors;
};

Finished lockctl(const Words& arguments, Lockctl::Launch launch = {});

inline const Lockctl::Launch kTerminal{.terminal = true};

// joined() appends `more`; with_options() inserts `options` behind the first word, the command.
Words joined(Words words, const Words& more);
Words with_options(Words words, const Words& options);

// Whether `part` is in `text`.
bool has(std::string_view text, std::string_view part);

// The words of a `lockctl run` that asks this server.
Words run(const ServerProcess& server, const Words& more);

// "127.0.0.1:PORT"
std::string address_of(const ServerProcess& server);

// Whether there is such a process, a zombie aside. Waits until there is none; false when it stays.
bool is_alive(pid_t pid);
bool await_death(pid_t pid);
// The process id behind `name`. Ends the test program when `text` has none: what is not one is -1
// or 0 to kill(2), and those are everybody.
pid_t pid_behind(const std::string& text, std::string_view name);

std::string path_of_lockctl();

}  // namespace lockd
