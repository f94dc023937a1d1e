// How a command of lockctl fails: what it exits with, and the exception that says so.
#pragma once

#include <stdexcept>
#include <string>

#include "lockd/client/outcome.h"

namespace lockd::cli {

// What lockctl exits with; the table of commands says what each means.
//
// They are those of <sysexits.h>, as flock's are, and a few that every shell knows. A command that
// `run` has started may of course end with any of them itself.
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

// Why a command cannot go on: thrown where it is found, told once, by main.
//
// A command has one caller, who prints a line and exits; values would only be passed through.
// Nothing is thrown while `run` has a child.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& line) : std::runtime_error(line), code_(code) {}

  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// What a call that ended so is worth, with a line for people. Precondition: not ok.
Failure failure_of(const client::Status& status);

// Throws, unless it is ok.
inline void require(const client::Status& status) {
  if (!status) throw failure_of(status);
}

}  // namespace lockd::cli
