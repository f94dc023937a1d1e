#include "cli/man_page.h"

#include <algorithm>
#include <cctype>

#include "cli/help_text.h"

namespace lockd::cli {
namespace {

// Text as roff takes it: its escapes escaped, and a line that begins with a control character
// guarded. Hyphens are to be minus signs, which is what people copy.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '~': out += "\\(ti"; break;
      case '^': out += "\\(ha"; break;
      default: out += c;
    }
  }
  return out;
}

// The argument of a macro.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : roff(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + '"';
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string title(const std::string& name) {
  return ".TH " + quoted(upper(name)) + " 1 \"\" " +
         quoted("lockd " + std::string(program_version())) + " \"User Commands\"\n";
}

std::string section(std::string_view name) { return ".SH " + quoted(upper(name)) + '\n'; }

// Empty lines between paragraphs become .PP.
std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    if (!out.empty()) out += ".PP\n";
    out += roff(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  return out;
}

std::string tagged(std::string_view tag, std::string_view text) {
  return ".TP\n.B " + quoted(tag) + '\n' + roff(text) + '\n';
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
    out += ".PP\n" + roff(example.meaning) + "\n.PP\n.RS 4\n.nf\n" + roff(example.line) +
           "\n.fi\n.RE\n";
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
  std::string out = title("lockctl") + section("Name") + "lockctl \\- " + roff(program_summary()) +
                    '\n' + section("Synopsis") + roff("lockctl COMMAND [OPTION...] [ARGUMENT...]") +
                    '\n' + section("Description") + paragraphs(program_description()) +
                    section("Commands");
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
  std::string out = title(name) + section("Name") + roff(name) + " \\- " + roff(command.summary) +
                    '\n' + section("Synopsis") + roff(usage_of(command)) + '\n' +
                    section("Description") + paragraphs(command.description);
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
