// The option table as pages: the manual, and a file of settings to begin with.
//
// For the program that makes what is installed beside the server, at build time
// (server/pages_main.cc). Pure functions.
#pragma once

#include <string>

#include "server/options.h"

namespace lockd {

// dflockd(1) or lockd-server(1), as roff.
std::string man_page(Flavour flavour);

// A file for --config in which every setting stands, explained and commented out: it changes
// nothing until somebody takes a # away.
std::string starting_config(Flavour flavour);

}  // namespace lockd
