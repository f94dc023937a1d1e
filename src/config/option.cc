#include "config/option.h"

#include "base/text.h"

namespace lockd::config {
namespace {

using Kind = Option::Kind;

constexpr std::uint64_t kNanosecondsMax = kSecondsMax * 1'000'000'000;

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// "text or json", "trace, debug or info".
std::string choices_text(std::string_view choices) {
  const auto words = words_of(choices);
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string seconds_rule(const Option& option) {
  const std::string max = print_decimal(option.max, 9);
  const std::string example = option.max == kNanosecondsMax ? ", such as 5 or 0.5" : "";
  if (option.min == 1) return "seconds, more than 0 and at most " + max + example;
  return "seconds, from " + print_decimal(option.min, 9) + " to " + max + example;
}

std::optional<std::string> kept_time(const Option& option, std::string_view text) {
  const auto time = option.kind == Kind::seconds ? parse_seconds(text) : parse_duration(text);
  const auto ns = static_cast<std::uint64_t>(time.value_or(Nanoseconds::zero()).count());
  if (!time || ns < option.min || ns > option.max) return std::nullopt;
  return print_seconds(*time);
}

std::string size_rule(const Option& option) {
  const std::string min = option.min == 0 ? "" : ", at least " + print_size(option.min);
  return "a number of bytes, or one with KiB, MiB or GiB" + min;
}

std::optional<std::string> kept_size(const Option& option, std::string_view text) {
  const auto size = parse_size(text);
  if (!size || *size < option.min || *size > option.max) return std::nullopt;
  return print_size(*size);
}

std::optional<std::string> kept_word(const Option& option, std::string_view text) {
  const auto words = words_of(option.choices);
  if (std::find(words.begin(), words.end(), text) == words.end()) return std::nullopt;
  return std::string(text);
}

template <typename Match>
const Option* find_if(const Command& command, Match match) {
  for (const Option* option : options_of(command)) {
    if (match(*option)) return option;
  }
  return match(kHelp) ? &kHelp : nullptr;
}

auto named(std::string_view name) {
  return [name](const Option& option) {
    return !name.empty() && (option.name == name || option.alias == name);
  };
}

}  // namespace

std::vector<const Option*> options_of(const Command& command) {
  std::vector<const Option*> all;
  for (const Option& option : command.options) all.push_back(&option);
  for (const Option& option : command.shared) {
    if (find_option(command.options, option.name) == nullptr) all.push_back(&option);
  }
  return all;
}

const Option* find_option(const Command& command, std::string_view name) {
  return find_if(command, named(name));
}

const Option* find_option(const Command& command, char letter) {
  return find_if(command,
                 [letter](const Option& option) { return letter != 0 && option.letter == letter; });
}

const Option* find_option(std::span<const Option> options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), named(name));
  return found == options.end() ? nullptr : &*found;
}

const Command* find_command(const Command& program, std::string_view words) {
  const Command* command = &program;
  for (const std::string_view word : words_of(words)) {
    const auto found = std::find_if(command->commands.begin(), command->commands.end(),
                                    [&](const Command& below) { return below.name == word; });
    if (found == command->commands.end()) return nullptr;
    command = &*found;
  }
  return command;
}

Place place_of(const Command& program) { return {std::string(program.name), &program}; }

std::vector<Place> places_of(const Place& place) {
  std::vector<Place> all{place};
  for (const Command& below : place.command->commands) {
    const auto more = places_of({place.path + ' ' + std::string(below.name), &below});
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::string rule_of(const Option& option) {
  if (!option.rule.empty()) return std::string(option.rule);
  if (!option.choices.empty()) return choices_text(option.choices);
  switch (option.kind) {
    case Kind::action: return "no value";
    case Kind::boolean: return "true or false, 1 or 0, yes or no, on or off";
    case Kind::whole:
      return "a whole number from " + std::to_string(option.min) + " to " +
             std::to_string(option.max);
    case Kind::seconds: return seconds_rule(option);
    case Kind::duration: return seconds_rule(option) + ", or with a unit: 500ms, 5s, 2m, 1h";
    case Kind::size: return size_rule(option);
    case Kind::text: return "a text that is not empty";
    case Kind::file: return "the name of a file";
    case Kind::directory: return "the name of a directory";
  }
  return {};
}

std::optional<std::string> kept_text(const Option& option, std::string_view text) {
  switch (option.kind) {
    case Kind::action:
    case Kind::boolean: {
      const auto truth = parse_bool(text);
      return truth ? std::optional<std::string>(*truth ? "true" : "false") : std::nullopt;
    }
    case Kind::whole: {
      const auto number = parse_count(text, option.min, option.max);
      return number ? std::optional(std::to_string(*number)) : std::nullopt;
    }
    case Kind::seconds:
    case Kind::duration: return kept_time(option, text);
    case Kind::size: return kept_size(option, text);
    case Kind::text:
    case Kind::file:
    case Kind::directory: break;
  }
  if (!option.choices.empty()) return kept_word(option, text);
  return option.parse != nullptr ? option.parse(text) : parse_path(text);
}

std::string_view default_text(const Option& option) {
  return option.default_note.empty() ? option.by_default : option.default_note;
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& names,
                       std::string_view dashes) {
  if (name.size() > 100) return "";
  std::string_view nearest;
  std::size_t least = 1 + std::max<std::size_t>(2, name.size() / 3);
  for (const std::string_view one : names) {
    const std::size_t letters = edit_distance(name, one, least);
    if (letters >= least || letters > one.size() / 2) continue;
    least = letters;
    nearest = one;
  }
  if (nearest.empty()) return "";
  return " (did you mean " + std::string(dashes) + std::string(nearest) + "?)";
}

}  // namespace lockd::config
