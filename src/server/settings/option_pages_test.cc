// The pages say all that is in the table.
#include "server/settings/option_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "server/settings/command_line.h"
#include "server/settings/load_options_fixture.h"
#include "server/settings/option_table.h"
#include "server/settings/option_text.h"

namespace lockd {
namespace {

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
std::set<std::string> all_flags(Flavour flavour) {
  std::set<std::string> flags;
  for (const Setting& setting : settings(flavour)) {
    flags.insert("--" + std::string(setting.name));
    if (setting.shape == Setting::Shape::boolean) flags.insert("--no-" + std::string(setting.name));
  }
  for (const ActionFlag& flag : action_flags()) flags.insert("--" + std::string(flag.name));
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
  for (const Flavour flavour : {Flavour::dflockd, Flavour::lockd_server, Flavour::dflockd_ha}) {
    const std::string page = without_roff(man_page(flavour));
    for (const Setting& setting : settings(flavour)) {
      EXPECT_NE(page.find("\n.B \"" + flag_text(setting) + "\"\n"), std::string::npos)
          << setting.name;
      EXPECT_NE(page.find(facts_text(flavour, setting)), std::string::npos) << setting.name;
    }
  }
}

TEST(StartingConfig, ChangesNothing) {
  const FakeEnvironment machine;
  const Loaded loaded = machine.load_file(starting_config(Flavour::dflockd));
  EXPECT_EQ(loaded.error, "");
  EXPECT_EQ(loaded.options.port, default_options(Flavour::dflockd).port);
}

TEST(StartingConfig, ShowsTheDefaultOfEverySetting) {
  const std::string config = starting_config(Flavour::dflockd);
  for (const Setting& setting : settings(Flavour::dflockd)) {
    if (setting.name == "config") continue;
    EXPECT_NE(config.find("\n#" + std::string(setting.name) + " = "), std::string::npos)
        << setting.name;
  }
  // As settings they are taken, and are what applies without them.
  const FakeEnvironment machine;
  const Loaded shown = machine.load_file(uncommented(config));
  ASSERT_EQ(shown.error, "");
  const Options plain = default_options(Flavour::dflockd);
  for (const Setting& setting : settings(Flavour::dflockd)) {
    if (setting.name == "config" || setting.name == "threads" || setting.name == "metrics")
      continue;
    EXPECT_EQ(setting.print(shown.options), setting.print(plain)) << setting.name;
  }
}

TEST(ConfigurationPage, IsTheOneInTheDocumentation) {
  std::ifstream file(LOCKD_SOURCE_DIR "/docs/configuration.md");
  const std::string committed(std::istreambuf_iterator<char>(file), {});
  EXPECT_TRUE(committed == configuration_page())
      << "docs/configuration.md is not what the table says; copy made/configuration.md there, from "
         "the folder of the build";
}

TEST(ConfigurationPage, SaysWhereLockdServerDiffers) {
  const std::string page = configuration_page();
  const std::string part = page.substr(page.find("## Where lockd-server differs"));
  for (const char* row : {"| `--addr HOST:PORT` | `DFLOCKD_HTTP_ADDR` | :8080 |",
                          "| `--port N` | `DFLOCKD_PORT` | no line port |",
                          "| `--metrics`, `--no-metrics` | `DFLOCKD_METRICS` | false |",
                          "| `--max-locks N` | `DFLOCKD_MAX_LOCKS` | 1000000 |"}) {
    EXPECT_NE(part.find(row), std::string::npos) << row;
  }
}

TEST(Completions, HaveEveryFlagAndNoOther) {
  for (const Flavour flavour : {Flavour::dflockd, Flavour::lockd_server, Flavour::dflockd_ha}) {
    const std::string bash = bash_completion(flavour);
    const std::string offered = bash.substr(bash.find("compgen -W"));
    EXPECT_EQ(flags_in(offered, "--([a-z][a-z-]*)"), all_flags(flavour));
    EXPECT_EQ(flags_in(zsh_completion(flavour), "\\n  '--([a-z][a-z-]*)"), all_flags(flavour));
    EXPECT_EQ(flags_in(fish_completion(flavour), " -l ([a-z][a-z-]*)"), all_flags(flavour));
  }
}

}  // namespace
}  // namespace lockd
