#include "config/arguments.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockd::config {
namespace {

using Count = Operand::Count;
using Kind = Option::Kind;

bool looks_like_option(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

std::string flag(const Option& option) { return "--" + std::string(option.name); }

bool takes_many(const Command& command) {
  return std::ranges::any_of(command.operands, [](const Operand& operand) {
    return operand.count == Count::many || operand.count == Count::any;
  });
}

// What runs other commands says so with its last operand.
const Operand* operand_to_run(const Command& command) {
  const bool runs = !command.operands.empty() && command.operands.back().count == Count::command;
  return runs ? &command.operands.back() : nullptr;
}

// How many operands may be there, unless there may be any number.
std::size_t operands_max(const Command& command) {
  return command.operands.size() - (operand_to_run(command) != nullptr ? 1 : 0);
}

std::size_t operands_min(const Command& command) {
  return static_cast<std::size_t>(
      std::count_if(command.operands.begin(), command.operands.end(), [](const Operand& operand) {
        return operand.count == Count::one || operand.count == Count::many;
      }));
}

// Whether all of them are letters of options, up to one that has its value behind it.
bool are_letters(const Command& command, std::string_view letters) {
  for (const char letter : letters) {
    const Option* const option = find_option(command, letter);
    if (option == nullptr || option->takes_value()) return option != nullptr;
  }
  return true;
}

// A word that begins with dashes, taken apart.
struct Flag {
  bool two_dashes = false;
  std::string_view name;
  std::optional<std::string_view> value;  // when it is in the same word
};

Flag take_apart(std::string_view word) {
  Flag flag{.two_dashes = word.starts_with("--"), .name = {}, .value = {}};
  word.remove_prefix(flag.two_dashes ? 2 : 1);
  const std::size_t equals = word.find('=');
  flag.name = word.substr(0, equals);
  if (equals != std::string_view::npos) flag.value = word.substr(equals + 1);
  return flag;
}

}  // namespace

// Goes through the words once, to the end: of what is wrong the first is told, unless help is asked
// for further on.
class ArgumentReader {
 public:
  ArgumentReader(const Command& program, std::span<const char* const> words) : words_(words) {
    parsed_.place = place_of(program);
  }

  Parsed read() {
    while (next_ < words_.size()) read_word(words_[next_++]);
    if (asks_what_it_is() && !unknown_command_) {
      parsed_.error.clear();
    } else if (parsed_.error.empty() && !asks_for_action()) {
      check_whole();
    }
    return std::move(parsed_);
  }

 private:
  const Command& command() const { return *parsed_.place.command; }
  std::vector<std::string>& operands() { return parsed_.arguments.operands_; }

  void read_word(std::string_view word) {
    if (word == "--" && takes_several()) return take_rest();
    if (word == "--" && !command().operands.empty()) return read_operands();
    if (looks_like_option(word) && word != "--") return read_flag(word);
    if (!command().commands.empty()) return descend(word);
    read_operand(word);
    if (takes_several()) return;
    if (operand_to_run(command()) != nullptr && operands().size() == operands_max(command())) {
      read_command_to_run();
    }
  }

  // --- commands ---

  void descend(std::string_view word) {
    if (word == kHelp.name) return give(kHelp, "true");
    const Command* const below = find_command(command(), word);
    if (below == nullptr || word.empty()) return refuse_command(word);
    parsed_.place = {parsed_.place.path + ' ' + std::string(word), below};
    // What stood before the command must be an option of it.
    const auto all = options_of(*below);
    for (const Given& given : parsed_.arguments.given_) {
      if (given.option->kind == Kind::action || !below->commands.empty()) continue;
      if (std::find(all.begin(), all.end(), given.option) == all.end()) {
        return refuse(parsed_.place.path + " has no option " + flag(*given.option));
      }
    }
  }

  void refuse_command(std::string_view word) {
    unknown_command_ = true;
    std::vector<std::string_view> names;
    for (const Command& below : command().commands) names.push_back(below.name);
    refuse("there is no command " + in_quotes(word) + suggestion(word, names, "") + "; " +
           parsed_.place.path + " --help lists them");
  }

  // --- operands ---

  // Whether several operands were asked for before a command.
  bool takes_several() const {
    if (operand_to_run(command()) == nullptr || operands_max(command()) == 0) return false;
    const std::string_view by = command().operands[operands_max(command()) - 1].several_by;
    return !by.empty() && parsed_.arguments.has(by);
  }

  void read_operand(std::string_view word) {
    const bool any_number = takes_many(command()) || takes_several();
    if (operands().size() >= operands_max(command()) && !any_number) {
      return refuse_stray(word);
    }
    operands().emplace_back(word);
    last_ = nullptr;
  }

  // Behind --: nothing is an option.
  void read_operands() {
    while (next_ < words_.size()) {
      if (operand_to_run(command()) != nullptr && operands().size() == operands_max(command())) {
        return take_rest();
      }
      read_operand(words_[next_++]);
    }
  }

  // The option that stands for a command, or its words, with or without -- before them. Without --
  // a word with a dash is refused: it is more likely a misplaced or misspelt option than a program.
  void read_command_to_run() {
    const std::string_view word = next_ < words_.size() ? words_[next_] : "";
    const Option* const instead =
        find_option(command().options, operand_to_run(command())->instead);
    if (instead != nullptr &&
        (word == flag(*instead) || word == std::string{'-', instead->letter})) {
      ++next_;
      read_flag(word);
      if (next_ < words_.size()) refuse_stray(words_[next_]);
      next_ = words_.size();
      return;
    }
    if (word == "--") {
      ++next_;
    } else if (looks_like_option(word)) {
      refuse_dashed_command(word);
    }
    take_rest();
  }

  // The value of an option may be a secret and is not shown.
  void refuse_dashed_command(std::string_view word) {
    const std::string before(command().operands[operands_max(command()) - 1].name);
    refuse(in_quotes(word.substr(0, word.find('='))) + " behind " + before +
           " is no command: give options of " + parsed_.place.path + " before " + before +
           ", and -- before a " + std::string(operand_to_run(command())->name) +
           " that begins with a dash");
  }

  void take_rest() {
    while (next_ < words_.size()) parsed_.arguments.command_.emplace_back(words_[next_++]);
  }

  // --- options ---

  void read_flag(std::string_view word) {
    last_ = nullptr;
    const Flag flag = take_apart(word);
    // One dash and a whole name, as programs in Go take it; one letter is one letter.
    const bool may_be_name = flag.two_dashes || flag.name.size() > 1;
    const Option* const option = may_be_name ? find_option(command(), flag.name) : nullptr;
    if (option != nullptr) return read_value(*option, flag.value);
    if (may_be_name && flag.name.starts_with("no-")) return read_negation(flag);
    const bool letters = !flag.two_dashes && are_letters(command(), word.substr(1));
    return letters ? read_letters(word.substr(1)) : refuse_flag(flag);
  }

  void read_letters(std::string_view letters) {
    while (!letters.empty()) {
      const Option& option = *find_option(command(), letters.front());
      letters.remove_prefix(1);
      if (!option.takes_value()) {
        give(option, "true");
        continue;
      }
      if (letters.starts_with('=')) letters.remove_prefix(1);
      return read_value(option, letters.empty() ? std::nullopt : std::optional(letters));
    }
  }

  void read_value(const Option& option, std::optional<std::string_view> value) {
    if (value && option.kind == Kind::action) return refuse(flag(option) + " takes no value");
    if (!value && !option.takes_value()) value = "true";
    if (!value && next_ < words_.size()) value = words_[next_++];
    if (!value) return refuse(flag(option) + " needs a value: it takes " + rule_of(option));
    if (option.secret) parsed_.secrets.push_back(*value);
    give(option, *value);
  }

  void read_negation(const Flag& given) {
    const Option* const option = find_option(command(), given.name.substr(3));
    if (option == nullptr || option->kind != Kind::boolean) return refuse_flag(given);
    if (given.value) return refuse("--no-" + std::string(option->name) + " takes no value");
    give(*option, "false");
  }

  void give(const Option& option, std::string_view value) {
    last_ = option.kind == Kind::action ? nullptr : &option;
    Given given{&option, std::string(value), {.rank = 0, .name = "the command line"}};
    auto kept = kept_text(option, value);
    if (!kept) return refuse(bad_value(given));
    given.text = std::move(*kept);
    parsed_.arguments.given_.push_back(std::move(given));
  }

  void refuse_flag(const Flag& flag) {
    std::vector<std::string_view> names;
    for (const Option* option : options_of(command())) names.push_back(option->name);
    const bool letter = !flag.two_dashes && flag.name.size() == 1;
    refuse("unknown flag " + in_quotes((letter ? "-" : "--") + std::string(flag.name)) +
           (letter ? "" : suggestion(flag.name, names, "--")) + "; --help lists them all");
  }

  // --- the end ---

  // These work whatever else is wrong.
  bool asks_what_it_is() const {
    return parsed_.arguments.has(kHelp.name) || parsed_.arguments.has(kVersion.name);
  }

  bool asks_for_action() const {
    const auto& given = parsed_.arguments.given_;
    return std::any_of(given.begin(), given.end(),
                       [](const Given& one) { return one.option->kind == Kind::action; });
  }

  void check_whole() {
    const std::string& path = parsed_.place.path;
    if (!command().commands.empty()) {
      return refuse("what is to be done? " + path + " --help lists the commands");
    }
    if (operands().size() < operands_min(command())) {
      const std::size_t missing = std::min(operands().size(), command().operands.size() - 1);
      return refuse(path + " needs " + std::string(command().operands[missing].name));
    }
    check_choices();
    const Operand* const runs = operand_to_run(command());
    if (runs == nullptr) return;
    const auto& words = parsed_.arguments.command_;
    const bool instead = !runs->instead.empty() && parsed_.arguments.has(runs->instead);
    if (instead && !words.empty()) refuse_stray(words.front());
    if (!instead && words.empty()) refuse(path + " needs " + std::string(runs->name));
  }

  void check_choices() {
    for (std::size_t i = 0; i < std::min(command().operands.size(), operands().size()); ++i) {
      const Operand& operand = command().operands[i];
      if (operand.choices.empty()) continue;
      const Option as_option{.choices = operand.choices};
      if (kept_text(as_option, operands()[i])) continue;
      return refuse(std::string(operand.name) + " is " + in_quotes(operands()[i]) + ": it takes " +
                    rule_of(as_option));
    }
  }

  void refuse_stray(std::string_view word) {
    // A token with a space in it and no quotes around ends up here: half of it is a secret too.
    const bool shown = last_ == nullptr || !last_->secret;
    std::string line = "unexpected argument" + (shown ? " " + in_quotes(word) : "");
    if (last_ != nullptr) line += " after " + flag(*last_);
    if (last_ != nullptr && last_->kind == Kind::boolean) {
      line += "; a boolean is given as " + flag(*last_) + "=VALUE";
    }
    refuse(std::move(line));
  }

  void refuse(std::string line) {
    if (parsed_.error.empty()) parsed_.error = std::move(line);
  }

  const std::span<const char* const> words_;
  std::size_t next_ = 0;
  const Option* last_ = nullptr;  // what the flag before this word was
  bool unknown_command_ = false;
  Parsed parsed_;
};

std::string bad_value(const Given& given) {
  const Option& option = *given.option;
  return flag(option) + " from " + given.origin.name +
         (option.secret ? " is not valid" : " is " + in_quotes(given.text)) + ": it takes " +
         rule_of(option);
}

const Given* Arguments::last(std::string_view option) const {
  const auto found = std::find_if(given_.rbegin(), given_.rend(),
                                  [&](const Given& one) { return one.option->name == option; });
  return found == given_.rend() ? nullptr : &*found;
}

std::optional<std::string_view> Arguments::text(std::string_view option) const {
  const Given* const found = last(option);
  return found == nullptr ? std::nullopt : std::optional<std::string_view>(found->text);
}

bool Arguments::has(std::string_view option) const {
  const Given* const found = last(option);
  return found != nullptr && (found->option->takes_value() || found->text == "true");
}

std::optional<std::uint64_t> Arguments::whole(std::string_view option) const {
  const auto value = text(option);
  return value ? parse_count(*value, 0, UINT64_MAX) : std::nullopt;
}

std::optional<Nanoseconds> Arguments::seconds(std::string_view option) const {
  const auto value = text(option);
  return value ? parse_seconds(*value) : std::nullopt;
}

std::string Arguments::operand_or(std::size_t number, std::string_view otherwise) const {
  return std::string(number < operands_.size() ? operands_[number] : otherwise);
}

Parsed parse_arguments(const Command& program, std::span<const char* const> words) {
  return ArgumentReader(program, words).read();
}

void scrub(const std::vector<std::string_view>& secrets) {
  for (const std::string_view secret : secrets) {
    // The process owns its arguments and environment; they are const only on the way here.
    std::memset(const_cast<char*>(secret.data()), '*', secret.size());
  }
}

}  // namespace lockd::config
