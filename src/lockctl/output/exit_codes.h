// What lockctl exits with; the table of commands says what each means.
//
// They are those of <sysexits.h>, as flock's are, and a few that every shell knows. A command that
// `run` has started may of course end with any of them itself.
#pragma once

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

// What a call to a server that ended so is worth. Precondition: not ok.
ExitCode exit_code_of(client::Outcome outcome);

}  // namespace lockd::cli
