// What lockctl's exit statuses mean: one list for the code, the help and the manual.
//
// They are those of <sysexits.h>, as flock's are, and a few that every shell knows. A command that
// `run` has started may of course end with any of them itself.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "lockd/client/outcome.h"

namespace lockd::cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitConflict = 1,
  kExitUsage = 64,
  kExitData = 65,
  kExitNoInput = 66,
  kExitUnavailable = 69,
  kExitSoftware = 70,
  kExitSystem = 71,
  kExitIo = 74,
  kExitTemporary = 75,
  kExitProtocol = 76,
  kExitNoPermission = 77,
  kExitConfig = 78,
  kExitLost = 79,  // the first number behind those of <sysexits.h>
  kExitNotExecutable = 126,
  kExitNotFound = 127,
  kExitSignal = 128,  // plus the number of the signal
};

struct ExitMeaning {
  std::string_view code;
  std::string_view name;  // in <sysexits.h>, or empty
  std::string_view meaning;
};

// What any command can end with.
std::span<const ExitMeaning> common_exits();

// What `run` adds to them.
inline constexpr auto kRunExits = std::to_array<ExitMeaning>({
    {"79", "", "The lock was lost while the command ran, and the command was stopped."},
    {"126", "", "The command cannot be executed."},
    {"127", "", "The command was not found."},
    {"128+n", "", "Signal n ended the command; or ended lockctl while it waited in the queue."},
});

// What a call to a server that ended so is worth. Precondition: not ok.
ExitCode exit_code_of(client::Outcome outcome);

}  // namespace lockd::cli
