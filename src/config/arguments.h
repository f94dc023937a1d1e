// Words to arguments: which command, which options, which operands; each value checked.
//
//   --max-locks 10, -max-locks=10      one or two dashes, one word or two
//   -w 5, -w5, -nw5                    letters, several in one word
//   --debug, --debug=off, --no-debug   booleans: the value is in the same word
//   --                                 what follows is no option
//
// Options may stand anywhere behind their command, and those that it shares before it too. Only a
// command that runs others is different, as flock is: what stands behind its last operand belongs
// to what it runs, or behind -- where an option lets it take several operands or what it runs
// begins with a dash. Read by hand rather than by CLI11, which takes `-port` for `-p -o -r -t`, and
// whose messages and help would all have to be replaced. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/option.h"

namespace lockd::config {

// Where a value came from.
struct Origin {
  int rank = 0;  // of its source: the larger wins; 0 is the default
  std::string name =
      "default";  // "the command line", "LOCKD_SERVER_PORT", "line 3 of 'lockd.toml'"
};

// One value that was given.
struct Given {
  const Option* option = nullptr;
  std::string text{};  // as kept_text() has it, once it was looked at
  Origin origin{};
};

// The line for people when a value breaks the rule; a secret is not in it.
std::string bad_value(const Given& given);

class Arguments {
 public:
  // A boolean that is on, or any other option that was given.
  bool has(std::string_view option) const;
  // The last one given.
  std::optional<std::string_view> text(std::string_view option) const;
  std::optional<std::uint64_t> whole(std::string_view option) const;
  std::optional<Nanoseconds> seconds(std::string_view option) const;
  const std::vector<Given>& given() const { return given_; }

  const std::vector<std::string>& operands() const { return operands_; }
  // Where it may be left out.
  std::string operand_or(std::size_t number, std::string_view otherwise) const;
  // The words of Operand::Count::command; empty when an option stands for them.
  const std::vector<std::string>& command() const { return command_; }

 private:
  friend class ArgumentReader;

  const Given* last(std::string_view option) const;

  std::vector<Given> given_;
  std::vector<std::string> operands_;
  std::vector<std::string> command_;
};

struct Parsed {
  Place place;  // the command, or the program if none was named
  Arguments arguments;
  std::vector<std::string_view> secrets;  // where they stand, within the words: to be overwritten
  std::string
      error;  // one line about the first thing that is wrong; empty with --help or --version
};

// `words` are those after the program's name.
Parsed parse_arguments(const Command& program, std::span<const char* const> words);

// Overwrites what others could read in /proc. Precondition: it is the memory of the process's own
// arguments and environment, or else may be written.
void scrub(const std::vector<std::string_view>& secrets);

}  // namespace lockd::config
