// Asking a server, for commands that only look.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "cli/commands.h"
#include "cli/http_client.h"
#include "lockd/client/address.h"

namespace lockd::cli {

// The HTTP port. Throws Failure, with what is missing and where to say it, when there is none.
std::unique_ptr<HttpClient> require_http(const Invocation& invocation);

// The statistics of the line port, as JSON. Throws Failure.
std::string fetch_stats(const Settings& settings, const client::Address& server,
                        std::stop_token stop = {});

}  // namespace lockd::cli
