// The settings of a program: from its arguments, the environment and a TOML file, each with where
// it came from.
//
// Arguments and variables win over the file, and the file over the defaults. Which of arguments and
// variables wins over the other is the program's to say. Every value that is given must be valid,
// also one that another wins over. Called once, by the first thread, before there are others.
//
//   const Settings settings = load_settings(kOptions, parsed.arguments.given(),
//                                           process_environment(), {});
//   if (!settings.error.empty()) return complain(settings.error);
//   listen(settings.text("host"), settings.whole("port"));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/arguments.h"
#include "config/environment.h"
#include "config/option.h"

namespace lockd::config {

// What wins over the other.
enum class Precedence : std::uint8_t { environment, command_line };

struct Sources {
  Precedence precedence = Precedence::command_line;
  // Read if the setting `config` names no file, and if there is such a file.
  std::string default_file{};
  // A variable whose name begins so and that is not a setting's is an error, so that a misspelt
  // name is noticed. Variables that Kubernetes sets for a Service of such a name are ignored, with
  // a warning. Empty: other variables are not looked at.
  std::string_view prefix{};
};

class Settings {
 public:
  struct Value {
    std::string text;  // as kept_text() has it; empty: it is not set
    Origin origin;
  };

  // All settings of a table, as they are by default.
  explicit Settings(std::span<const Option> table);

  std::span<const Option> table() const { return table_; }

  // Precondition of all of these: the table has a setting of that name or alias.
  const Value& value(std::string_view name) const;
  Value& value(std::string_view name);
  bool is_given(std::string_view name) const { return value(name).origin.rank > 0; }
  const std::string& text(std::string_view name) const { return value(name).text; }
  bool is_on(std::string_view name) const { return text(name) == "true"; }
  // 0 when it is not set.
  std::uint64_t whole(std::string_view name) const;
  Nanoseconds seconds(std::string_view name) const;
  std::uint64_t size(std::string_view name) const;
  // "--tls-key from LOCKD_SERVER_TLS_KEY": for messages.
  std::string named(std::string_view name) const;

  // Of load_settings().
  std::vector<std::string> warnings{};      // a line each
  std::string error{};                      // one line; when there is one, the values mean nothing
  std::vector<std::string_view> secrets{};  // where they stand in the environment

 private:
  std::span<const Option> table_;
  std::vector<Value> values_;  // one for each of the table
};

// `given` are the arguments; those that are not in the table are not looked at. The file is the one
// that the setting `config` names. Messages name no program, end in no newline, and contain no
// secret.
Settings load_settings(std::span<const Option> table, std::span<const Given> given,
                       const Environment& environment, const Sources& sources);

// "'f' holds a secret and others can read it": a warning.
std::string open_to_others(const std::string& path);

// A TOML file, flat, under the names of the options:
//
//   max-locks = 100_000
//   auth-token-file = "/etc/lockd/token"
//   server = ["a:6388", "b:6388"]
//
// A value is kept as text, so that the file takes what flags take: a number may be in quotes, and a
// boolean may be "yes". Read by toml++ rather than by CLI11's reader, which takes a `#` within a
// string for a comment, and so would cut a token short, and knows no line numbers.
struct ConfigFile {
  std::vector<Given> given;  // not yet looked at
  std::string error;         // one line, or empty
};

// `path` is for messages. A pure function: the text has been read.
ConfigFile read_config_file(std::span<const Option> table, const std::string& path,
                            std::string_view text);

// Every value in force and where it came from, as a TOML file that would give the same settings,
// except that secrets are left out.
std::string config_text(const Settings& settings);

}  // namespace lockd::config
