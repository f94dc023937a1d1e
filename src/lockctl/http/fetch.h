// Asking a server, for commands that only look.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "lockctl/commands/commands.h"
#include "lockctl/http/http_cluster.h"
#include "lockd/client/address.h"

namespace lockd::cli {

// The HTTP port. Throws Failure, with what is missing and where to say it, when there is none.
std::unique_ptr<HttpCluster> require_http(const Invocation& invocation);

// Those who know all there is to know: of servers that share the keys all, of a cluster the one
// that leads. Throws Failure.
std::vector<client::Address> servers_to_ask(const Settings& settings, std::stop_token stop = {});

// The statistics of the line port, as JSON. Throws Failure.
std::string fetch_stats(const Settings& settings, const client::Address& server,
                        std::stop_token stop = {});

}  // namespace lockd::cli
