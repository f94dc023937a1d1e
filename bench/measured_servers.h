// The servers that are measured, and how they are started: each with one thread.
#pragma once

#include <optional>
#include <string>

#include "child_server.h"

namespace lockd::bench {

ServerCommand floor_command();
ServerCommand lockd_command(const std::string& program = {});  // by default, of this build
ServerCommand http_command();                                  // the same server, over HTTP
// Nothing when it is not installed.
std::optional<ServerCommand> redis_command();

}  // namespace lockd::bench
