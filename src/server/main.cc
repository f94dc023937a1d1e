// dflockd, lockd-server and dflockd-ha: one server under three sets of flags.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "config/environment.h"
#include "config/pages.h"
#include "server/daemon.h"
#include "server/log.h"
#include "server/settings/load_options.h"
#include "server/settings/option_table.h"
#include "server/tls_identity.h"

namespace lockd {
namespace {

constexpr Flavour kFlavour = Flavour::LOCKD_FLAVOUR;
#if defined(LOCKD_HA)
constexpr OpenCluster kOpenCluster = join_etcd_cluster;
#else
constexpr OpenCluster kOpenCluster = nullptr;
#endif

std::string version_text() {
  return std::string(program(kFlavour).name) + " " + std::string(kVersion) + "\n";
}

std::string help_text() { return config::help_text(config::place_of(program(kFlavour))); }

// How many descriptors, and so how many connections, this process may have: raises the soft limit
// to the hard one. The soft one, often 1,024, is kept low for the sake of programs that use
// select(), which this is not. Once, before there are threads.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, what there is will do
}

int run(int argc, char** argv) {
  const config::Environment environment = config::process_environment();
  Loaded loaded = load_options(kFlavour, {argv + 1, argv + argc}, environment);
  if (!loaded.error.empty()) return complain(loaded.error);
  scrub_secrets(loaded);
  switch (loaded.action) {
    case Action::help: return std::fputs(help_text().c_str(), stdout) < 0;
    case Action::version: return std::fputs(version_text().c_str(), stdout) < 0;
    case Action::print_config: return std::fputs(config_text(loaded).c_str(), stdout) < 0;
    case Action::check_config:
    case Action::serve: break;
  }
  raise_descriptor_limit();
  set_up_log(loaded.options.log_level, loaded.options.log_format);
  for (const std::string& warning : loaded.warnings) log_event(LogLevel::warn, warning);
  if (loaded.action == Action::serve) return serve(loaded.options, environment, kOpenCluster);
  const std::string error = TlsIdentity(loaded.options).load();
  return error.empty() ? EXIT_SUCCESS : complain(error);
}

}  // namespace
}  // namespace lockd

int main(int argc, char** argv) { return lockd::run(argc, argv); }
