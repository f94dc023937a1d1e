// Arguments, environment and file to Options.
//
// For main. Flags win over variables (in the profile of dflockd, variables over flags), both over
// the file, and the file over the defaults (see config/settings.h). Called once, by the first
// thread, before there are others.
//
//   Loaded loaded = load_options(Profile::lockd, arguments, config::process_environment());
//   if (!loaded.error.empty()) return complain(loaded.error);
//   scrub_secrets(loaded);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/environment.h"
#include "config/settings.h"
#include "server/settings/option_table.h"
#include "server/settings/options.h"

namespace lockd {

// Of several that are asked for, the last of these is done.
enum class Action : std::uint8_t {
  serve,
  import_chain,
  export_chain,
  check_config,
  version,
  help,
};

struct Loaded {
  Action action = Action::serve;  // with help and version, nothing but this is filled in
  Options options{};
  std::string directory{};              // to import from, or to export to
  config::Settings settings;            // what the options were made of, and where it came from
  std::vector<std::string> warnings{};  // a line each
  std::string error{};                  // one line; when there is one, the options mean nothing

  // Where secrets stand in the arguments and the environment.
  std::vector<std::string_view> secrets_outside{};
};

// `arguments` are those after the program's name. Messages name no program, end in no newline, and
// have no secret in them.
Loaded load_options(Profile profile, std::span<const char* const> arguments,
                    const config::Environment& environment);

// What applies when nothing is given, but for what follows from the machine: `threads`, `metrics`.
Options default_options(Profile profile);

// Overwrites the secrets in the settings, of which the options have hashes, and in the arguments
// and the environment, which others can read in /proc. Precondition: both are those of the process,
// or memory that may be written.
void scrub_secrets(Loaded& loaded);

// What --check-config prints. Precondition: `loaded` has no error.
std::string config_text(const Loaded& loaded);

}  // namespace lockd
