// What a program can be told: one table of options, operands and commands, from which come its
// parser, settings, help, manual, completions and pages of the documentation.
//
// A program brings its table as constants (server/settings/option_table.cc,
// lockctl/command_table.cc); an option is added by adding a row. Constant: any thread may read it.
//
//   constexpr auto kOptions = std::to_array<Option>({
//       whole("cluster", 1, 9, {.variables = {"LOCKD_CLUSTER"}, .by_default = "1"}, "Members."),
//   });
//   constexpr Command kProgram{.name = "lockctl", .summary = "...", .options = kOptions};
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/values.h"

namespace lockd::config {

struct Option {
  enum class Kind : std::uint8_t {
    action,   // instead of what the program does: takes no value, and is no setting
    boolean,  // --name, --no-name, --name=VALUE
    whole,
    seconds,
    duration,  // seconds, or a time with its unit
    size,
    text,
    file,
    directory,
  };

  std::string_view name = {};   // without its dashes; of a setting, its name in the file too
  std::string_view alias = {};  // another long name that is read, if there is one
  char letter = 0;              // 0: none
  Kind kind = Kind::text;
  std::string_view value = {};         // what stands for the value in the help: "SECONDS"
  std::string_view group = "Options";  // those of a group stand together
  std::string_view help = {};
  // Those that have a variable are settings: the first that is set counts.
  std::array<const char*, 3> variables = {};

  // What it takes.
  std::string_view rule = {};      // as in "it takes ..."; empty: what the kind says
  std::uint64_t min = 0;           // of a whole number or a size; of a time, in nanoseconds
  std::uint64_t max = UINT64_MAX;  // likewise
  std::string_view choices = {};   // the words that it may be, with spaces between; empty: any
  // Of a text: as it is kept, or nothing when it breaks the rule.
  std::optional<std::string> (*parse)(std::string_view text) = nullptr;
  bool repeats = false;  // each adds to those before, with a comma; otherwise the last one counts
  bool secret = false;   // its value is never shown

  // What applies when it is not given.
  std::string_view by_default = {};    // as someone would give it; empty: it is not set
  std::string_view default_note = {};  // what to say of it, where no value does

  constexpr bool is_setting() const { return variables[0] != nullptr; }
  constexpr bool takes_value() const { return kind > Kind::boolean; }
  // What another source may have switched on needs a way to be switched off.
  constexpr bool has_negation() const { return kind == Kind::boolean && is_setting(); }
};

// A word that is no option.
struct Operand {
  enum class Count : std::uint8_t {
    one,
    optional,
    many,     // one at least
    any,      // or none at all
    command,  // a command and its arguments: all words behind the operand before it
  };

  std::string_view name = {};
  Count count = Count::one;
  std::string_view help = {};
  Option::Kind kind = Option::Kind::text;
  std::string_view choices = {};  // as of an option
  std::string_view instead = {};  // of a command: the option that may stand for it
  // Of the operand before a command: the boolean with which there may be several of it; then -- or
  // the option that stands for the command ends them.
  std::string_view several_by = {};
  // Of a first operand: the words behind the program's name by which the program itself lists what
  // it may be, one a line, given its beginning as the last word. Shells ask when they complete it.
  std::string_view listed_by = {};
};

// Something in bold, and what is to be said of it.
struct Note {
  std::string_view tag = {};
  std::string_view text = {};
};

struct Section {
  std::string_view title = {};
  std::span<const Note> notes = {};
};

struct Example {
  std::string_view lines = {};
  std::string_view meaning = {};
};

// A program, or one of its commands.
struct Command {
  std::string_view name = {};  // one word
  std::string_view summary = {};
  std::string_view description = {};  // paragraphs, with empty lines between
  std::span<const Operand> operands = {};
  std::span<const Option> options = {};
  // Those that several commands have, all of one group. An option of its own hides one of the same
  // name. The pages of a command list its own alone; the program has a command that is named as the
  // group, and whose own they are.
  std::span<const Option> shared = {};
  std::span<const Command> commands = {};  // when there are any, one of them is named
  std::span<const Note> exits = {};        // what it exits with
  std::span<const Section> sections = {};  // what only the manual says
  std::span<const Example> examples = {};
  std::string_view see_also = {};  // other pages of the manual, with spaces between
};

// --- how rows are written ---

constexpr Option of_kind(Option::Kind kind, std::string_view name, std::string_view value,
                         Option rest, std::string_view help) {
  rest.kind = kind;
  rest.name = name;
  rest.help = help;
  if (rest.value.empty()) rest.value = value;
  return rest;
}
constexpr Option boolean(std::string_view name, Option rest, std::string_view help) {
  return of_kind(Option::Kind::boolean, name, "", rest, help);
}
constexpr Option whole(std::string_view name, std::uint64_t min, std::uint64_t max, Option rest,
                       std::string_view help) {
  rest.min = min;
  rest.max = max;
  return of_kind(Option::Kind::whole, name, "N", rest, help);
}
constexpr Option seconds(std::string_view name, Nanoseconds min, Option rest,
                         std::string_view help) {
  rest.min = static_cast<std::uint64_t>(min.count());
  rest.max = std::min(rest.max, kSecondsMax * 1'000'000'000);
  return of_kind(Option::Kind::seconds, name, "SECONDS", rest, help);
}
constexpr Option size(std::string_view name, std::uint64_t min, Option rest,
                      std::string_view help) {
  rest.min = min;
  return of_kind(Option::Kind::size, name, "BYTES", rest, help);
}
constexpr Option duration(std::string_view name, Nanoseconds min, Option rest,
                          std::string_view help) {
  Option option = seconds(name, min, rest, help);
  option.kind = Option::Kind::duration;
  option.value = "TIME";
  return option;
}
constexpr Option text(std::string_view name, std::string_view value, Option rest,
                      std::string_view help) {
  return of_kind(Option::Kind::text, name, value, rest, help);
}
constexpr Option file(std::string_view name, Option rest, std::string_view help) {
  return of_kind(Option::Kind::file, name, "FILE", rest, help);
}
constexpr Option directory(std::string_view name, Option rest, std::string_view help) {
  return of_kind(Option::Kind::directory, name, "DIRECTORY", rest, help);
}
constexpr Option action(std::string_view name, char letter, std::string_view help) {
  return of_kind(Option::Kind::action, name, "", {.letter = letter}, help);
}

template <std::size_t kSize>
constexpr std::array<Option, kSize> in_group(std::string_view group,
                                             std::array<Option, kSize> options) {
  for (Option& option : options) option.group = group;
  return options;
}

// Arrays one behind the other.
template <typename Row, std::size_t... kSizes>
constexpr auto joined(const std::array<Row, kSizes>&... parts) {
  std::array<Row, (kSizes + ...)> all{};
  auto next = all.begin();
  ((next = std::copy(parts.begin(), parts.end(), next)), ...);
  return all;
}

// Every command has it, whether it stands among its options or not.
inline constexpr Option kHelp = action("help", 'h', "Print this, and exit.");
inline constexpr Option kVersion = action("version", 'V', "Print the version, and exit.");

// --- how they are read ---

// The options of a command, its own first, without those that are hidden.
std::vector<const Option*> options_of(const Command& command);

// By long name or alias, or by letter; null when the command has none.
const Option* find_option(const Command& command, std::string_view name);
const Option* find_option(const Command& command, char letter);
const Option* find_option(std::span<const Option> options, std::string_view name);

// The command of these words among those of `program`; null when there is none.
const Command* find_command(const Command& program, std::string_view words);

// A command with the words that call it: "lockctl wal verify".
struct Place {
  std::string path;
  const Command* command = nullptr;
};

Place place_of(const Command& program);
// A command itself, and all below it, in their order.
std::vector<Place> places_of(const Place& place);

// What an option takes, as in "it takes ...".
std::string rule_of(const Option& option);

// The text as it is kept, so that two spellings of one value are one text; nothing when it breaks
// the rule.
std::optional<std::string> kept_text(const Option& option, std::string_view text);

// The default as people read it: a value, or a note such as "the number of cores".
std::string_view default_text(const Option& option);

// " (did you mean --port?)", with the dashes that are given; empty when no name is near.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& names,
                       std::string_view dashes);

}  // namespace lockd::config
