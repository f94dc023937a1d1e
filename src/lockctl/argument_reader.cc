#include "lockctl/arguments.h"

#include <algorithm>

#include "base/text.h"
#include "lockctl/values.h"

namespace lockd::cli {
namespace {

// Of --name, --name=value, -name: the name, and what follows the sign.
struct LongName {
  std::string_view name;
  std::optional<std::string_view> value;
};

LongName take_apart(std::string_view word) {
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

bool is_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

std::string flag(const Option& option) { return "--" + std::string(option.name); }

// How many must be there.
std::size_t required_operands(const Command& command) {
  return static_cast<std::size_t>(
      std::count_if(command.operands.begin(), command.operands.end(), [](const Operand& operand) {
        return operand.count == Operand::Count::one || operand.count == Operand::Count::many;
      }));
}

bool takes_many(const Command& command) {
  if (command.operands.empty()) return false;
  const Operand::Count count = command.operands.back().count;
  return count == Operand::Count::many || count == Operand::Count::any;
}

bool runs_command(const Command& command) {
  return !command.operands.empty() && command.operands.back().count == Operand::Count::command;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& names) {
  constexpr std::size_t kFar = 3;
  std::string_view best;
  std::size_t least = kFar;
  for (const std::string_view name : names) {
    const std::size_t changes = edit_distance(word, name, least);
    if (changes < least && changes <= name.size() / 2) {
      least = changes;
      best = name;
    }
  }
  return std::string(best);
}

// The options of the connection, for what stands before the command.
const Command& leading() {
  static const Command command{.groups = {OptionGroup{"", connection_options()}}};
  return command;
}

}  // namespace

// Goes through the words once.
class ArgumentReader {
 public:
  explicit ArgumentReader(std::span<const char* const> words) : words_(words) {}

  Parsed read() {
    read_leading();
    if (!done()) read_command();
    if (!done()) read_rest();
    if (!done() && parsed_.command != nullptr) check_operands();
    return std::move(parsed_);
  }

 private:
  bool done() const { return !parsed_.error.empty() || parsed_.action != Parsed::Action::execute; }

  void read_leading() {
    while (!done() && next_ < words_.size() && is_option(words_[next_])) {
      const std::string_view word = words_[next_++];
      if (word == "-V" || word == "--version" || word == "-version") {
        parsed_.action = Parsed::Action::version;
      } else {
        read_option(leading(), word);
      }
    }
  }

  void read_command() {
    if (next_ == words_.size()) {
      return refuse("what is to be done? lockctl --help lists the commands");
    }
    const std::string first = words_[next_++];
    if (first == "help") return read_help();
    parsed_.command = find_command(first);
    if (parsed_.command == nullptr && next_ < words_.size()) {
      parsed_.command = find_command(first + ' ' + words_[next_]);
      if (parsed_.command != nullptr) ++next_;
    }
    if (parsed_.command == nullptr) return refuse_command(first);
    adopt_leading();
  }

  // lockctl help [COMMAND]
  void read_help() {
    std::string name;
    for (; next_ < words_.size(); ++next_)
      name += (name.empty() ? "" : " ") + std::string(words_[next_]);
    parsed_.action = Parsed::Action::help;
    parsed_.command = find_command(name);
    if (parsed_.command == nullptr && !name.empty()) refuse_command(name);
  }

  // What stood before the command must be an option of it.
  void adopt_leading() {
    for (auto& [option, value] : parsed_.arguments.given_) {
      const Option* const own = find_option(*parsed_.command, option->name);
      if (own == nullptr || own->shape != option->shape) {
        return refuse("lockctl " + std::string(parsed_.command->name) + " has no option " +
                      flag(*option));
      }
      option = own;
    }
  }

  void read_rest() {
    const Command& command = *parsed_.command;
    while (!done() && next_ < words_.size()) {
      const std::string_view word = words_[next_++];
      if (word == "--") {
        take_all(parsed_.arguments.operands_);
      } else if (is_option(word)) {
        read_option(command, word);
      } else {
        parsed_.arguments.operands_.emplace_back(word);
        if (runs_command(command)) return read_words_to_run();
      }
    }
    // `run -- KEY COMMAND...`
    auto& operands = parsed_.arguments.operands_;
    if (runs_command(command) && operands.size() > 1) {
      parsed_.arguments.command_.assign(operands.begin() + 1, operands.end());
      operands.resize(1);
    }
  }

  // Behind KEY: -c and a command for the shell, or words, with or without -- before them.
  void read_words_to_run() {
    const std::string_view word = next_ < words_.size() ? words_[next_] : "";
    if (word == "-c" || word == "--command") {
      ++next_;
      read_option(*parsed_.command, word);
      if (!done() && next_ < words_.size()) refuse_operand(words_[next_]);
      return;
    }
    if (word == "--") ++next_;
    take_all(parsed_.arguments.command_);
  }

  void take_all(std::vector<std::string>& into) {
    while (next_ < words_.size()) into.emplace_back(words_[next_++]);
  }

  void read_option(const Command& command, std::string_view word) {
    const LongName parts = take_apart(word);
    const bool two_dashes = word.starts_with("--");
    // One dash and a whole name, as programs in Go take it; one letter is one letter.
    const Option* const option =
        two_dashes || parts.name.size() > 1 ? find_option(command, parts.name) : nullptr;
    if (option != nullptr) return give(*option, parts.value);
    if (two_dashes && parts.name.starts_with("no-")) return read_negation(command, parts);
    if (two_dashes) return refuse_option(command, parts.name);
    read_letters(command, word.substr(1));
  }

  void read_letters(const Command& command, std::string_view letters) {
    while (!letters.empty() && !done()) {
      const Option* const option = find_option(command, letters.front());
      if (option == nullptr) return refuse_option(command, letters.substr(0, 1));
      letters.remove_prefix(1);
      if (option->shape == Shape::toggle) {
        give(*option, std::nullopt);
      } else {
        if (letters.starts_with('=')) letters.remove_prefix(1);
        return give(*option, letters.empty() ? std::nullopt : std::optional(letters));
      }
    }
  }

  void read_negation(const Command& command, const LongName& parts) {
    const Option* const option = find_option(command, parts.name.substr(3));
    if (option == nullptr || option->shape != Shape::toggle) {
      return refuse_option(command, parts.name);
    }
    if (parts.value) return refuse("--" + std::string(parts.name) + " takes no value");
    give(*option, "false");
  }

  void give(const Option& option, std::optional<std::string_view> value) {
    if (option.name == "help") {
      parsed_.action = Parsed::Action::help;
      return;
    }
    if (!value && option.shape == Shape::toggle) value = "true";
    if (!value && next_ < words_.size()) value = words_[next_++];
    if (!value) return refuse(flag(option) + " needs a value: it takes " + rule_of(option));
    if (option.secret) parsed_.secrets.push_back(*value);
    if (!fits(option, *value)) {
      return refuse(flag(option) + (option.secret ? "" : ": " + in_quotes(*value)) + ": it takes " +
                    rule_of(option));
    }
    parsed_.arguments.given_.emplace_back(&option, std::string(*value));
  }

  void check_operands() {
    const Command& command = *parsed_.command;
    const std::size_t count = parsed_.arguments.operands_.size();
    if (count < required_operands(command)) {
      const auto at = std::min(count, command.operands.size() - 1);
      return refuse("lockctl " + std::string(command.name) + " needs " +
                    std::string(command.operands[at].name));
    }
    if (count > command.operands.size() && !takes_many(command)) {
      return refuse_operand(parsed_.arguments.operands_[command.operands.size()]);
    }
    check_choices();
    if (!runs_command(command)) return;
    const bool for_shell = parsed_.arguments.has("command");
    if (for_shell && !parsed_.arguments.command_.empty()) {
      return refuse_operand(parsed_.arguments.command_.front());
    }
    if (!for_shell && parsed_.arguments.command_.empty()) {
      refuse("lockctl run needs a command: lockctl run KEY -- COMMAND...");
    }
  }

  void check_choices() {
    for (std::size_t i = 0; i < parsed_.command->operands.size(); ++i) {
      const Operand& operand = parsed_.command->operands[i];
      if (operand.choices.empty() || i >= parsed_.arguments.operands_.size()) continue;
      const std::string& word = parsed_.arguments.operands_[i];
      const std::string all = ' ' + std::string(operand.choices) + ' ';
      if (word.find(' ') == std::string::npos && all.find(' ' + word + ' ') != std::string::npos) {
        continue;
      }
      return refuse(std::string(operand.name) + ": " + in_quotes(word) + ": it is one of " +
                    std::string(operand.choices));
    }
  }

  void refuse_command(const std::string& word) {
    std::vector<std::string_view> names;
    for (const Command& command : commands()) names.push_back(command.name);
    const std::string near = nearest(word, names);
    refuse("there is no command " + in_quotes(word) +
           (near.empty() ? "" : " (did you mean " + near + "?)") + "; lockctl --help lists them");
  }

  void refuse_option(const Command& command, std::string_view name) {
    std::vector<std::string_view> names;
    for (const OptionGroup& group : command.groups) {
      for (const Option& option : group.options) names.push_back(option.name);
    }
    const std::string near = name.size() > 1 ? nearest(name, names) : "";
    const std::string dashes = name.size() > 1 ? "--" : "-";
    refuse("there is no option " + in_quotes(dashes + std::string(name)) +
           (near.empty() ? "" : " (did you mean --" + near + "?)"));
  }

  void refuse_operand(std::string_view word) { refuse("unexpected argument " + in_quotes(word)); }

  void refuse(std::string line) {
    if (parsed_.error.empty()) parsed_.error = std::move(line);
  }

  const std::span<const char* const> words_;
  std::size_t next_ = 0;
  Parsed parsed_;
};

Parsed parse_arguments(std::span<const char* const> words) { return ArgumentReader(words).read(); }

}  // namespace lockd::cli
