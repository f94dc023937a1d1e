#include "config/settings.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

namespace lockd::config {
namespace {

constexpr int kFileRank = 1;

// Kubernetes sets variables for every Service of a namespace: for one called lockd-server
// LOCKD_SERVER_PORT=tcp://10.0.0.7:6388, LOCKD_SERVER_PORT_6388_TCP_ADDR, LOCKD_SERVER_SERVICE_HOST
// and others.
bool is_service_link(std::string_view value) {
  return value.starts_with("tcp://") || value.starts_with("udp://") || value.starts_with("sctp://");
}

// `rest` is what follows the prefix in the name.
bool is_of_service(std::string_view rest) {
  constexpr std::string_view kPort = "PORT_";
  const bool has_number =
      rest.size() > kPort.size() && rest[kPort.size()] >= '0' && rest[kPort.size()] <= '9';
  return rest.starts_with("SERVICE_HOST") || rest.starts_with("SERVICE_PORT") ||
         (rest.starts_with(kPort) && has_number);
}

// Each step returns false when it ends there, with the reason in `error`.
class Loader {
 public:
  Loader(std::span<const Option> table, const Environment& environment, const Sources& sources)
      : environment_(environment), sources_(sources), settings_(table) {}

  Settings load(std::span<const Given> given) {
    const std::vector<Given> flags = read_flags(given);
    const std::vector<Given> variables = read_variables();
    if (!check_names()) return std::move(settings_);
    const bool flags_win = sources_.precedence == Precedence::command_line;
    const auto& weaker = flags_win ? variables : flags;
    const auto& stronger = flags_win ? flags : variables;
    std::vector<Given> entries;
    if (read_file(weaker, stronger, entries) && take_all(entries) && take_all(weaker) &&
        take_all(stronger)) {
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
      flags.back().origin.rank = sources_.precedence == Precedence::command_line ? 3 : 2;
    }
    return flags;
  }

  std::vector<Given> read_variables() {
    const int rank = sources_.precedence == Precedence::environment ? 3 : 2;
    std::vector<Given> variables;
    for (const Option& option : settings_.table()) {
      // The first of two wins, so it is applied last.
      for (auto name = option.variables.rbegin(); name != option.variables.rend(); ++name) {
        if (*name == nullptr) continue;
        known_names_.emplace_back(*name);
        const char* const value = environment_.variable(*name);
        if (value == nullptr || *value == '\0') continue;
        if (is_service_link(value)) {
          of_service_.emplace_back(*name);
          continue;
        }
        variables.push_back({&option, value, {rank, *name}});
        if (option.secret) settings_.secrets.emplace_back(value);
      }
    }
    return variables;
  }

  // Every variable that begins with the prefix is a setting's, or of a Service of Kubernetes.
  bool check_names() {
    const std::string_view prefix = sources_.prefix;
    for (const std::string& name : environment_.names) {
      if (prefix.empty() || !name.starts_with(prefix)) continue;
      if (is_of_service(std::string_view(name).substr(prefix.size()))) {
        of_service_.push_back(name);
      } else if (std::ranges::find(known_names_, name) == known_names_.end()) {
        return fail("unknown variable '" + name + "'" + suggestion(name, known_names_, ""));
      }
    }
    if (of_service_.empty()) return true;
    const std::size_t more = of_service_.size() - 1;
    settings_.warnings.push_back(of_service_.front() +
                                 (more == 0 ? "" : " and " + std::to_string(more) + " more") +
                                 " ignored: Kubernetes sets such variables for a Service");
    return true;
  }

  bool read_file(const std::vector<Given>& weaker, const std::vector<Given>& stronger,
                 std::vector<Given>& entries) {
    const std::string& default_file = sources_.default_file;
    Given config{.option = find_option(settings_.table(), "config"), .text = default_file};
    for (const auto* source : {&weaker, &stronger}) {
      for (const Given& given : *source) {
        if (given.option == config.option) config = given;
      }
    }
    const bool named = config.origin.rank > 0;
    if (!named && default_file.empty()) return true;
    if (!kept_text(*config.option, config.text)) return fail(bad_value(config));
    const FileText file = environment_.read_config(config.text);
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
    const bool surprises = given.origin.rank == 3 &&
                           sources_.precedence == Precedence::environment &&
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
  const Sources& sources_;
  Settings settings_;
  std::vector<std::string_view> known_names_;  // of the settings' variables
  std::vector<std::string> of_service_;        // variables that Kubernetes has set
  std::vector<Overridden> overridden_;         // by a variable
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
                       const Environment& environment, const Sources& sources) {
  return Loader(table, environment, sources).load(given);
}

std::string open_to_others(const std::string& path) {
  return in_quotes(path) + " holds a secret and others can read it: chmod go-r";
}

}  // namespace lockd::config
