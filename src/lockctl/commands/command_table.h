// The table of commands: everything that lockctl can be told, once.
//
// The parser, --help, the manual pages and the completions of three shells all come from here; a
// command or an option is added by adding a row. Constant: any thread may read it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "lockctl/output/exit_codes.h"

namespace lockd::cli {

struct Invocation;

enum class Shape : std::uint8_t { toggle, text, whole, seconds, file, directory };

struct Option {
  std::string_view name = {};   // without its dashes; for a setting, its name in the file too
  char letter = 0;              // 0: none
  std::string_view alias = {};  // another long name that is read, or empty
  Shape shape = Shape::toggle;
  std::string_view value = {};  // what stands for the value: "SECONDS"
  std::string_view help = {};
  std::string_view variable = {};  // of the environment, for a setting
  std::uint64_t min = 0;           // of a whole number
  std::uint64_t max = UINT64_MAX;
  bool repeats = false;  // each adds to those before; otherwise the last one counts
  bool secret = false;   // its value is never shown
};

struct OptionGroup {
  std::string_view title = {};
  std::span<const Option> options = {};
};

struct Operand {
  enum class Count : std::uint8_t {
    one,
    optional,
    many,     // one at least
    any,      // or none at all
    command,  // the words that `run` runs, or none where -c stands for them
  };

  std::string_view name = {};
  Count count = Count::one;
  std::string_view help = {};
  Shape shape = Shape::text;
  std::string_view choices = {};  // the words that it may be, with spaces between
};

struct Example {
  std::string_view line = {};
  std::string_view meaning = {};
};

struct Command {
  std::string_view name = {};  // one word, or two: "wal verify"
  std::string_view summary = {};
  std::string_view description = {};  // paragraphs, with empty lines between
  std::span<const Operand> operands = {};
  std::array<OptionGroup, 3> groups = {};  // empty ones last
  std::span<const Example> examples = {};
  std::span<const ExitMeaning> exits = {};  // besides the common ones
  int (*execute)(const Invocation& invocation) = nullptr;
};

std::span<const Command> commands();
// Null when there is none.
const Command* find_command(std::string_view name);

// The options by which any command finds its server; they are settings.
std::span<const Option> connection_options();
// -h and --help, which every command has, and with --version lockctl itself.
std::span<const Option> standard_options();

std::string_view program_version();
// What lockctl is, and where settings come from: for its own help and manual page.
std::string_view program_summary();
std::string_view program_description();

// The option of a command by its long name, alias or letter; null when it has none.
const Option* find_option(const Command& command, std::string_view name);
const Option* find_option(const Command& command, char letter);

}  // namespace lockd::cli
