// The help, the manual and the completions say all that is in the table, and nothing else.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "lockctl/commands/command_table.h"
#include "lockctl/completion.h"
#include "lockctl/help_text.h"
#include "lockctl/man_page.h"

namespace lockd::cli {
namespace {

using Names = std::set<std::string>;

// Every long option that a text speaks of.
Names long_options(const std::string& text) {
  static const std::regex option("--([a-z][a-z-]*)");
  Names names;
  for (std::sregex_iterator it(text.begin(), text.end(), option), end; it != end; ++it) {
    names.insert((*it)[1]);
  }
  return names;
}

Names table_options(const Command& command) {
  Names names{"help"};
  for (const OptionGroup& group : command.groups) {
    for (const Option& option : group.options) {
      names.insert(std::string(option.name));
      if (!option.alias.empty()) names.insert(std::string(option.alias));
    }
  }
  return names;
}

std::string without_roff(std::string text) {
  for (std::size_t at; (at = text.find("\\-")) != std::string::npos;) text.replace(at, 2, "-");
  return text;
}

std::string line_with(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  if (at == std::string::npos) return "";
  return text.substr(at, text.find('\n', at) - at);
}

TEST(Documents, HelpHasEveryOptionOfTheCommand) {
  for (const Command& command : commands()) {
    Names said = long_options(help_text(command));
    for (const std::string& name : table_options(command)) {
      if (name == "help") continue;
      EXPECT_TRUE(said.contains(name)) << command.name << ": --" << name;
    }
    // An example or an explanation may speak of flock's, or of the server's --wal.
    const Names known = table_options(command);
    for (const std::string& name : said) {
      if (name == "wal" || name == "http" || name == "servers") continue;
      EXPECT_TRUE(known.contains(name)) << command.name << " has no --" << name;
    }
  }
}

TEST(Documents, HelpFitsATerminal) {
  for (const Command& command : commands()) {
    std::istringstream lines(help_text(command));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Documents, TheManualSaysWhatTheHelpSays) {
  for (const Command& command : commands()) {
    EXPECT_EQ(long_options(without_roff(man_page(command))), long_options(help_text(command)))
        << command.name;
    EXPECT_NE(without_roff(man_page()).find(page_name(command) + "(1)"), std::string::npos);
  }
  EXPECT_EQ(long_options(without_roff(man_page())), long_options(help_text()));
}

TEST(Documents, TheManualIsWellFormed) {
  for (const Command& command : commands()) {
    const std::string page = man_page(command);
    EXPECT_TRUE(page.starts_with(".TH \"LOCKCTL\\-")) << page.substr(0, 40);
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.empty()) << "an empty line in " << command.name;
      if (!line.starts_with('.')) continue;
      static const std::regex known(R"(\.(TH|SH|TP|B|BR|PP|RS|RE|nf|fi)( .*)?)");
      EXPECT_TRUE(std::regex_match(line, known)) << line;
    }
  }
}

TEST(Documents, BashKnowsEveryCommandAndOption) {
  const std::string script = bash_completion();
  for (const Command& command : commands()) {
    const std::string line = line_with(script, "    '" + std::string(command.name) + "') words=");
    EXPECT_EQ(long_options(line), table_options(command)) << command.name;
  }
}

TEST(Documents, ZshKnowsEveryCommandAndOption) {
  const std::string script = zsh_completion();
  for (const Command& command : commands()) {
    const std::string word(command.name.substr(command.name.rfind(' ') + 1));
    const std::size_t start = script.find("\n    " + word + ")\n");
    ASSERT_NE(start, std::string::npos) << word;
    const std::string part = script.substr(start, script.find(" ;;\n", start) - start);
    // Only where they are declared: explanations speak of others.
    static const std::regex declared("'\\*?--([a-z][a-z-]*)[=\\[]");
    Names names;
    for (std::sregex_iterator it(part.begin(), part.end(), declared), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
    EXPECT_EQ(names, table_options(command)) << command.name;
  }
}

TEST(Documents, FishKnowsEveryCommandAndOption) {
  const std::string script = fish_completion();
  static const std::regex declared(" -l ([a-z][a-z-]*)");
  for (const Command& command : commands()) {
    const std::size_t space = command.name.find(' ');
    std::string when =
        "-n '__fish_seen_subcommand_from " + std::string(command.name.substr(0, space));
    if (space != std::string_view::npos) {
      when += "; and __fish_seen_subcommand_from " + std::string(command.name.substr(space + 1));
    }
    when += "'";
    Names names{"help"};
    std::istringstream lines(script);
    for (std::string line; std::getline(lines, line);) {
      if (line.find(when) == std::string::npos) continue;
      const std::string declaration = line.substr(0, line.find(" -d "));
      for (std::sregex_iterator it(declaration.begin(), declaration.end(), declared), end;
           it != end; ++it) {
        names.insert((*it)[1]);
      }
    }
    EXPECT_EQ(names, table_options(command)) << command.name;
  }
}

TEST(Documents, EveryExitCodeIsExplained) {
  const std::string help = help_text(*find_command("run"));
  for (const char* code : {"1", "64", "69", "75", "77", "79", "126", "127", "128+n"}) {
    EXPECT_NE(help.find("\n  " + std::string(code) + "\n"), std::string::npos) << code;
  }
}

}  // namespace
}  // namespace lockd::cli
