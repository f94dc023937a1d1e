// The table of commands: everything that lockctl can be told, once.
//
// The parser, --help, the manual pages and the completions of three shells all come from here (see
// config/option.h); a command or an option is added by adding a row. Constant: any thread may read
// it.
#pragma once

#include <span>
#include <string_view>

#include "config/option.h"

namespace lockd::cli {

struct Invocation;

const config::Command& program();

// The options by which any command finds its server; they are settings.
std::span<const config::Option> connection_options();

// What does a command; null when there are commands below it.
int (*execute_of(const config::Place& place))(const Invocation& invocation);

}  // namespace lockd::cli
