// What a refusal over HTTP means: {"error":"held","detail":"..."}. Pure.
#pragma once

#include <string>

#include "lockctl/http/http_client.h"
#include "lockctl/output/exit_codes.h"

namespace lockd::cli {

struct HttpRefusal {
  std::string error{};  // the stable code, or empty when there is none
  std::string line{};   // for people
  ExitCode code = kExitProtocol;

  // Somebody else has it, and the wait is over.
  bool is_conflict() const { return error == "held" || error == "wait_timeout"; }
};

// Precondition: the reply is not ok.
HttpRefusal refusal_of(const HttpReply& reply);

}  // namespace lockd::cli
