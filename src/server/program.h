// The programs lockd and lockd-ha, which differ in what they are given here.
#pragma once

#include <string>

#include "server/server_context.h"
#include "server/settings/load_options.h"

namespace lockd {

struct ServerProgram {
  Profile (*profile_of)(const char* path);  // the path it was called by
  ClusterSupport cluster{};
  // Instead of serving: writes what the cluster holds into a new directory, as a journal; or begins
  // a cluster with what is in one. Null: the program has no such options. Each prints a line and
  // returns the status to exit with. A failure is explained on stderr.
  int (*export_chain)(const Options& options, const std::string& directory) = nullptr;
  int (*import_chain)(const Options& options, const std::string& directory) = nullptr;
};

// The whole program. Returns the status to exit with.
int run_program(int argc, char** argv, const ServerProgram& does);

}  // namespace lockd
