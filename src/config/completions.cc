// Completions for bash, zsh and fish.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/pages.h"

namespace lockd::config {
namespace {

using Count = Operand::Count;
using Kind = Option::Kind;
using Described = std::vector<std::pair<std::string, std::string_view>>;  // a word, and its summary

// --- what all shells need ---

// What begins every one of them, as a comment.
std::string origin_text(const Command& program, std::string_view shell) {
  return "# Completions of " + std::string(program.name) + " for " + std::string(shell) +
         "; made from its table of options\n\n";
}

// In single quotes, as bash and zsh take it.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

// The first sentence of a help, for a place where there is room for one.
std::string first_sentence(std::string_view help) {
  const std::size_t end = std::min({help.find(". "), help.find("; "), help.size()});
  std::string sentence(help.substr(0, end));
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// How an option may be typed, with its dashes.
std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> all{"--" + std::string(option.name)};
  if (option.has_negation()) all.push_back("--no-" + std::string(option.name));
  if (!option.alias.empty()) all.push_back("--" + std::string(option.alias));
  if (option.letter != 0) all.push_back(std::string{'-', option.letter});
  return all;
}

bool has_help(const Command& command) {
  const auto all = options_of(command);
  return std::any_of(all.begin(), all.end(),
                     [](const Option* option) { return option->name == kHelp.name; });
}

std::vector<const Option*> offered_options(const Command& command) {
  auto all = options_of(command);
  if (!has_help(command)) all.insert(all.begin(), &kHelp);
  return all;
}

Described commands_below(const Command& command) {
  Described all;
  for (const Command& below : command.commands) all.emplace_back(below.name, below.summary);
  return all;
}

std::string words_of(const Described& described) {
  std::string all;
  for (const auto& [word, summary] : described) all += (all.empty() ? "" : " ") + word;
  return all;
}

// The words behind the program's name that call a command: empty, "run", "wal verify".
std::string words_behind(const Command& program, const Place& place) {
  return place.path.substr(std::min(program.name.size() + 1, place.path.size()));
}

bool names_command(const Operand& operand) {
  return operand.count == Count::any && operand.name == "COMMAND";
}

// --- bash ---

std::string bash_kind(const Option& option) {
  if (!option.choices.empty()) return shell_quoted(option.choices);
  return option.kind == Kind::file ? "file" : option.kind == Kind::directory ? "directory" : "text";
}

// Cases of the function that says what a value is.
std::string bash_values(const std::string& words, const Command& command) {
  std::string all;
  for (const Option* option : options_of(command)) {
    if (!option->takes_value()) continue;
    std::string patterns;
    for (const std::string& spelling : spellings(*option)) {
      patterns += (patterns.empty() ? "" : "|") + shell_quoted(words + ':' + spelling);
    }
    all += "    " + patterns + ") echo " + bash_kind(*option) + " ;;\n";
  }
  return all;
}

std::string bash_options(const Command& command) {
  std::string all;
  for (const Option* option : offered_options(command)) {
    for (const std::string& spelling : spellings(*option)) {
      all += (all.empty() ? "" : " ") + spelling;
    }
  }
  return all;
}

std::string bash_operands(const Command& program, const Command& command) {
  if (!command.commands.empty()) {
    return words_of(commands_below(command)) + (&command == &program ? " help" : "");
  }
  // A program that takes nothing but options offers them unasked.
  if (command.operands.empty()) return &command == &program ? bash_options(command) : "";
  const Operand& operand = command.operands.front();
  if (operand.kind == Kind::directory) return "$(compgen -d -- \"$cur\")";
  return names_command(operand) ? words_of(commands_below(program)) : std::string(operand.choices);
}

// The words that list what the first operand may be; none when only people know.
std::string listed_by(const Command& command) {
  return std::string(command.operands.empty() ? "" : command.operands.front().listed_by);
}

// What depends on the table, of what bash is given.
struct BashParts {
  std::string values;
  std::string parents;  // patterns of those that have commands below them
  std::string runners;  // likewise of those that run others, with the number of their operands
  std::string commands;
};

std::string bash_listed(const Command& command) {
  const std::string words = listed_by(command);
  return words.empty() ? "" : "; listed_by=\"" + words + '"';
}

BashParts bash_parts(const Command& program) {
  BashParts parts;
  for (const Place& place : places_of(place_of(program))) {
    const Command& command = *place.command;
    const std::string words = words_behind(program, place);
    parts.values += bash_values(words, command);
    if (!command.commands.empty()) {
      parts.parents += (parts.parents.empty() ? "" : "|") + shell_quoted(words);
    }
    if (!command.operands.empty() && command.operands.back().count == Count::command) {
      parts.runners += (parts.runners.empty() ? "" : "|") +
                       shell_quoted(words + ':' + std::to_string(command.operands.size() - 1));
    }
    parts.commands += "    " + shell_quoted(words) + ") words=\"" +
                      bash_operands(program, command) + "\"; options=\"" + bash_options(command) +
                      '"' + bash_listed(command) + " ;;\n";
  }
  if (!program.commands.empty()) {
    parts.commands += "    'help') words=\"" + words_of(commands_below(program)) + "\" ;;\n";
  }
  return parts;
}

// The words of a command are completed as if they stood alone.
std::string bash_runners(const std::string& runners) {
  if (runners.empty()) return "";
  return "    case $command:$operands in\n"
         "      " +
         runners +
         ")\n"
         "        [[ ${COMP_WORDS[i+1]} == -- && $((i + 1)) -lt $COMP_CWORD ]] && i=$((i + 1))\n"
         "        if declare -F _command_offset >/dev/null; then\n"
         "          _command_offset $((i + 1))\n"
         "        else\n"
         "          COMPREPLY=($(compgen -c -f -- \"$cur\"))\n"
         "        fi\n"
         "        return ;;\n"
         "    esac\n";
}

bool lists_anything(const Command& program) {
  const auto places = places_of(place_of(program));
  return std::any_of(places.begin(), places.end(),
                     [](const Place& place) { return !listed_by(*place.command).empty(); });
}

// bash takes a colon for the end of a word: what is offered has to lack what stands before it.
std::string bash_lister(const Command& program, const std::string& function) {
  if (!lists_anything(program)) return "";
  return "# Offers what the program itself lists; nothing, and soon, when it cannot.\n" + function +
         "_listed() {\n"
         "  local typed=${COMP_LINE:0:COMP_POINT} name\n"
         "  typed=${typed##* }\n"
         "  [[ $typed == *\"$cur\" ]] || typed=$cur\n"
         "  while IFS= read -r name; do\n"
         "    COMPREPLY+=(\"$(printf %q \"${name#\"${typed%\"$cur\"}\"}\")\")\n"
         "  done < <(\"${COMP_WORDS[0]}\" \"$@\" -- \"$typed\" 2>/dev/null)\n"
         "}\n"
         "\n";
}

// --- zsh ---

// Within the brackets and colons of _arguments and _describe.
std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_completer(Kind kind, std::string_view choices) {
  if (!choices.empty()) return '(' + std::string(choices) + ')';
  return kind == Kind::file ? "_files" : kind == Kind::directory ? "_files -/" : " ";
}

// As _arguments takes it.
std::string zsh_option(const Option& option, const std::string& spelling) {
  const bool negation = spelling.starts_with("--no-") && option.has_negation();
  std::string text = (option.repeats ? "*" : "") + spelling;
  if (option.takes_value()) text += spelling.starts_with("--") ? "=" : "+";
  text += '[' + zsh_escaped((negation ? "Not: " : "") + first_sentence(option.help)) + ']';
  if (option.takes_value()) {
    text += ':' + zsh_escaped(option.value) + ':' + zsh_completer(option.kind, option.choices);
  }
  return shell_quoted(text);
}

bool is_many(const Operand& operand) {
  return operand.count == Count::many || operand.count == Count::any;
}

std::string zsh_operand(const Command& program, const Operand& operand, std::size_t number) {
  if (operand.count == Count::command) return shell_quoted("*::COMMAND:_normal");
  std::string text = is_many(operand) ? "*" : std::to_string(number);
  text += (operand.count == Count::optional ? "::" : ":") + zsh_escaped(operand.name) + ':';
  const std::string function = '_' + std::string(program.name);
  if (names_command(operand)) {
    text += function + "_commands";
  } else if (!operand.listed_by.empty()) {
    // The space keeps _arguments from adding words of its own.
    text += ' ' + function + "_listed " + std::string(operand.listed_by);
  } else {
    text += zsh_completer(operand.kind, operand.choices);
  }
  return shell_quoted(text);
}

std::string zsh_arguments(const Command& program, const Command& command,
                          const std::string& indent) {
  std::string out;
  for (const Option* option : offered_options(command)) {
    for (const std::string& spelling : spellings(*option)) {
      out += " \\\n" + indent + zsh_option(*option, spelling);
    }
  }
  std::size_t number = 1;
  for (const Operand& operand : command.operands) {
    out += " \\\n" + indent + zsh_operand(program, operand, number++);
    if (is_many(operand)) break;  // where they end zsh cannot know
  }
  return out;
}

// A function for what has commands below it: those functions first.
std::string zsh_parent(const Command& program, const Command& command,
                       const std::string& function) {
  std::string before;
  std::string list;
  std::string cases;
  for (const Command& below : command.commands) {
    const std::string name(below.name);
    list += "    " + shell_quoted(zsh_escaped(name) + ':' + zsh_escaped(below.summary)) + '\n';
    if (!below.commands.empty()) {
      before += zsh_parent(program, below, function + '_' + name);
      cases += "    " + name + ") " + function + '_' + name + " ;;\n";
    } else {
      cases += "    " + name + ")\n      _arguments -s" +
               zsh_arguments(program, below, "        ") + " ;;\n";
    }
  }
  return before + function + "_commands() {\n  local -a all=(\n" + list +
         "  )\n  _describe command all\n}\n\n" + function +
         "() {\n"
         "  local curcontext=$curcontext state line\n"
         "  _arguments -C -s" +
         zsh_arguments(program, command, "    ") +
         " \\\n    '1: :->command' '*:: :->arguments'\n"
         "  [[ $state == command ]] && " +
         function +
         "_commands\n"
         "  [[ $state == arguments ]] && case $words[1] in\n"
         "    help) " +
         function + "_commands ;;\n" + cases + "  esac\n}\n\n";
}

std::string zsh_lister(const Command& program, const std::string& function) {
  if (!lists_anything(program)) return "";
  return "# Offers what the program itself lists; nothing, and soon, when it cannot.\n" + function +
         "_listed() {\n"
         "  local -a found=(${(f)\"$(_call_program listed " +
         std::string(program.name) +
         " ${(q)@} -- ${(q)PREFIX} 2>/dev/null)\"})\n"
         "  compadd -a found\n"
         "}\n"
         "\n";
}

// --- fish ---

// In single quotes, within which fish knows backslashes.
std::string fish_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + '\'';
}

// When the words of a command have been typed, and of a parent nothing further.
std::string fish_condition(const Command& program, const Place& place) {
  if (place.command == &program) return program.commands.empty() ? "" : "__fish_use_subcommand";
  std::string words = words_behind(program, place);
  std::string when;
  for (std::size_t end = 0; end != std::string::npos;) {
    end = words.find(' ');
    when += (when.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
            words.substr(0, end);
    words.erase(0, end == std::string::npos ? end : end + 1);
  }
  if (place.command->commands.empty()) return when;
  return when + "; and not __fish_seen_subcommand_from " + words_of(commands_below(*place.command));
}

class FishLines {
 public:
  FishLines(const Command& program, const Place& place)
      : program_(program.name), when_(fish_condition(program, place)), start_(start(when_)) {}

  void add(const std::string& what, std::string_view summary) {
    text_ += start_ + what + " -d " + fish_quoted(summary) + '\n';
  }

  void add_option(const Option& option) {
    std::string what;
    if (option.letter != 0) what += " -s " + std::string(1, option.letter);
    what += " -l " + std::string(option.name);
    if (!option.alias.empty()) what += " -l " + std::string(option.alias);
    if (option.kind == Kind::file) {
      what += " -r -F";
    } else if (option.kind == Kind::directory) {
      what += " -x -a '(__fish_complete_directories)'";
    } else if (option.takes_value()) {
      what += option.choices.empty() ? " -x" : " -x -a " + fish_quoted(option.choices);
    }
    const std::string summary = first_sentence(option.help);
    add(what, summary);
    if (option.has_negation()) add(" -l no-" + std::string(option.name), "Not: " + summary);
  }

  void add_operand(const Operand& operand) {
    if (operand.kind == Kind::directory) {
      add(" -a '(__fish_complete_directories)'", operand.help);
    } else if (operand.count == Count::command) {
      add(" -a '(__fish_complete_subcommand --fcs-skip=2)'", operand.help);
    } else if (!operand.choices.empty()) {
      add(" -a " + fish_quoted(operand.choices), operand.help);
    } else if (!operand.listed_by.empty()) {
      add_listed(operand);
    }
  }

  const std::string& text() const { return text_; }

 private:
  std::string start(const std::string& when) const {
    return "complete -c " + program_ + (when.empty() ? "" : " -n " + fish_quoted(when));
  }

  // For the first operand only: behind the program and the command nothing but options.
  void add_listed(const Operand& operand) {
    const std::string first = when_ +
                              "; and test (count (string match -v -- \"-*\" (commandline -opc))) "
                              "-le 2";
    const std::string words = '(' + program_ + ' ' + std::string(operand.listed_by) +
                              " -- (commandline -ct) 2>/dev/null)";
    text_ += start(first) + " -a " + fish_quoted(words) + " -d " + fish_quoted(operand.name) + '\n';
  }

  const std::string program_;
  const std::string when_;
  const std::string start_;
  std::string text_;
};

}  // namespace

std::string bash_completion(const Command& program) {
  std::string function = '_' + std::string(program.name);
  std::replace(function.begin(), function.end(), '-', '_');
  const BashParts parts = bash_parts(program);
  const std::string word_case =
      parts.parents.empty()
          ? ""
          : "          " + parts.parents + ") command=${command:+$command }$word ;;\n";
  return origin_text(program, "bash") + bash_lister(program, function) +
         "# What the value of an option of a command is; nothing when it takes none.\n" + function +
         "_value() {\n"
         "  case $1:$2 in\n" +
         parts.values +
         "  esac\n"
         "}\n"
         "\n" +
         function +
         "() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local word command= operands=0 skip= words= options= listed_by= value i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    word=${COMP_WORDS[i]}\n"
         "    if [[ $word == = ]]; then skip=1; continue; fi\n"
         "    if [[ $skip ]]; then skip=; continue; fi\n"
         "    case $word in\n"
         "      -*) [[ $(" +
         function +
         "_value \"$command\" \"$word\") ]] && skip=1 ;;\n"
         "      *)\n"
         "        case $command in\n" +
         word_case +
         "          *) operands=$((operands + 1)) ;;\n"
         "        esac\n"
         "        ;;\n"
         "    esac\n" +
         bash_runners(parts.runners) +
         "  done\n"
         "  [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
         "  [[ $cur == = ]] && cur=\n"
         "  value=$(" +
         function +
         "_value \"$command\" \"$prev\")\n"
         "  case $value in\n"
         "    '') ;;\n"
         "    file) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
         "    directory) COMPREPLY=($(compgen -d -- \"$cur\")); return ;;\n"
         "    text) return ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$value\" -- \"$cur\")); return ;;\n"
         "  esac\n"
         "  case $command in\n" +
         parts.commands +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "  elif [[ $listed_by && $operands == 0 ]]; then\n"
         "    " +
         function +
         "_listed $listed_by\n"
         "  else\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "\n"
         "complete -F " +
         function + ' ' + std::string(program.name) + '\n';
}

std::string zsh_completion(const Command& program) {
  const std::string name(program.name);
  const std::string function = '_' + name;
  const std::string body =
      program.commands.empty()
          ? function + "() {\n  _arguments -s" + zsh_arguments(program, program, "    ") + "\n}\n\n"
          : zsh_parent(program, program, function);
  // An autoloaded file is the body of the function, a sourced one declares it.
  return "#compdef " + name + '\n' + origin_text(program, "zsh") + zsh_lister(program, function) +
         body + "if [[ $funcstack[1] == " + function + " ]]; then\n  " + function +
         " \"$@\"\nelse\n  compdef " + function + ' ' + name + "\nfi\n";
}

std::string fish_completion(const Command& program) {
  std::string out =
      origin_text(program, "fish") + "complete -c " + std::string(program.name) + " -f\n";
  for (const Place& place : places_of(place_of(program))) {
    FishLines lines(program, place);
    for (const auto& [word, summary] : commands_below(*place.command)) {
      lines.add(" -a " + word, summary);
    }
    for (const Option* option : options_of(*place.command)) lines.add_option(*option);
    for (const Operand& operand : place.command->operands) lines.add_operand(operand);
    out += lines.text();
  }
  return out;
}

}  // namespace lockd::config
