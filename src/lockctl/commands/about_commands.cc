// What lockctl says of itself: connection, completion, man, version.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/version.h"
#include "config/pages.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/commands/commands.h"
#include "lockctl/output/failure.h"
#include "lockctl/output/output.h"

namespace lockd::cli {
namespace {

void write_file(const std::string& path, const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "we"),
                                                             std::fclose);
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    throw Failure(kExitIo, path + ": " + std::generic_category().message(errno));
  }
}

std::string page_of(const config::Place& place) {
  return man_page(place, "lockd " + std::string(kVersion));
}

void write_pages(const std::string& directory) {
  std::error_code ignored;  // what matters is whether files can be written into it
  std::filesystem::create_directories(directory, ignored);
  for (const config::Place& place : places_of(config::place_of(program()))) {
    write_file(directory + '/' + page_name(place) + ".1", page_of(place));
  }
}

}  // namespace

int execute_connection(const Invocation& invocation) {
  invocation.output.write(help_text(invocation.place));
  return kExitOk;
}

int execute_version(const Invocation& invocation) {
  invocation.output.write(version_text("lockctl"));
  return kExitOk;
}

int execute_completion(const Invocation& invocation) {
  const std::string& shell = invocation.arguments.operands().front();
  invocation.output.write(shell == "bash"  ? bash_completion(program())
                          : shell == "zsh" ? zsh_completion(program())
                                           : fish_completion(program()));
  return kExitOk;
}

int execute_man(const Invocation& invocation) {
  if (const auto directory = invocation.arguments.text("directory")) {
    write_pages(std::string(*directory));
    return kExitOk;
  }
  config::Place place = config::place_of(program());
  for (const std::string& word : invocation.arguments.operands()) {
    place.path += ' ' + word;
    place.command = find_command(*place.command, word);
    if (place.command == nullptr) {
      throw Failure(kExitUsage, "there is no command " + in_quotes(place.path));
    }
  }
  invocation.output.write(page_of(place));
  return kExitOk;
}

}  // namespace lockd::cli
