#include <string>

#include "base/shell_text.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/completion.h"

namespace lockd::cli {
namespace {

std::string completer(Shape shape) {
  if (shape == Shape::file) return "_files";
  return shape == Shape::directory ? "_files -/" : " ";
}

// One spelling of an option, as _arguments takes it.
std::string specification(const Option& option, const std::string& spelling) {
  const bool takes_value = option.shape != Shape::toggle;
  const bool is_long = spelling.starts_with("--");
  std::string text = option.repeats ? "*" : "";
  text += spelling + (takes_value ? (is_long ? "=" : "+") : "");
  text += '[' + zsh_escaped(first_sentence(option.help)) + ']';
  if (takes_value) text += ':' + zsh_escaped(option.value) + ':' + completer(option.shape);
  return shell_quoted(text);
}

std::string specifications(const Option& option, const std::string& indent) {
  std::string out;
  if (option.letter != 0) {
    out += " \\\n" + indent + specification(option, std::string{'-', option.letter});
  }
  out += " \\\n" + indent + specification(option, "--" + std::string(option.name));
  if (!option.alias.empty()) {
    out += " \\\n" + indent + specification(option, "--" + std::string(option.alias));
  }
  return out;
}

std::string operand_specification(const Operand& operand, std::size_t number) {
  if (operand.count == Operand::Count::command) return shell_quoted("*::COMMAND:_normal");
  const bool many = operand.count == Operand::Count::many || operand.count == Operand::Count::any;
  std::string text = many ? "*" : std::to_string(number);
  text +=
      (operand.count == Operand::Count::optional ? "::" : ":") + zsh_escaped(operand.name) + ':';
  if (!operand.choices.empty()) {
    text += '(' + std::string(operand.choices) + ')';
  } else if (operand.count == Operand::Count::any) {
    text += "_lockctl_commands";
  } else {
    text += completer(operand.shape);
  }
  return shell_quoted(text);
}

std::string arguments_of(const Command& command, const std::string& indent) {
  std::string out = "_arguments -s " + shell_quoted("--help[Print what it does and takes]");
  for (const OptionGroup& group : command.groups) {
    for (const Option& option : group.options) out += specifications(option, indent);
  }
  std::size_t number = 1;
  for (const Operand& operand : command.operands) {
    out += " \\\n" + indent + operand_specification(operand, number++);
  }
  return out;
}

std::string described(const std::vector<std::pair<std::string, std::string>>& words) {
  std::string out;
  for (const auto& [word, summary] : words) {
    out += "    " + shell_quoted(zsh_escaped(word) + ':' + zsh_escaped(summary)) + '\n';
  }
  return out;
}

std::string command_cases() {
  std::string out;
  for (const Command& command : commands()) {
    if (command.name.find(' ') != std::string_view::npos) continue;
    out += "    " + std::string(command.name) + ")\n      " + arguments_of(command, "        ") +
           " ;;\n";
  }
  return out;
}

std::string wal_cases() {
  std::string out;
  for (const auto& [word, summary] : second_words("wal")) {
    const Command& command = *find_command("wal " + word);
    out += "    " + word + ")\n      " + arguments_of(command, "        ") + " ;;\n";
  }
  return out;
}

}  // namespace

std::string zsh_completion() {
  std::string leading;
  for (const Option& option : standard_options()) leading += specifications(option, "    ");
  for (const Option& option : connection_options()) leading += specifications(option, "    ");
  return "#compdef lockctl\n"
         "# Completions of lockctl for zsh; made by: lockctl completion zsh\n"
         "\n"
         "_lockctl_commands() {\n"
         "  local -a all=(\n" +
         described(first_words()) +
         "  )\n"
         "  _describe command all\n"
         "}\n"
         "\n"
         "_lockctl_wal() {\n"
         "  local curcontext=$curcontext state line\n"
         "  local -a all=(\n" +
         described(second_words("wal")) +
         "  )\n"
         "  _arguments -C '1: :->command' '*:: :->arguments'\n"
         "  [[ $state == command ]] && _describe command all\n"
         "  [[ $state == arguments ]] && case $words[1] in\n" +
         wal_cases() +
         "  esac\n"
         "}\n"
         "\n"
         "_lockctl() {\n"
         "  local curcontext=$curcontext state line\n"
         "  _arguments -C -s" +
         leading +
         " \\\n"
         "    '1: :->command' '*:: :->arguments'\n"
         "  [[ $state == command ]] && _lockctl_commands\n"
         "  [[ $state == arguments ]] && case $words[1] in\n"
         "    help) _lockctl_commands ;;\n"
         "    wal) _lockctl_wal ;;\n" +
         command_cases() +
         "  esac\n"
         "}\n"
         "\n"
         "if [[ $funcstack[1] == _lockctl ]]; then\n"
         "  _lockctl \"$@\"\n"
         "else\n"
         "  compdef _lockctl lockctl\n"
         "fi\n";
}

}  // namespace lockd::cli
