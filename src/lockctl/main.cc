// lockctl: locks for people and scripts.
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "lockctl/arguments.h"
#include "lockctl/commands/commands.h"
#include "lockctl/help_text.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"
#include "lockctl/settings.h"

namespace lockd::cli {
namespace {

int complain(const std::string& line, int code) {
  std::fprintf(stderr, "lockctl: %s\n", line.c_str());
  return code;
}

// Others can read the arguments of a process; not for longer than it takes to get here.
void scrub(const Parsed& parsed) {
  for (const std::string_view secret : parsed.secrets) {
    std::memset(const_cast<char*>(secret.data()), '*', secret.size());
  }
}

int execute(const Parsed& parsed, Output& output) {
  if (!parsed.error.empty()) return complain(parsed.error, kExitUsage);
  if (parsed.action == Parsed::Action::version) {
    output.line("lockctl " + std::string(program_version()));
    return kExitOk;
  }
  if (parsed.action == Parsed::Action::help) {
    output.write(parsed.command == nullptr ? help_text() : help_text(*parsed.command));
    return kExitOk;
  }
  // What needs no server must not fail by a setting of one.
  const bool connects = find_option(*parsed.command, "server") != nullptr;
  const Settings settings =
      connects ? load_settings(parsed.arguments, process_environment()) : Settings{};
  return parsed.command->execute({*parsed.command, parsed.arguments, settings, output});
}

int run(int argc, char** argv) {
  const Parsed parsed = parse_arguments({argv + 1, argv + argc});
  scrub(parsed);
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
