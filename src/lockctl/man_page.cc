#include "lockctl/man_page.h"

#include <algorithm>

#include "base/roff.h"
#include "lockctl/help_text.h"

namespace lockd::cli {
namespace {

using roff::escaped;
using roff::paragraphs;
using roff::section;
using roff::tagged;

std::string title(std::string_view name) {
  return roff::title(name, "lockd " + std::string(program_version()));
}

std::string group_text(const OptionGroup& group) {
  std::string out = section(group.title);
  for (const Option& option : group.options)
    out += tagged(spelling_of(option), explanation_of(option));
  return out;
}

std::string exits_text(std::span<const ExitMeaning> exits) {
  std::string out;
  for (const ExitMeaning& exit : exits) {
    const std::string name = exit.name.empty() ? "" : " (" + std::string(exit.name) + ')';
    out += tagged(std::string(exit.code) + name, exit.meaning);
  }
  return out;
}

std::string examples_text(std::span<const Example> examples) {
  std::string out = section("Examples");
  for (const Example& example : examples) {
    out += roff::example(example.meaning, example.line);
  }
  return out;
}

std::string see_also(std::string_view more) {
  return section("See also") + ".BR lockctl (1)" + (more.empty() ? "" : ",\n" + std::string(more)) +
         '\n';
}

}  // namespace

std::string page_name(const Command& command) {
  std::string name = "lockctl-" + std::string(command.name);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page() {
  std::string out =
      title("lockctl") + section("Name") + "lockctl \\- " + escaped(program_summary()) + '\n' +
      section("Synopsis") + escaped("lockctl COMMAND [OPTION...] [ARGUMENT...]") + '\n' +
      section("Description") + paragraphs(program_description()) + section("Commands");
  for (const Command& command : commands()) {
    out +=
        tagged(command.name, std::string(command.summary) + "; see " + page_name(command) + "(1).");
  }
  out += group_text({"Options", standard_options()});
  out += group_text({"Connection", connection_options()});
  out += section("Exit status") + exits_text(common_exits());
  out += section("Files") + tagged("$XDG_CONFIG_HOME/lockd.toml, ~/.config/lockd.toml",
                                   "Settings, under the names of the options of the connection.");
  return out;
}

std::string man_page(const Command& command) {
  const std::string name = page_name(command);
  std::string out = title(name) + section("Name") + escaped(name) + " \\- " +
                    escaped(command.summary) + '\n' + section("Synopsis") +
                    escaped(usage_of(command)) + '\n' + section("Description") +
                    paragraphs(command.description);
  if (!command.operands.empty()) out += section("Arguments");
  for (const Operand& operand : command.operands) out += tagged(operand.name, operand.help);
  for (const OptionGroup& group : command.groups) {
    if (!group.options.empty()) out += group_text(group);
  }
  if (!command.exits.empty()) {
    out += section("Exit status") + "That of the command, or\n" +
           exits_text(common_exits().subspan(1)) + exits_text(command.exits);
  }
  if (!command.examples.empty()) out += examples_text(command.examples);
  return out + see_also(command.name == "run" ? ".BR flock (1)" : "");
}

}  // namespace lockd::cli
