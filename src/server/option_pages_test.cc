// The pages say all that is in the table.
#include "server/option_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>

#include "server/load_options_fixture.h"
#include "server/option_table.h"
#include "server/option_text.h"

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

TEST(ManPage, HasEverySettingWithItsVariablesAndDefault) {
  for (const Flavour flavour : {Flavour::dflockd, Flavour::lockd_server}) {
    const std::string page = without_roff(man_page(flavour));
    for (const Setting& setting : settings(flavour)) {
      EXPECT_NE(page.find("\n.B \"" + flag_text(setting) + "\"\n"), std::string::npos)
          << setting.name;
      EXPECT_NE(page.find(facts_text(flavour, setting)), std::string::npos) << setting.name;
    }
  }
}

TEST(StartingConfig, ChangesNothing) {
  const Machine machine;
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
  const Machine machine;
  const Loaded shown = machine.load_file(uncommented(config));
  ASSERT_EQ(shown.error, "");
  const Options plain = default_options(Flavour::dflockd);
  for (const Setting& setting : settings(Flavour::dflockd)) {
    if (setting.name == "config" || setting.name == "threads" || setting.name == "metrics")
      continue;
    EXPECT_EQ(setting.print(shown.options), setting.print(plain)) << setting.name;
  }
}

}  // namespace
}  // namespace lockd
