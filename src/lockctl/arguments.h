// Words to arguments: which command, which options, which operands; checked against the table.
//
//   -w 5, -w5, --wait 5, --wait=5, -wait 5    all the same; -nv is -n -v
//   --tls, --tls=yes, --no-tls                what can be on or off
//   --                                        what follows is no option
//
// Options may stand anywhere behind the command, and those of the connection before it too. Only
// `run` is different, as flock is: what stands behind KEY belongs to the command that it runs,
// except -c. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockctl/commands/command_table.h"
#include "lockd/types.h"

namespace lockd::cli {

// What was given, each value as it must be by its option's shape.
class Arguments {
 public:
  // A toggle that is on, or any other option that was given.
  bool has(std::string_view option) const;
  // The last one given.
  std::optional<std::string_view> text(std::string_view option) const;
  // The same for one name that is two options: only if it was given in that shape.
  std::optional<std::string_view> text(std::string_view option, Shape shape) const;
  std::vector<std::string_view> all(std::string_view option) const;
  std::optional<std::uint64_t> whole(std::string_view option) const;
  std::optional<Duration> seconds(std::string_view option) const;

  // The operands; of `run` only the key.
  const std::vector<std::string>& operands() const { return operands_; }
  // Where it may be left out.
  std::string operand_or(std::size_t number, std::string_view otherwise) const;
  // The words that `run` is to run; empty with -c.
  const std::vector<std::string>& command() const { return command_; }

 private:
  friend class ArgumentReader;

  const std::pair<const Option*, std::string>* last(std::string_view option) const;

  std::vector<std::pair<const Option*, std::string>> given_;
  std::vector<std::string> operands_;
  std::vector<std::string> command_;
};

struct Parsed {
  enum class Action : std::uint8_t { execute, help, version };

  Action action = Action::execute;
  const Command* command = nullptr;  // null: help or version of lockctl itself
  Arguments arguments;
  // Where secrets stand, within the words: to be overwritten.
  std::vector<std::string_view> secrets;
  std::string error;  // one line; when there is one, nothing else but `secrets` counts
};

// `words` are those after the program's name.
Parsed parse_arguments(std::span<const char* const> words);

// What an option takes, as in "it takes ...".
std::string rule_of(const Option& option);
// Whether the text is a value of its shape.
bool fits(const Option& option, std::string_view text);

}  // namespace lockd::cli
