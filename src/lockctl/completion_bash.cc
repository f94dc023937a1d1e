#include <string>

#include "base/shell_text.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/completion.h"

namespace lockd::cli {
namespace {

// How an option may be typed, with a sign between.
std::string spellings(const Option& option, std::string_view between) {
  std::string text = "--" + std::string(option.name);
  if (!option.alias.empty()) text += std::string(between) + "--" + std::string(option.alias);
  if (option.letter != 0) text += std::string(between) + '-' + option.letter;
  return text;
}

std::string options_of(const Command& command) {
  std::string all = "--help -h";
  for (const OptionGroup& group : command.groups) {
    for (const Option& option : group.options) all += ' ' + spellings(option, " ");
  }
  return all;
}

// A case of `_lockctl_value`: what the value of an option is completed by.
std::string value_case(const std::string& command, const Option& option) {
  const char* const action = option.shape == Shape::file        ? "file"
                             : option.shape == Shape::directory ? "directory"
                                                                : "text";
  return "    " + shell_quoted(command + ':') +
         spellings(option, '|' + shell_quoted(command + ':')) + ") echo " + action + " ;;\n";
}

std::string value_cases() {
  std::string all;
  for (const Option& option : connection_options()) {
    if (option.shape != Shape::toggle) all += value_case("", option);
  }
  for (const Command& command : commands()) {
    for (const OptionGroup& group : command.groups) {
      for (const Option& option : group.options) {
        if (option.shape != Shape::toggle) all += value_case(std::string(command.name), option);
      }
    }
  }
  return all;
}

std::string words_of(const std::vector<std::pair<std::string, std::string>>& words) {
  std::string all;
  for (const auto& [word, summary] : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

std::string operand_words(const Command& command) {
  if (command.operands.empty()) return "";
  const Operand& operand = command.operands.front();
  if (operand.shape == Shape::directory) return "$(compgen -d -- \"$cur\")";
  if (operand.name == "COMMAND" && operand.count == Operand::Count::any) {
    return words_of(first_words());
  }
  return std::string(operand.choices);
}

std::string command_cases() {
  std::string all;
  for (const Command& command : commands()) {
    all += "    " + shell_quoted(command.name) + ") words=\"" + operand_words(command) +
           "\"; options=\"" + options_of(command) + "\" ;;\n";
  }
  return all;
}

}  // namespace

std::string bash_completion() {
  std::string all = "--help -h --version -V";
  for (const Option& option : connection_options()) all += ' ' + spellings(option, " ");
  return "# Completions of lockctl for bash; made by: lockctl completion bash\n"
         "\n"
         "# What the value of an option of a command is; nothing when it takes none.\n"
         "_lockctl_value() {\n"
         "  case $1:$2 in\n" +
         value_cases() +
         "  esac\n"
         "}\n"
         "\n"
         "_lockctl() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local word command= operands=0 skip= words= options= i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    if [[ $word == = ]]; then skip=1; continue; fi\n"
         "    if [[ $skip ]]; then skip=; continue; fi\n"
         "    case $word in\n"
         "      -*) [[ $(_lockctl_value \"$command\" \"$word\") ]] && skip=1 ;;\n"
         "      *)\n"
         "        if [[ -z $command || $command == wal ]]; then\n"
         "          command=${command:+$command }$word\n"
         "        else\n"
         "          operands=$((operands + 1))\n"
         "        fi\n"
         "        ;;\n"
         "    esac\n"
         "    if [[ $command == run && $operands -ge 1 ]]; then\n"
         "      [[ ${COMP_WORDS[i+1]} == -- && $((i + 1)) -lt $COMP_CWORD ]] && i=$((i + 1))\n"
         "      if declare -F _command_offset >/dev/null; then\n"
         "        _command_offset $((i + 1))\n"
         "      else\n"
         "        COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
         "      fi\n"
         "      return\n"
         "    fi\n"
         "  done\n"
         "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  [[ $cur == = ]] && cur= prev=$prev\n"
         "  case $(_lockctl_value \"$command\" \"$prev\") in\n"
         "    file) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
         "    directory) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
         "    text) return ;;\n"
         "  esac\n"
         "  case $command in\n"
         "    '') words=\"" +
         words_of(first_words()) + " help\"; options=\"" + all + "\" ;;\n" + "    wal) words=\"" +
         words_of(second_words("wal")) + "\" ;;\n" + "    help) words=\"" +
         words_of(first_words()) + "\" ;;\n" + command_cases() +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "\n"
         "complete -F _lockctl lockctl\n";
}

}  // namespace lockd::cli
