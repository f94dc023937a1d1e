// Arguments, environment and file to Options.
//
// For main. The environment wins over flags, flags over the file, the file over the defaults. Every
// value that is given must be valid, also one that another wins over. Called once, by the first
// thread, before there are others.
//
//   Loaded loaded = load_options(Flavour::dflockd, arguments, process_environment());
//   if (!loaded.error.empty()) return complain(loaded.error);
//   scrub_secrets(loaded);
//   if (loaded.action == Action::help) return print(help_text(Flavour::dflockd));
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/environment.h"
#include "server/settings/command_line.h"
#include "server/settings/option_table.h"
#include "server/settings/options.h"

namespace lockd {

struct Loaded {
  Flavour flavour = Flavour::dflockd;
  Action action = Action::serve;  // with help and version, nothing but this is filled in
  Options options;
  std::vector<Origin> origins;        // one for each of settings(flavour), in their order
  std::vector<std::string> warnings;  // a line each
  std::string error;                  // one line; when there is one, the options mean nothing

  // Where secrets stand in the arguments and the environment.
  std::vector<std::string_view> secrets_outside;
};

// `arguments` are those after the program's name. Messages name no program, end in no newline, and
// have no secret in them.
Loaded load_options(Flavour flavour, std::span<const char* const> arguments,
                    const Environment& environment);

// Overwrites the secrets in the arguments and the environment, which others can read in /proc.
// Precondition: both are those of the process, or memory that may be written.
void scrub_secrets(Loaded& loaded);

}  // namespace lockd
