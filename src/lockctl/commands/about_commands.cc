// What lockctl says of itself: completion, man.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "lockctl/commands/commands.h"
#include "lockctl/completion.h"
#include "lockctl/man_page.h"
#include "lockctl/output/failure.h"
#include "lockctl/values.h"

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

void write_pages(const std::string& directory) {
  std::error_code ignored;  // what matters is whether files can be written into it
  std::filesystem::create_directories(directory, ignored);
  write_file(directory + "/lockctl.1", man_page());
  for (const Command& command : commands()) {
    write_file(directory + '/' + page_name(command) + ".1", man_page(command));
  }
}

}  // namespace

int execute_completion(const Invocation& invocation) {
  const std::string& shell = invocation.arguments.operands().front();
  invocation.output.write(shell == "bash"  ? bash_completion()
                          : shell == "zsh" ? zsh_completion()
                                           : fish_completion());
  return kExitOk;
}

int execute_man(const Invocation& invocation) {
  if (const auto directory = invocation.arguments.text("directory")) {
    write_pages(std::string(*directory));
    return kExitOk;
  }
  std::string name;
  for (const std::string& word : invocation.arguments.operands()) {
    name += (name.empty() ? "" : " ") + word;
  }
  if (name.empty()) {
    invocation.output.write(man_page());
    return kExitOk;
  }
  const Command* const command = find_command(name);
  if (command == nullptr) throw Failure(kExitUsage, "there is no command " + in_quotes(name));
  invocation.output.write(man_page(*command));
  return kExitOk;
}

}  // namespace lockd::cli
