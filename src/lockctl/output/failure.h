// Why a command cannot go on: thrown where it is found, told once, by main.
//
// A command of lockctl has one caller, who prints a line and exits; values would only be passed
// through. Nothing is thrown while `run` has a child.
#pragma once

#include <stdexcept>
#include <string>

#include "lockctl/output/exit_codes.h"
#include "lockd/client/outcome.h"

namespace lockd::cli {

class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& line) : std::runtime_error(line), code_(code) {}

  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws, unless it is ok.
inline void require(const client::Status& status) {
  if (!status) throw Failure(exit_code_of(status.outcome), client::describe(status));
}

}  // namespace lockd::cli
