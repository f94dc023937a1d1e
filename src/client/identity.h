// Who this process is, for the people who look at a server and ask whom it waits for.
#pragma once

#include <string>
#include <string_view>

namespace lockd::client {

// "ann@build-7:4711": the user, the host, the process.
std::string default_name();
// The program's base name, and never its arguments: they may hold secrets.
std::string default_note();

// What a server takes for a name or a note: cut, and with `?` for what is no plain text.
std::string fit_for_server(std::string_view text);

}  // namespace lockd::client
