// The help says all that is in the table, and nothing else. That manuals and completions name what
// the help names, tests/docs/settings_pages_test shows.
#include <gtest/gtest.h>

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

TEST(Documents, EveryExitCodeIsExplained) {
  const std::string help = config::help_text({"lockctl run", find_command(program(), "run")});
  for (const char* code : {"1", "64", "69", "75", "77", "79", "126", "127", "128+n"}) {
    EXPECT_NE(help.find("\n  " + std::string(code) + "\n"), std::string::npos) << code;
  }
}

}  // namespace
}  // namespace lockd::cli
