// The manual pages, from the table of commands, as roff (man(7)). Pure functions.
#pragma once

#include <string>

#include "lockctl/commands/command_table.h"

namespace lockd::cli {

// "lockctl-wal-verify": the page's name, and with .1 behind it the file's.
std::string page_name(const Command& command);

// Of lockctl itself, lockctl(1).
std::string man_page();
std::string man_page(const Command& command);

}  // namespace lockd::cli
