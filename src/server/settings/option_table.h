// The table of settings: everything that can be set, once.
//
// Flags, variables, the names in the file, --help, --print-config and the pages of the
// documentation all come from here; a setting is added by adding a row. For what loads and what
// describes the options. Constant: any thread may read it.
//
//   for (const Setting& setting : settings(Flavour::dflockd)) document(setting.name, setting.rule);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/settings/options.h"

namespace lockd {

struct Setting {
  enum class Shape : std::uint8_t { boolean, number, seconds, text };

  std::string_view name = {};   // the flag without its dashes; the key in the file
  std::string_view alias = {};  // another spelling that is read, if there is one
  std::array<const char*, 2> variables =
      {};  // the first that is set counts; null when there is none
  Shape shape = Shape::text;
  std::string_view value = {};         // what stands for the value in --help: "SECONDS"
  std::string_view default_note = {};  // what the default is, where no value says it
  std::string_view group = {};         // rows of a group stand together
  std::string_view rule = {};          // what it takes, as in "it takes ..."
  std::string_view help = {};
  bool secret = false;  // its value is never shown

  // False, and nothing is changed, when the text breaks the rule.
  bool (*assign)(Options& options, std::string_view text) = nullptr;
  // As assign() takes it; empty when not set.
  std::string (*print)(const Options& options) = nullptr;
};

std::span<const Setting> settings(Flavour flavour);

// "dflockd", "lockd-server".
std::string_view program_name(Flavour flavour);

// What applies when nothing is given. What follows from the machine or from other settings is
// filled in by load_options(): `threads`, `metrics`, `secret`.
Options default_options(Flavour flavour);

// The default as people read it: a value, or a note such as "the number of cores".
std::string default_text(Flavour flavour, const Setting& setting);

// By its name or alias; null when there is none.
const Setting* find_setting(Flavour flavour, std::string_view name);

// The name most like `name`, for "did you mean"; empty when none is close.
std::string_view nearest_setting(Flavour flavour, std::string_view name);

// Where a value came from. Each source wins over those before it.
struct Origin {
  enum class Source : std::uint8_t { built_in, file, flag, variable };

  Source source = Source::built_in;
  std::string name = "default";  // "the command line", "DFLOCKD_PORT", "line 3 of lockd.toml"
};

// One value as it was given, not yet looked at.
struct Given {
  const Setting* setting = nullptr;
  std::string text;
  Origin origin;
};

// The line for people when Setting::assign() has refused a value; a secret is not in it.
std::string bad_value(const Given& given);

}  // namespace lockd
