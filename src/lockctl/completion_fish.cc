#include <string>

#include "base/shell_text.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/completion.h"

namespace lockd::cli {
namespace {

// When a command has been typed: its one word, or both of its two.
std::string condition(std::string_view name) {
  const std::size_t space = name.find(' ');
  const std::string seen = "__fish_seen_subcommand_from ";
  if (space == std::string_view::npos) return seen + std::string(name);
  return seen + std::string(name.substr(0, space)) + "; and " + seen +
         std::string(name.substr(space + 1));
}

std::string one(const std::string& when, const std::string& what, std::string_view summary) {
  return "complete -c lockctl -n " + fish_quoted(when) + what + " -d " + fish_quoted(summary) +
         '\n';
}

std::string option_lines(const std::string& when, const Option& option) {
  std::string what;
  if (option.letter != 0) what += " -s " + std::string(1, option.letter);
  what += " -l " + std::string(option.name);
  if (!option.alias.empty()) what += " -l " + std::string(option.alias);
  if (option.shape == Shape::file) what += " -r -F";
  if (option.shape == Shape::directory) what += " -x -a '(__fish_complete_directories)'";
  if (option.shape == Shape::text || option.shape == Shape::whole ||
      option.shape == Shape::seconds) {
    what += " -x";
  }
  return one(when, what, first_sentence(option.help));
}

std::string operand_lines(const std::string& when, const Operand& operand) {
  if (operand.shape == Shape::directory) {
    return one(when, " -a '(__fish_complete_directories)'", operand.help);
  }
  if (operand.count == Operand::Count::command) {
    return one(when, " -a '(__fish_complete_subcommand --fcs-skip=2)'", operand.help);
  }
  if (operand.choices.empty()) return "";
  return one(when, " -a " + fish_quoted(operand.choices), operand.help);
}

std::string command_lines(const Command& command) {
  const std::string when = condition(command.name);
  std::string out;
  for (const OptionGroup& group : command.groups) {
    for (const Option& option : group.options) out += option_lines(when, option);
  }
  for (const Operand& operand : command.operands) out += operand_lines(when, operand);
  return out;
}

}  // namespace

std::string fish_completion() {
  std::string out =
      "# Completions of lockctl for fish; made by: lockctl completion fish\n"
      "\n"
      "complete -c lockctl -f\n";
  for (const auto& [word, summary] : first_words()) {
    out += one("__fish_use_subcommand", " -a " + word, summary);
  }
  for (const Option& option : standard_options()) {
    out += option_lines("__fish_use_subcommand", option);
  }
  for (const auto& [word, summary] : second_words("wal")) {
    out +=
        one("__fish_seen_subcommand_from wal; and not __fish_seen_subcommand_from inspect verify",
            " -a " + word, summary);
  }
  for (const Command& command : commands()) out += command_lines(command);
  return out;
}

}  // namespace lockd::cli
