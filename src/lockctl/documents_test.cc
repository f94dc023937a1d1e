// The help, the manual and the completions say all that is in the table, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/pages.h"
#include "lockctl/commands/command_table.h"

namespace lockd::cli {
namespace {

using config::Option;
using config::Place;
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

// Those that are called by themselves.
std::vector<Place> all_commands() {
  auto places = places_of(place_of(program()));
  std::erase_if(places, [](const Place& place) { return !place.command->commands.empty(); });
  return places;
}

// "wal verify" of "lockctl wal verify".
std::string words_of(const Place& place) { return place.path.substr(program().name.size() + 1); }

Names table_options(const Place& place) {
  Names names{"help"};
  for (const Option* option : options_of(*place.command)) {
    names.insert(std::string(option->name));
    if (!option->alias.empty()) names.insert(std::string(option->alias));
    if (option->has_negation()) names.insert("no-" + std::string(option->name));
  }
  return names;
}

// Those that its own pages list; the others are those of the connection.
Names own_options(const Place& place) {
  Names names;
  for (const Option& option : place.command->options) {
    names.insert(std::string(option.name));
    if (!option.alias.empty()) names.insert(std::string(option.alias));
    if (option.has_negation()) names.insert("no-" + std::string(option.name));
  }
  return names;
}

std::string manual(const Place& place) { return man_page(place, "lockd"); }

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
  for (const Place& place : all_commands()) {
    Names said = long_options(help_text(place));
    for (const std::string& name : own_options(place)) {
      EXPECT_TRUE(said.contains(name)) << place.path << ": --" << name;
    }
    // An example or an explanation may speak of flock's, or of the server's --wal and --access.
    const Names known = table_options(place);
    for (const std::string& name : said) {
      if (Names{"wal", "access", "http", "servers"}.contains(name)) continue;
      EXPECT_TRUE(known.contains(name)) << place.path << " has no --" << name;
    }
  }
}

TEST(Documents, TheConnectionIsExplainedInOnePlace) {
  const Place connection{"lockctl connection", find_command(program(), "connection")};
  const std::string whole = help_text(connection);
  for (const Option& option : connection_options()) {
    EXPECT_NE(whole.find(meaning_text(option).substr(0, 20)), std::string::npos) << option.name;
  }
  for (const Place& place : all_commands()) {
    const std::string help = help_text(place);
    EXPECT_EQ(help.find(" lists them.\n") != std::string::npos, !place.command->shared.empty())
        << place.path;
    if (place.command->shared.empty()) continue;
    EXPECT_NE(help.find("Connection:\n  --server, --cluster, "), std::string::npos) << help;
    EXPECT_NE(help.find(" and so on: lockctl connection lists them.\n"), std::string::npos);
    EXPECT_EQ(help.find("LOCKD_TLS"), std::string::npos) << place.path;
    EXPECT_NE(without_roff(manual(place)).find("see lockctl-connection(1)"), std::string::npos);
  }
}

TEST(Documents, HelpFitsATerminal) {
  for (const Place& place : all_commands()) {
    std::istringstream lines(help_text(place));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(Documents, TheManualSaysWhatTheHelpSays) {
  for (const Place& place : all_commands()) {
    EXPECT_EQ(long_options(without_roff(manual(place))), long_options(help_text(place)))
        << place.path;
    EXPECT_NE(without_roff(manual(place_of(program()))).find(page_name(place) + "(1)"),
              std::string::npos);
  }
  EXPECT_EQ(long_options(without_roff(manual(place_of(program())))),
            long_options(help_text(place_of(program()))));
}

TEST(Documents, TheManualIsWellFormed) {
  for (const Place& place : all_commands()) {
    const std::string page = manual(place);
    EXPECT_TRUE(page.starts_with(".TH \"LOCKCTL\\-")) << page.substr(0, 40);
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.empty()) << "an empty line in " << place.path;
      if (!line.starts_with('.')) continue;
      static const std::regex known(R"(\.(TH|SH|TP|B|BR|PP|RS|RE|nf|fi)( .*)?)");
      EXPECT_TRUE(std::regex_match(line, known)) << line;
    }
  }
}

TEST(Documents, BashKnowsEveryCommandAndOption) {
  const std::string script = bash_completion(program());
  for (const Place& place : all_commands()) {
    std::string line = line_with(script, "    '" + words_of(place) + "') words=");
    line.resize(std::min(line.find("; listed_by="), line.size()));  // how another command is called
    EXPECT_EQ(long_options(line), table_options(place)) << place.path;
  }
}

TEST(Documents, ZshKnowsEveryCommandAndOption) {
  const std::string script = zsh_completion(program());
  for (const Place& place : all_commands()) {
    const std::string word(place.command->name);
    // Commands below others are in a function of those: `wal` and `cluster` have an `inspect` each.
    std::string function = "_lockctl";
    const std::string words = words_of(place);
    if (words != word) function += '_' + words.substr(0, words.find(' '));
    const std::size_t within = script.find('\n' + function + "() {\n");
    ASSERT_NE(within, std::string::npos) << function;
    const std::size_t start = script.find("\n    " + word + ")\n", within);
    ASSERT_NE(start, std::string::npos) << word;
    const std::string part = script.substr(start, script.find(" ;;\n", start) - start);
    // Only where they are declared: explanations speak of others.
    static const std::regex declared("'\\*?--([a-z][a-z-]*)[=\\[]");
    Names names;
    for (std::sregex_iterator it(part.begin(), part.end(), declared), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
    EXPECT_EQ(names, table_options(place)) << place.path;
  }
}

TEST(Documents, FishKnowsEveryCommandAndOption) {
  const std::string script = fish_completion(program());
  static const std::regex declared(" -l ([a-z][a-z-]*)");
  for (const Place& place : all_commands()) {
    const std::string words = words_of(place);
    const std::size_t space = words.find(' ');
    std::string when = "-n '__fish_seen_subcommand_from " + words.substr(0, space);
    if (space != std::string_view::npos) {
      when += "; and __fish_seen_subcommand_from " + words.substr(space + 1);
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
    EXPECT_EQ(names, table_options(place)) << place.path;
  }
}

TEST(Documents, EveryExitCodeIsExplained) {
  const std::string help = config::help_text({"lockctl run", find_command(program(), "run")});
  for (const char* code : {"1", "64", "69", "75", "77", "79", "126", "127", "128+n"}) {
    EXPECT_NE(help.find("\n  " + std::string(code) + "\n"), std::string::npos) << code;
  }
}

}  // namespace
}  // namespace lockd::cli
