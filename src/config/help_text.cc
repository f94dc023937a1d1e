#include <algorithm>
#include <cctype>

#include "config/pages.h"

namespace lockd::config {
namespace {

constexpr std::string_view kMargin = "      ";
constexpr std::size_t kColumns = 80;

// One line's words, with breaks between them.
std::string wrapped_line(std::string_view line, std::string_view margin) {
  std::string out;
  std::size_t column = 0;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    if (column == 0 || column + 1 + end > kColumns) {
      out += (column == 0 ? "" : "\n") + std::string(margin);
      column = margin.size();
    } else {
      out += ' ';
      ++column;
    }
    out += line.substr(0, end);
    column += end;
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return out + '\n';
}

std::string noted(std::string_view tag, std::string_view text) {
  std::string lines = "  ";
  for (const char c : tag) lines += c == '\n' ? "\n  " : std::string(1, c);
  return lines + '\n' + wrapped(text, kMargin);
}

std::string operand_usage(const Operand& operand) {
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

std::string summary_text(std::string_view summary) {
  std::string text(summary);
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text + '.';
}

std::string command_list(const Place& place) {
  const auto places = places_of(place);
  const std::size_t prefix = place.path.size() + 1;
  std::size_t width = 0;
  for (const Place& below : places) width = std::max(width, below.path.size());
  std::string text = "\nCommands:\n";
  for (const Place& below : places) {
    if (!below.command->commands.empty()) continue;
    text += "  " + below.path.substr(prefix) + std::string(width - below.path.size() + 2, ' ') +
            std::string(below.command->summary) + '\n';
  }
  return text + '\n' + place.path + " COMMAND --help says more of each.\n";
}

std::string options_text(const Command& command) {
  std::string text;
  std::string_view group;
  for (const Option& option : command.options) {
    if (option.group != group) text += '\n' + std::string(option.group) + ":\n";
    group = option.group;
    text += noted(flag_text(option), meaning_text(option));
    if (const std::string facts = facts_text(option); !facts.empty()) {
      text += wrapped(facts, kMargin);
    }
  }
  return text;
}

std::string shared_line(const Place& place) {
  const std::string shared = shared_text(*place.command);
  if (shared.empty()) return "";
  return '\n' + std::string(place.command->shared.front().group) + ":\n  " + shared + ": " +
         shared_path(place) + " lists them.\n";
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*') out += '\\';  // would end the cell, or be taken for emphasis
    out += c;
  }
  return out;
}

std::string code(std::string_view text) { return '`' + std::string(text) + '`'; }

std::string markdown_flags(const Option& option) {
  const std::string name = "--" + std::string(option.name);
  if (option.has_negation()) return code(name) + ", " + code("--no-" + std::string(option.name));
  return code(option.takes_value() ? name + ' ' + std::string(option.value) : name);
}

// As it would stand in the file, where a default that is no value is a word to replace.
std::string commented_entry(const Option& option) {
  const std::string_view value = option.default_note.empty() ? option.by_default
                                 : option.takes_value()      ? option.value
                                                             : "BOOL";
  const char* const quote = option.kind >= Option::Kind::size ? "\"" : "";
  return '#' + std::string(option.name) + " = " + quote + std::string(value) + quote + '\n';
}

}  // namespace

std::string usage_text(const Place& place) {
  std::string text = place.path;
  if (!place.command->commands.empty()) return text + " COMMAND [OPTION...] [ARGUMENT...]";
  if (!place.command->options.empty() || !place.command->shared.empty()) text += " [OPTION...]";
  for (const Operand& operand : place.command->operands) text += operand_usage(operand);
  return text;
}

std::string shared_text(const Command& command) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  std::size_t named = 0;
  for (const Option& option : command.shared) {
    if (find_option(command.options, option.name) != nullptr || named == kNamed) continue;
    text += (named++ == 0 ? "--" : ", --") + std::string(option.name);
  }
  return text.empty() ? "" : text + " and so on";
}

std::string shared_path(const Place& place) {
  std::string path = place.path.substr(0, place.path.find(' ') + 1);
  if (path.empty()) path = place.path + ' ';
  for (const char c : place.command->shared.front().group) {
    path += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return path;
}

std::string flag_text(const Option& option) {
  const std::string name(option.name);
  std::string text;
  if (option.letter != 0) text = std::string{'-', option.letter} + ", ";
  text += "--" + name;
  if (!option.alias.empty()) text += ", --" + std::string(option.alias);
  if (option.has_negation()) text += ", --no-" + name;
  if (option.takes_value()) text += ' ' + std::string(option.value);
  return text;
}

std::string meaning_text(const Option& option) {
  // That FILE is the name of a file need not be said.
  const bool plain =
      option.kind >= Option::Kind::text && option.rule.empty() && option.choices.empty();
  std::string text(option.help);
  if (option.takes_value() && !plain) text += " Takes " + rule_of(option) + '.';
  return text;
}

std::string facts_text(const Option& option) {
  std::string text;
  const std::string_view by_default = default_text(option);
  if (!by_default.empty()) text = "Default: " + std::string(by_default) + '.';
  if (!option.is_setting()) return text;
  for (const char* variable : option.variables) {
    if (variable == nullptr) break;
    const bool first = variable == option.variables[0];
    text += (!first ? " or " : text.empty() ? "Variable: " : " Variable: ") + std::string(variable);
  }
  return text;
}

std::string wrapped(std::string_view text, std::string_view margin) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    out += line.starts_with(' ') ? std::string(margin) + std::string(line) + '\n'
                                 : wrapped_line(line, margin);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string help_text(const Place& place) {
  const Command& command = *place.command;
  std::string text = "Usage: " + usage_text(place) + "\n\n" +
                     wrapped(summary_text(command.summary), "") + '\n' +
                     wrapped(command.description, "");
  if (!command.commands.empty()) text += command_list(place);
  if (!command.operands.empty()) text += "\nArguments:\n";
  for (const Operand& operand : command.operands) text += noted(operand.name, operand.help);
  text += options_text(command) + shared_line(place);
  if (!command.exits.empty()) text += "\nExit status:\n";
  for (const Note& exit : command.exits) text += noted(exit.tag, exit.text);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const Example& example : command.examples) text += noted(example.lines, example.meaning);
  return text;
}

std::string markdown_rows(std::span<const Option> options) {
  std::string text;
  for (const Option& option : options) {
    text += "| " + markdown_flags(option) + " |";
    for (const char* variable : option.variables) {
      if (variable == nullptr) continue;
      text += (variable == option.variables[0] ? " " : ", ") + code(variable);
    }
    text += " | " + cell(default_text(option)) + " | " + cell(meaning_text(option)) + " |\n";
  }
  return text;
}

std::string markdown_groups(std::span<const Option> options) {
  std::string text;
  while (!options.empty()) {
    const std::string_view group = options.front().group;
    const auto end = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.group != group; });
    const auto size = static_cast<std::size_t>(end - options.begin());
    text += "\n## " + std::string(group) +
            "\n\n| flag | variable | default | |\n|---|---|---|---|\n" +
            markdown_rows(options.first(size));
    options = options.subspan(size);
  }
  return text;
}

std::string starting_config(std::string_view program, std::span<const Option> table) {
  const std::string name(program);
  std::string text =
      wrapped("Settings of " + name +
                  ". A line with a single # shows the default of a setting, or in capitals what to "
                  "put there. Flags and environment variables win over this file. To try it: " +
                  name + " --config FILE --check-config",
              "## ");
  std::string_view group;
  for (const Option& option : table) {
    if (option.name == "config") continue;  // not for a file to say
    if (option.group != group) text += "\n\n## --- " + std::string(option.group) + " ---\n";
    group = option.group;
    text += '\n' + wrapped(meaning_text(option), "## ") + wrapped(facts_text(option), "## ") +
            commented_entry(option);
  }
  return text;
}

}  // namespace lockd::config
