#include "server/settings/command_line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "server/settings/option_values.h"

namespace lockd {
namespace {

constexpr auto kActionFlags = std::to_array<ActionFlag>({
    {"help", Action::help, "Print this, and exit. Also -h."},
    {"version", Action::version, "Print the version, and exit."},
    {"check-config", Action::check_config, "Say whether the settings are valid, and exit."},
    {"print-config", Action::print_config,
     "Print every setting in force and where it came from, and exit."},
});

const ActionFlag* find_action(std::string_view name) {
  if (name == "h") name = "help";
  const auto found = std::find_if(kActionFlags.begin(), kActionFlags.end(),
                                  [&](const ActionFlag& flag) { return flag.name == name; });
  return found == kActionFlags.end() ? nullptr : &*found;
}

// One word, taken apart.
struct Flag {
  std::string_view name;
  std::optional<std::string_view> value;  // when it is in the same word
};

std::optional<Flag> parse_flag(std::string_view word) {
  if (!word.starts_with('-')) return std::nullopt;
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  if (word.empty()) return std::nullopt;
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return Flag{word, std::nullopt};
  return Flag{word.substr(0, equals), word.substr(equals + 1)};
}

bool is_boolean(const Setting* setting) {
  return setting != nullptr && setting->shape == Setting::Shape::boolean;
}

class Reader {
 public:
  Reader(Flavour flavour, std::span<const char* const> arguments)
      : flavour_(flavour), arguments_(arguments) {}

  CommandLine read() {
    while (next_ < arguments_.size()) {
      const std::string_view word = arguments_[next_++];
      if (const auto flag = parse_flag(word)) {
        read_flag(*flag);
      } else {
        refuse_stray(word);
      }
    }
    return std::move(line_);
  }

 private:
  void read_flag(const Flag& flag) {
    last_ = nullptr;
    if (const ActionFlag* action = find_action(flag.name)) {
      if (flag.value) return refuse("--" + std::string(action->name) + " takes no value");
      line_.action = std::max(line_.action, action->action);
    } else if (const Setting* setting = find_setting(flavour_, flag.name)) {
      read_setting(*setting, flag.value);
    } else {
      read_negation(flag);
    }
  }

  void read_setting(const Setting& setting, std::optional<std::string_view> value) {
    if (!value && is_boolean(&setting)) value = "true";
    if (!value && next_ < arguments_.size()) value = arguments_[next_++];
    if (!value) {
      return refuse("--" + std::string(setting.name) + " needs a value: it takes " +
                    std::string(setting.rule));
    }
    give(setting, *value);
    if (setting.secret) line_.secrets.push_back(*value);
  }

  void read_negation(const Flag& flag) {
    const bool negated = flag.name.starts_with("no-");
    const Setting* setting = negated ? find_setting(flavour_, flag.name.substr(3)) : nullptr;
    if (!is_boolean(setting)) return refuse_unknown(flag.name);
    if (flag.value) return refuse("--no-" + std::string(setting->name) + " takes no value");
    give(*setting, "false");
  }

  void give(const Setting& setting, std::string_view value) {
    last_ = &setting;
    line_.given.push_back(
        {&setting, std::string(value), {Origin::Source::flag, "the command line"}});
  }

  void refuse_unknown(std::string_view name) {
    const std::string_view nearest = nearest_setting(flavour_, name);
    refuse("unknown flag " + in_quotes("--" + std::string(name)) +
           (nearest.empty() ? "" : " (did you mean --" + std::string(nearest) + "?)") +
           "; --help lists them all");
  }

  void refuse_stray(std::string_view word) {
    // A token with a space in it and no quotes around ends up here: half of it is a secret too.
    const bool shown = last_ == nullptr || !last_->secret;
    std::string line = "unexpected argument" + (shown ? " " + in_quotes(word) : "");
    if (last_ != nullptr) {
      const std::string flag = "--" + std::string(last_->name);
      line += " after " + flag +
              (is_boolean(last_) ? "; a boolean is given as " + flag + "=VALUE" : "");
    }
    refuse(std::move(line));
  }

  void refuse(std::string line) {
    if (line_.error.empty()) line_.error = std::move(line);
  }

  const Flavour flavour_;
  const std::span<const char* const> arguments_;
  std::size_t next_ = 0;
  const Setting* last_ = nullptr;  // what the word before this one set
  CommandLine line_;
};

}  // namespace

std::span<const ActionFlag> action_flags() { return kActionFlags; }

CommandLine read_command_line(Flavour flavour, std::span<const char* const> arguments) {
  return Reader(flavour, arguments).read();
}

}  // namespace lockd
