#include "config/settings.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace lockd::config {
namespace {

constexpr int kFileRank = 1;

// Each step returns false when it ends there, with the reason in `error`.
class Loader {
 public:
  Loader(std::span<const Option> table, const Environment& environment, Precedence precedence)
      : environment_(environment), precedence_(precedence), settings_(table) {}

  Settings load(std::span<const Given> given, const std::string& default_file) {
    const std::vector<Given> flags = read_flags(given);
    const std::vector<Given> variables = read_variables();
    const bool flags_win = precedence_ == Precedence::command_line;
    const auto& weaker = flags_win ? variables : flags;
    const auto& stronger = flags_win ? flags : variables;
    std::vector<Given> entries;
    if (read_file(weaker, stronger, default_file, entries) && take_all(entries) &&
        take_all(weaker) && take_all(stronger)) {
      warn_of_overridden();
    }
    return std::move(settings_);
  }

 private:
  struct Overridden {
    const Option* option = nullptr;
    Settings::Value value{};
  };

  std::vector<Given> read_flags(std::span<const Given> given) {
    std::vector<Given> flags;
    for (const Given& one : given) {
      const Option* const option = find_option(settings_.table(), one.option->name);
      if (option != one.option) continue;
      flags.push_back(one);
      flags.back().origin.rank = precedence_ == Precedence::command_line ? 3 : 2;
    }
    return flags;
  }

  std::vector<Given> read_variables() {
    const int rank = precedence_ == Precedence::environment ? 3 : 2;
    std::vector<Given> variables;
    for (const Option& option : settings_.table()) {
      // The first of two wins, so it is applied last.
      for (auto name = option.variables.rbegin(); name != option.variables.rend(); ++name) {
        const char* value = *name == nullptr ? nullptr : environment_.variable(*name);
        if (value == nullptr || *value == '\0') continue;
        variables.push_back({&option, value, {rank, *name}});
        if (option.secret) settings_.secrets.emplace_back(value);
      }
    }
    return variables;
  }

  bool read_file(const std::vector<Given>& weaker, const std::vector<Given>& stronger,
                 const std::string& default_file, std::vector<Given>& entries) {
    Given config{.option = find_option(settings_.table(), "config"), .text = default_file};
    for (const auto* source : {&weaker, &stronger}) {
      for (const Given& given : *source) {
        if (given.option == config.option) config = given;
      }
    }
    const bool named = config.origin.rank > 0;
    if (!named && default_file.empty()) return true;
    if (!kept_text(*config.option, config.text)) return fail(bad_value(config));
    const FileText file = environment_.read_file(config.text);
    if (!named && file.missing) return true;
    if (!file.error.empty()) {
      return fail("--config from " + config.origin.name + " is " + in_quotes(config.text) +
                  ": it cannot be read: " + file.error);
    }
    ConfigFile read = read_config_file(settings_.table(), config.text, file.text);
    entries = std::move(read.given);
    const bool secret = std::any_of(entries.begin(), entries.end(),
                                    [](const Given& given) { return given.option->secret; });
    if (secret && file.open_to_others) settings_.warnings.push_back(open_to_others(config.text));
    return fail(std::move(read.error));
  }

  bool take_all(const std::vector<Given>& all) {
    return std::all_of(all.begin(), all.end(), [this](const Given& given) { return take(given); });
  }

  bool take(const Given& given) {
    const Option& option = *given.option;
    auto kept = kept_text(option, given.text);
    if (!kept) return fail(bad_value(given));
    Settings::Value& value = settings_.value(option.name);
    // One flag over another is a correction; a variable over a flag may surprise.
    const bool surprises = given.origin.rank == 3 && precedence_ == Precedence::environment &&
                           value.origin.rank > kFileRank && value.text != *kept;
    if (surprises) overridden_.push_back({&option, value});
    const bool adds = option.repeats && value.origin.rank == given.origin.rank;
    value = {adds ? value.text + ',' + *kept : std::move(*kept), given.origin};
    return true;
  }

  void warn_of_overridden() {
    for (auto one = overridden_.begin(); one != overridden_.end(); ++one) {
      // Of three sources for one setting, only the last two are told.
      if (one + 1 != overridden_.end() && one[1].option == one->option) continue;
      const Settings::Value& used = settings_.value(one->option->name);
      const std::string name = "--" + std::string(one->option->name) + ": ";
      const std::string& from = used.origin.name;
      const std::string& other = one->value.origin.name;
      settings_.warnings.push_back(
          one->option->secret
              ? name + "the value from " + from + " is used, not the one from " + other
              : name + in_quotes(used.text) + " from " + from + " is used, not " +
                    in_quotes(one->value.text) + " from " + other);
    }
  }

  // Nothing is wrong when the line is empty.
  bool fail(std::string line) {
    settings_.error = std::move(line);
    return settings_.error.empty();
  }

  const Environment& environment_;
  const Precedence precedence_;
  Settings settings_;
  std::vector<Overridden> overridden_;  // by a variable
};

}  // namespace

Settings::Settings(std::span<const Option> table) : table_(table) {
  for (const Option& option : table) values_.push_back({std::string(option.by_default), {}});
}

const Settings::Value& Settings::value(std::string_view name) const {
  const Option* const option = find_option(table_, name);
  if (option == nullptr) std::abort();
  return values_[static_cast<std::size_t>(option - table_.data())];
}

Settings::Value& Settings::value(std::string_view name) {
  return const_cast<Value&>(std::as_const(*this).value(name));
}

std::uint64_t Settings::whole(std::string_view name) const {
  return parse_count(text(name), 0, UINT64_MAX).value_or(0);
}

Nanoseconds Settings::seconds(std::string_view name) const {
  return parse_seconds(text(name)).value_or(Nanoseconds::zero());
}

std::uint64_t Settings::size(std::string_view name) const {
  return parse_size(text(name)).value_or(0);
}

std::string Settings::named(std::string_view name) const {
  return "--" + std::string(name) + " from " + value(name).origin.name;
}

Settings load_settings(std::span<const Option> table, std::span<const Given> given,
                       const Environment& environment, Precedence precedence,
                       const std::string& default_file) {
  return Loader(table, environment, precedence).load(given, default_file);
}

std::string open_to_others(const std::string& path) {
  return in_quotes(path) + " holds a secret and others can read it: chmod go-r";
}

}  // namespace lockd::config
