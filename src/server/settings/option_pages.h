// The option table as pages: the manual, docs/configuration.md, a file of settings to begin with,
// and completions for shells.
//
// For the program that makes what is installed beside the server, at build time
// (server/settings/pages_main.cc). Pure functions.
#pragma once

#include <string>

#include "server/settings/options.h"

namespace lockd {

// dflockd(1) or lockd-server(1), as roff.
std::string man_page(Flavour flavour);

// A file for --config in which every setting stands, explained and commented out: it changes
// nothing until somebody takes a # away.
std::string starting_config(Flavour flavour);

// docs/configuration.md, as Markdown.
std::string configuration_page();

// What bash sources, zsh autoloads and fish sources.
std::string bash_completion(Flavour flavour);
std::string zsh_completion(Flavour flavour);
std::string fish_completion(Flavour flavour);

}  // namespace lockd
