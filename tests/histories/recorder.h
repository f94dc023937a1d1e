// What recorders of histories have in common: their command line, and what they ask in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "histories/operation.h"
#include "histories/recording.h"
#include "support/line_client.h"

namespace lockd::histories {

// A setting of the command line: its name and a number.
struct Setting {
  std::string_view name;
  std::uint64_t* value;
};

// The whole of main(): reads `FOLDER [NAME NUMBER]...`, with a seed of its own unless one is given,
// and plays. Returns the status to exit with.
int record(int argc, char** argv, std::string& folder, std::uint64_t& seed,
           std::vector<Setting> settings, const std::function<void()>& play);

// Asks for what `operation` names, by a line, and completes it with what came of it.
void ask_by_line(LineClient& client, const Recording& recording, Operation& operation);

}  // namespace lockd::histories
