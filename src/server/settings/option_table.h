// The table of settings of the server, and what each profile changes in it.
//
// Flags, variables, the names in the file, --help, --check-config and the pages of the
// documentation all come from here (see config/option.h); a setting is added by adding a row.
// Constant: any thread may read it.
//
//   for (const config::Option& option : settings(Profile::lockd)) document(option.name);
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/option.h"
#include "config/settings.h"
#include "server/settings/options.h"

namespace lockd {

// Every setting has a variable of this name and its own: LOCKD_SERVER_MAX_LOCKS.
inline constexpr std::string_view kServerVariables = "LOCKD_SERVER_";

// The profile of the program that was called by this path: a link may have a profile of its own.
Profile profile_of(std::string_view program);

// The program that has this profile, with all its options.
const config::Command& program(Profile profile);

// The options of that program that are settings.
std::span<const config::Option> settings(Profile profile);

config::Precedence precedence(Profile profile);

// docs/configuration.md, as Markdown.
std::string configuration_page();

}  // namespace lockd
