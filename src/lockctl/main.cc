// lockctl: locks for people and scripts.
#include <cstdio>
#include <exception>
#include <string>

#include "config/arguments.h"
#include "config/environment.h"
#include "config/pages.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/settings.h"

namespace lockd::cli {
namespace {

int complain(const std::string& line, int code) {
  std::fprintf(stderr, "lockctl: %s\n", line.c_str());
  return code;
}

int execute(const config::Parsed& parsed, Output& output) {
  if (!parsed.error.empty()) return complain(parsed.error, kExitUsage);
  if (parsed.arguments.has("help")) {
    output.write(help_text(parsed.place));
    return kExitOk;
  }
  if (parsed.arguments.has("version")) {
    return execute_version({parsed.place, parsed.arguments, {}, output});
  }
  // What needs no server must not fail by a setting of one.
  const bool connects = !parsed.place.command->shared.empty();
  const Settings settings =
      connects ? load_settings(parsed.arguments, config::process_environment()) : Settings{};
  return execute_of(parsed.place)({parsed.place, parsed.arguments, settings, output});
}

// Others can read the arguments and the environment of a process, a command that it runs among
// them; not for longer than it takes to get here.
void hide_secrets(const config::Parsed& parsed) {
  config::scrub(parsed.secrets);
  for (const config::Option& option : connection_options()) {
    if (!option.secret) continue;
    for (const char* name : option.variables) {
      if (name != nullptr) config::hide_variable(name);
    }
  }
}

int run(int argc, char** argv) {
  const config::Parsed parsed = parse_arguments(program(), {argv + 1, argv + argc});
  hide_secrets(parsed);
  Output output(stdout);
  try {
    return execute(parsed, output);
  } catch (const Failure& failure) {
    return complain(failure.what(), failure.code());
  } catch (const std::exception& error) {
    return complain(std::string("unexpected: ") + error.what(), kExitSoftware);
  }
}

}  // namespace
}  // namespace lockd::cli

int main(int argc, char** argv) { return argc < 1 ? 64 : lockd::cli::run(argc, argv); }
