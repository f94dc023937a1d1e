// Completions of the servers' flags, from the table of settings.
#include <string>
#include <string_view>

#include "base/shell_text.h"
#include "server/settings/command_line.h"
#include "server/settings/option_pages.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

bool is_boolean(const Setting& setting) { return setting.shape == Setting::Shape::boolean; }

// What begins every one of them, as a comment.
std::string origin_text(Flavour flavour, std::string_view shell) {
  return "# Completions of " + std::string(program_name(flavour)) + " for " + std::string(shell) +
         "; made by the build, from the table of settings\n\n";
}

// A function's name has no hyphens: _lockd_server.
std::string function_name(Flavour flavour) {
  std::string name = '_' + std::string(program_name(flavour));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

// --- bash ---

// How the value of a flag is completed.
std::string bash_case(const Setting& setting) {
  const std::string_view value = setting.value;
  const std::string action = value == "FILE"        ? "COMPREPLY=($(compgen -f -- \"$cur\")); "
                             : value == "DIRECTORY" ? "COMPREPLY=($(compgen -d -- \"$cur\")); "
                                                    : "";
  return "    --" + std::string(setting.name) + ") " + action + "return ;;\n";
}

std::string bash_flags(Flavour flavour) {
  std::string all;
  for (const Setting& setting : settings(flavour)) {
    all += "--" + std::string(setting.name) + ' ';
    if (is_boolean(setting)) all += "--no-" + std::string(setting.name) + ' ';
  }
  for (const ActionFlag& flag : action_flags()) all += "--" + std::string(flag.name) + ' ';
  all.pop_back();
  return all;
}

// --- zsh ---

std::string zsh_value(const Setting& setting) {
  const std::string_view value = setting.value;
  return ':' + zsh_escaped(value) + ':' +
         (value == "FILE"        ? "_files"
          : value == "DIRECTORY" ? "_files -/"
                                 : " ");
}

std::string zsh_line(const std::string& flag, std::string_view help, const std::string& value) {
  return " \\\n  " + shell_quoted(flag + '[' + zsh_escaped(first_sentence(help)) + ']' + value);
}

std::string zsh_lines(const Setting& setting) {
  const std::string name(setting.name);
  if (!is_boolean(setting)) return zsh_line("--" + name + '=', setting.help, zsh_value(setting));
  return zsh_line("--" + name, setting.help, "") +
         zsh_line("--no-" + name, "Not: " + std::string(setting.help), "");
}

// --- fish ---

std::string fish_line(Flavour flavour, const std::string& what, std::string_view help) {
  return "complete -c " + std::string(program_name(flavour)) + " -l " + what + " -d " +
         fish_quoted(first_sentence(help)) + '\n';
}

std::string fish_lines(Flavour flavour, const Setting& setting) {
  const std::string name(setting.name);
  if (is_boolean(setting)) {
    return fish_line(flavour, name, setting.help) +
           fish_line(flavour, "no-" + name, "Not: " + std::string(setting.help));
  }
  const std::string_view value = setting.value;
  return fish_line(flavour,
                   name + (value == "FILE"        ? " -r -F"
                           : value == "DIRECTORY" ? " -x -a '(__fish_complete_directories)'"
                                                  : " -x"),
                   setting.help);
}

}  // namespace

std::string bash_completion(Flavour flavour) {
  std::string values;
  for (const Setting& setting : settings(flavour)) {
    if (!is_boolean(setting)) values += bash_case(setting);
  }
  const std::string function = function_name(flavour);
  return origin_text(flavour, "bash") + function +
         "() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  COMPREPLY=()\n"
         "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  [[ $cur == = ]] && cur=\n"
         "  case $prev in\n" +
         values +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"" +
         bash_flags(flavour) +
         "\" -- \"$cur\"))\n"
         "}\n\n"
         "complete -F " +
         function + ' ' + std::string(program_name(flavour)) + '\n';
}

std::string zsh_completion(Flavour flavour) {
  std::string text = "#compdef " + std::string(program_name(flavour)) + '\n' +
                     origin_text(flavour, "zsh") + "_arguments";
  for (const Setting& setting : settings(flavour)) text += zsh_lines(setting);
  for (const ActionFlag& flag : action_flags()) {
    text += zsh_line("--" + std::string(flag.name), flag.help, "");
  }
  return text + '\n';
}

std::string fish_completion(Flavour flavour) {
  std::string text =
      origin_text(flavour, "fish") + "complete -c " + std::string(program_name(flavour)) + " -f\n";
  for (const Setting& setting : settings(flavour)) text += fish_lines(flavour, setting);
  for (const ActionFlag& flag : action_flags()) {
    text += fish_line(flavour, std::string(flag.name), flag.help);
  }
  return text;
}

}  // namespace lockd
