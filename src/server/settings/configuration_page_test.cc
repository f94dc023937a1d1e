// The pages say all that is in the table.
#include "config/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "server/settings/option_table.h"
#include "server/settings/testing/load_options_fixture.h"

namespace lockd {
namespace {

using config::Option;

std::string starting_config() { return config::starting_config("lockd", settings(Profile::lockd)); }

// With every setting in force that stands commented out, but for words in capitals.
std::string uncommented(const std::string& config) {
  std::istringstream lines(config);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#') || line.starts_with("##")) continue;
    const std::string value = line.substr(line.find('=') + 1);
    const bool lower = std::any_of(value.begin(), value.end(), [](char c) {
      return std::islower(static_cast<unsigned char>(c)) ||
             std::isdigit(static_cast<unsigned char>(c));
    });
    if (lower) text += line.substr(1) + '\n';
  }
  return text;
}

std::string without_roff(std::string text) {
  for (std::size_t at; (at = text.find("\\-")) != std::string::npos;) text.replace(at, 2, "-");
  return text;
}

// Every flag there is, with its dashes.
std::set<std::string> all_flags(Profile profile) {
  std::set<std::string> flags;
  for (const Option& option : program(profile).options) {
    flags.insert("--" + std::string(option.name));
    if (!option.alias.empty()) flags.insert("--" + std::string(option.alias));
    if (option.has_negation()) flags.insert("--no-" + std::string(option.name));
  }
  return flags;
}

// What `pattern` finds in its first group, each behind two dashes.
std::set<std::string> flags_in(const std::string& text, const char* pattern) {
  const std::regex declared(pattern);
  std::set<std::string> flags;
  for (std::sregex_iterator it(text.begin(), text.end(), declared), end; it != end; ++it) {
    flags.insert("--" + (*it)[1].str());
  }
  return flags;
}

TEST(ManPage, HasEverySettingWithItsVariablesAndDefault) {
  for (const Profile profile :
       {Profile::lockd, Profile::dflockd, Profile::lockd_server, Profile::lockd_ha}) {
    const std::string page = without_roff(man_page(config::place_of(program(profile)), "lockd"));
    for (const Option& option : settings(profile)) {
      EXPECT_NE(page.find("\n.B \"" + flag_text(option) + "\"\n"), std::string::npos)
          << option.name;
      EXPECT_NE(page.find(facts_text(option)), std::string::npos) << option.name;
    }
  }
}

TEST(StartingConfig, ChangesNothing) {
  const FakeEnvironment machine;
  const Loaded loaded = machine.load_file(starting_config());
  EXPECT_EQ(loaded.error, "");
  EXPECT_EQ(loaded.options.port, default_options(Profile::lockd).port);
}

bool follows_from_the_machine(std::string_view name) {
  return name == "threads" || name == "metrics" || name == "max-connections" ||
         name == "max-unauthenticated" || name == "max-buffer-memory";
}

TEST(StartingConfig, ShowsTheDefaultOfEverySetting) {
  const std::string config = starting_config();
  for (const Option& option : settings(Profile::lockd)) {
    if (option.name == "config") continue;
    EXPECT_NE(config.find("\n#" + std::string(option.name) + " = "), std::string::npos)
        << option.name;
  }
  // As settings they are taken, and are what applies without them.
  const FakeEnvironment machine;
  const Loaded shown = machine.load_file(uncommented(config));
  ASSERT_EQ(shown.error, "");
  for (const Option& option : settings(Profile::lockd)) {
    if (option.name == "config" || follows_from_the_machine(option.name)) continue;
    EXPECT_EQ(value_of(shown, option.name), option.by_default) << option.name;
  }
}

TEST(ConfigurationPage, IsTheOneInTheDocumentation) {
  std::ifstream file(LOCKD_SOURCE_DIR "/docs/configuration.md");
  const std::string committed(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(committed == configuration_page())
      << "docs/configuration.md is not what the table says; copy made/configuration.md there, from "
         "the folder of the build";
}

TEST(ConfigurationPage, SaysWhatProfilesChange) {
  const std::string page = configuration_page();
  for (const char* row :
       {"| `--port` | 6388 | 6388 | no line port |\n",
        "| `--http-addr` | 127.0.0.1:8080 | off | :8080, also called `--addr` |\n",
        "| `--metrics` | true when HTTP is on | true when HTTP is on | false |\n",
        "| `--max-locks` | 1000000 | 1024 | 1000000 |\n",
        "| `--wal` | lockd-data | off | off |\n"}) {
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Completions, HaveEveryFlagAndNoOther) {
  for (const Profile profile :
       {Profile::lockd, Profile::dflockd, Profile::lockd_server, Profile::lockd_ha}) {
    const config::Command& server = program(profile);
    const std::string bash = bash_completion(server);
    const std::string offered = bash.substr(bash.find("options=\"--"));
    EXPECT_EQ(flags_in(offered, "--([a-z][a-z-]*)"), all_flags(profile));
    EXPECT_EQ(flags_in(zsh_completion(server), "\\n +'[*]?--([a-z][a-z-]*)"), all_flags(profile));
    EXPECT_EQ(flags_in(fish_completion(server), " -l ([a-z][a-z-]*)"), all_flags(profile));
  }
}

}  // namespace
}  // namespace lockd
