// dflockd: locks and semaphores over the line protocol.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/descriptor_limit.h"
#include "server/load_options.h"
#include "server/log.h"
#include "server/option_text.h"
#include "server/service.h"
#include "server/surroundings.h"
#include "server/tls_identity.h"

namespace lockd {
namespace {

// What is in the table of settings and not in this server must not be passed over in silence.
std::string what_is_missing(const Options& options) {
  if (options.http_addr.has_value()) return "--http-addr";
  return {};
}

int run(int argc, char** argv) {
  const Surroundings surroundings = process_surroundings();
  Loaded loaded = load_options(Flavour::dflockd, {argv + 1, argv + argc}, surroundings);
  if (!loaded.error.empty()) return complain(loaded.error);
  scrub_secrets(loaded);
  switch (loaded.action) {
    case Action::help: return std::fputs(help_text(Flavour::dflockd).c_str(), stdout) < 0;
    case Action::version: return std::puts("dflockd " LOCKD_VERSION) < 0;
    case Action::print_config: return std::fputs(config_text(loaded).c_str(), stdout) < 0;
    case Action::check_config:
    case Action::serve: break;
  }
  raise_descriptor_limit();
  set_up_log(loaded.options.log_level, loaded.options.log_format);
  for (const std::string& warning : loaded.warnings) log_event(LogLevel::warn, warning);
  if (const std::string missing = what_is_missing(loaded.options); !missing.empty()) {
    return complain(missing + " is not supported by this version");
  }
  if (loaded.action == Action::serve) return serve(loaded.options, surroundings);
  const std::string error = TlsIdentity(loaded.options).load();
  return error.empty() ? EXIT_SUCCESS : complain(error);
}

}  // namespace
}  // namespace lockd

int main(int argc, char** argv) { return lockd::run(argc, argv); }
