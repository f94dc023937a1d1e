// Arguments to values: which settings were given as flags, and what the program is to do.
//
//   --max-locks 10, -max-locks=10      one or two dashes, one word or two
//   --debug, --debug=off, --no-debug   booleans: the value is in the same word
//
// A small parser over the option table rather than CLI11, which reads `-port` as `-p -o -r -t`,
// and whose conversions, environment, messages and help would all have to be replaced to say what
// the specification asks for; what is left is less than the glue. For load_options(). Pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/settings/option_table.h"

namespace lockd {

// Of several that are asked for, the last of these is done.
enum class Action : std::uint8_t { serve, check_config, print_config, version, help };

struct ActionFlag {
  std::string_view name;
  Action action;
  std::string_view help;
};

std::span<const ActionFlag> action_flags();

struct CommandLine {
  Action action = Action::serve;
  std::vector<Given> given;               // in their order: a later one wins
  std::vector<std::string_view> secrets;  // where they stand, within `arguments`
  std::string error;                      // one line about the first thing that is wrong, or empty
};

// `arguments` are those after the program's name. Values are not looked at.
CommandLine read_command_line(Flavour flavour, std::span<const char* const> arguments);

}  // namespace lockd
