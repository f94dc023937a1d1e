// The option table and the options in force, as text for people.
//
// For main: what --help and --print-config print; and in parts, for pages on the same matter
// (server/settings/option_pages.h). Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/settings/load_options.h"
#include "server/settings/option_table.h"
#include "server/settings/options.h"

namespace lockd {

// Every setting, in groups.
std::string help_text(Flavour flavour);

// Every value in force and where it came from, as a TOML file that would give the same settings,
// except that secrets are left out. Precondition: `loaded` has no error.
std::string config_text(const Loaded& loaded);

// What the server is, and how settings are given.
std::string_view about_settings();

// "--port N", "--debug, --no-debug".
std::string flag_text(const Setting& setting);

// What it is for, and what it takes.
std::string meaning_text(const Setting& setting);

// What applies without it, and the variables that set it.
std::string facts_text(Flavour flavour, const Setting& setting);

// `text` in lines of at most `columns`, each after `margin`.
std::string wrapped(std::string_view text, std::string_view margin, std::size_t columns = 80);

}  // namespace lockd
