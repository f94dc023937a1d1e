#include "lockctl/help_text.h"

#include <algorithm>

#include "lockctl/values.h"

namespace lockd::cli {
namespace {

constexpr std::size_t kIndent = 6;

std::string option_text(const Option& option) {
  return "  " + spelling_of(option) + '\n' + wrapped(explanation_of(option), kIndent);
}

std::string group_text(const OptionGroup& group) {
  std::string text = '\n' + std::string(group.title) + ":\n";
  for (const Option& option : group.options) text += option_text(option);
  return text;
}

std::string exits_text(std::span<const ExitMeaning> exits) {
  std::string text;
  for (const ExitMeaning& exit : exits) {
    text += "  " + std::string(exit.code) + '\n' + wrapped(exit.meaning, kIndent);
  }
  return text;
}

std::string operand_text(const Operand& operand) {
  const std::string name(operand.name);
  switch (operand.count) {
    case Operand::Count::one: return ' ' + name;
    case Operand::Count::optional: return " [" + name + ']';
    case Operand::Count::many: return ' ' + name + "...";
    case Operand::Count::any: return " [" + name + "...]";
    case Operand::Count::command: return " [--] " + name + "...";
  }
  return {};
}

}  // namespace

std::string usage_of(const Command& command) {
  std::string text = "lockctl " + std::string(command.name);
  if (!command.groups.front().options.empty()) text += " [OPTION...]";
  for (const Operand& operand : command.operands) text += operand_text(operand);
  return text;
}

std::string spelling_of(const Option& option) {
  std::string text;
  if (option.letter != 0) text = std::string{'-', option.letter} + ", ";
  text += "--" + std::string(option.name);
  if (!option.alias.empty()) text += ", --" + std::string(option.alias);
  if (option.shape != Shape::toggle) text += ' ' + std::string(option.value);
  return text;
}

std::string explanation_of(const Option& option) {
  std::string text(option.help);
  if (!option.variable.empty()) text += " Variable: " + std::string(option.variable) + '.';
  return text;
}

std::string help_text() {
  std::string text = "Usage: lockctl COMMAND [OPTION...] [ARGUMENT...]\n\n" +
                     wrapped(program_description(), 0) + "\nCommands:\n";
  std::size_t width = 0;
  for (const Command& command : commands()) width = std::max(width, command.name.size());
  for (const Command& command : commands()) {
    text += "  " + std::string(command.name) + std::string(width - command.name.size() + 2, ' ') +
            std::string(command.summary) + '\n';
  }
  text +=
      "\nlockctl COMMAND --help says more of each, and lockctl man COMMAND is its manual page.\n";
  text += group_text({"Options", standard_options()});
  text += group_text({"Connection", connection_options()});
  return text + "\nExit status:\n" + exits_text(common_exits());
}

std::string help_text(const Command& command) {
  std::string text = "Usage: " + usage_of(command) + "\n\n" +
                     wrapped(std::string(command.summary) + '.', 0) + '\n' +
                     wrapped(command.description, 0);
  if (!command.operands.empty()) text += "\nArguments:\n";
  for (const Operand& operand : command.operands) {
    text += "  " + std::string(operand.name) + '\n' + wrapped(operand.help, kIndent);
  }
  for (const OptionGroup& group : command.groups) {
    if (!group.options.empty()) text += group_text(group);
  }
  if (!command.exits.empty()) {
    text += "\nExit status: that of the command, or\n" + exits_text(common_exits().subspan(1)) +
            exits_text(command.exits);
  }
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples) {
    text += "  " + std::string(example.line) + '\n' + wrapped(example.meaning, kIndent);
  }
  return text;
}

}  // namespace lockd::cli
