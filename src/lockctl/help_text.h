// --help, from the table of commands. Pure functions.
#pragma once

#include <string>

#include "lockctl/commands/command_table.h"

namespace lockd::cli {

// Of lockctl itself.
std::string help_text();
std::string help_text(const Command& command);

// "lockctl run [OPTION...] KEY [--] COMMAND..."
std::string usage_of(const Command& command);
// "-w, --wait, --timeout SECONDS"
std::string spelling_of(const Option& option);
// The help, with what it is called elsewhere.
std::string explanation_of(const Option& option);

}  // namespace lockd::cli
