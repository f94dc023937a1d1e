#include "server/program.h"

#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/version.h"
#include "config/environment.h"
#include "config/pages.h"
#include "server/daemon.h"
#include "server/log.h"
#include "server/settings/load_options.h"
#include "server/settings/option_table.h"
#include "server/tls_identity.h"

namespace lockd {
namespace {

// How many descriptors, and so how many connections, this process may have: raises the soft limit
// to the hard one. The soft one, often 1,024, is kept low for the sake of programs that use
// select(), which this is not. Once, before the settings are read and there are threads.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, what there is will do
}

// The operation that ran out of memory is half done: the process ends before any client sees that.
// The message is a fixed text, because the log needs memory.
[[noreturn]] void end_out_of_memory() {
  char words[] =
      ": out of memory, and ends at once; what was acknowledged is in the journal, if it keeps "
      "one\n";
  char* const name = ::program_invocation_short_name;
  const iovec line[] = {{name, std::strlen(name)}, {words, sizeof words - 1}};
  [[maybe_unused]] const ssize_t written = ::writev(STDERR_FILENO, line, 2);
  std::abort();
}

int print(const std::string& text) { return std::fputs(text.c_str(), stdout) < 0; }

int check_config(const Loaded& loaded) {
  const std::string error = TlsIdentity(loaded.options).load();
  return error.empty() ? print(config_text(loaded)) : complain(error);
}

int act(const Loaded& loaded, const config::Environment& environment, const ServerProgram& does) {
  switch (loaded.action) {
    case Action::export_chain: return does.export_chain(loaded.options, loaded.directory);
    case Action::import_chain: return does.import_chain(loaded.options, loaded.directory);
    case Action::check_config: return check_config(loaded);
    default: return serve(loaded.options, environment, does.cluster);
  }
}

}  // namespace

int run_program(int argc, char** argv, const ServerProgram& does) {
  if (argc < 1) return EXIT_FAILURE;
  std::set_new_handler(end_out_of_memory);
  raise_descriptor_limit();
  const config::Environment environment = config::process_environment();
  const Profile profile = does.profile_of(argv[0]);
  Loaded loaded = load_options(profile, {argv + 1, argv + argc}, environment);
  if (!loaded.error.empty()) return complain(loaded.error);
  scrub_secrets(loaded);
  switch (loaded.action) {
    case Action::help: return print(config::help_text(config::place_of(program(profile))));
    case Action::version: return print(version_text(program(profile).name));
    default: break;
  }
  set_up_log(loaded.options.log_level, loaded.options.log_format);
  for (const std::string& warning : loaded.warnings) log_event(LogLevel::warn, warning);
  const int status = act(loaded, environment, does);
  end_log();
  return status;
}

}  // namespace lockd
