// The table of settings of the servers: everything that can be set, once.
//
// Flags, variables, the names in the file, --help, --print-config and the pages of the
// documentation all come from here (see config/option.h); a setting is added by adding a row.
// Constant: any thread may read it.
//
//   for (const config::Option& option : settings(Flavour::dflockd)) document(option.name);
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/option.h"
#include "server/settings/options.h"

namespace lockd {

inline constexpr std::string_view kVersion = LOCKD_VERSION;

// dflockd, lockd-server or dflockd-ha, with all its options.
const config::Command& program(Flavour flavour);

// Of its options those that are settings.
std::span<const config::Option> settings(Flavour flavour);

// docs/configuration.md, as Markdown.
std::string configuration_page();

}  // namespace lockd
