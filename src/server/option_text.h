// The option table and the options in force, as text for people.
//
// For main: what --help and --print-config print. Pure functions.
#pragma once

#include <string>

#include "server/load_options.h"
#include "server/options.h"

namespace lockd {

// Every setting, in groups.
std::string help_text(Flavour flavour);

// Every value in force and where it came from, as a TOML file that would give the same settings,
// except that secrets are left out. Precondition: `loaded` has no error.
std::string config_text(const Loaded& loaded);

}  // namespace lockd
