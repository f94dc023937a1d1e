// A number, a time or a boolean means the same to a server and to lockctl, whether it comes by a
// flag, a variable or a file.
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "config/testing/fake_environment.h"
#include "lockctl/commands/command_table.h"
#include "server/settings/option_table.h"

namespace lockd {
namespace {

using config::Option;

// One setting of one program, and words by which the program gets to it.
struct Program {
  const config::Command& program;
  std::span<const Option> table;
  config::Precedence precedence;
  std::vector<std::string> words;
  std::string name;
};

Program server(Flavour flavour, const char* name) {
  return {program(flavour), settings(flavour), config::Precedence::environment, {}, name};
}

Program lockctl(const char* name) {
  return {
      cli::program(), cli::connection_options(), config::Precedence::command_line, {"ping"}, name};
}

// What the setting is then, or nothing when it was refused.
std::optional<std::string> loaded(const Program& program, const config::FakeEnvironment& machine,
                                  const std::string& flag) {
  std::vector<const char*> words;
  for (const std::string& word : program.words) words.push_back(word.c_str());
  words.push_back(flag.c_str());
  const config::Parsed parsed = parse_arguments(program.program, words);
  if (!parsed.error.empty()) return std::nullopt;
  const config::Settings all = load_settings(program.table, parsed.arguments.given(),
                                             machine.environment(), program.precedence);
  if (!all.error.empty()) return std::nullopt;
  return all.text(program.name);
}

std::optional<std::string> by_flag(const Program& program, const std::string& text) {
  return loaded(program, {}, "--" + program.name + '=' + text);
}

std::optional<std::string> by_variable(const Program& program, const std::string& text) {
  config::FakeEnvironment machine;
  machine.variables[find_option(program.table, program.name)->variables[0]] = text;
  machine.files["f"];
  return loaded(program, machine, "--config=f");
}

std::optional<std::string> by_file(const Program& program, const std::string& text) {
  config::FakeEnvironment machine;
  machine.files["f"].text = program.name + " = " + text;
  return loaded(program, machine, "--config=f");
}

struct Spelling {
  std::string text;
  std::optional<std::string> value;
  bool is_toml = true;  // also without quotes
};

void expect_everywhere(const std::vector<Program>& programs,
                       const std::vector<Spelling>& spellings) {
  for (const Program& program : programs) {
    for (const Spelling& spelling : spellings) {
      SCOPED_TRACE(std::string(program.program.name) + " --" + program.name + ' ' + spelling.text);
      EXPECT_EQ(by_flag(program, spelling.text), spelling.value);
      EXPECT_EQ(by_variable(program, spelling.text), spelling.value);
      EXPECT_EQ(by_file(program, '"' + spelling.text + '"'), spelling.value);
      if (spelling.is_toml) {
        EXPECT_EQ(by_file(program, spelling.text), spelling.value);
      }
    }
  }
}

TEST(Spellings, OfTimes) {
  expect_everywhere(
      {server(Flavour::dflockd, "read-timeout"), server(Flavour::lockd_server, "gc-interval"),
       server(Flavour::dflockd_ha, "default-lease-ttl"), lockctl("connect-timeout")},
      {{"5", "5"},
       {"5.0", "5"},
       {"5.000000000000", "5"},
       {"1e1", "10"},
       {"1E+1", "10"},
       {"2.5e-1", "0.25"},
       {"0.5", "0.5"},
       {".5", "0.5", false},
       {"007", "7", false},
       {"9223372036", "9223372036"},
       {"9223372037", std::nullopt},
       {"0", std::nullopt},
       {"0.0", std::nullopt},
       {"1e-10", std::nullopt},
       {"-1", std::nullopt},
       {"5.", std::nullopt, false},
       {" 5", std::nullopt, false},
       {"inf", std::nullopt},
       {"nan", std::nullopt}});
}

// A person who types may name the unit; the setting of a server has it in its description.
TEST(Spellings, OfTimesWithAUnit) {
  for (const char* text : {"5s", "500ms", "2m", "1h"}) {
    EXPECT_EQ(by_flag(server(Flavour::dflockd, "read-timeout"), text), std::nullopt) << text;
  }
  expect_everywhere({lockctl("connect-timeout")}, {{"5s", "5", false},
                                                   {"500ms", "0.5", false},
                                                   {"2m", "120", false},
                                                   {"1h", "3600", false},
                                                   {"0s", std::nullopt, false},
                                                   {"5 s", std::nullopt, false},
                                                   {"5d", std::nullopt, false}});
}

TEST(Spellings, OfBooleans) {
  expect_everywhere({server(Flavour::dflockd, "debug"), lockctl("tls")},
                    {{"true", "true"},
                     {"false", "false"},
                     {"1", "true"},
                     {"0", "false"},
                     {"Yes", "true", false},
                     {"OFF", "false", false},
                     {"2", std::nullopt},
                     {"maybe", std::nullopt, false}});
}

// Of lockctl no setting is a whole number, but options are.
TEST(Spellings, OfWholeNumbers) {
  const std::vector<Spelling> spellings = {{"10", "10"},          {"10.0", "10"},
                                           {"1e1", "10"},         {"0010", "10", false},
                                           {"1.5", std::nullopt}, {"1e9", std::nullopt},
                                           {"-1", std::nullopt},  {"ten", std::nullopt, false}};
  expect_everywhere({server(Flavour::dflockd, "port"), server(Flavour::dflockd, "threads"),
                     server(Flavour::lockd_server, "port")},
                    spellings);
  for (const Spelling& spelling : spellings) {
    const std::string flag = "--conflict-exit-code=" + spelling.text;
    const config::Parsed parsed = parse_arguments(
        cli::program(), std::vector<const char*>{"run", flag.c_str(), "key", "command"});
    EXPECT_EQ(parsed.error.empty(), spelling.value.has_value()) << parsed.error;
    if (spelling.value) {
      EXPECT_EQ(parsed.arguments.text("conflict-exit-code"), *spelling.value);
    }
  }
}

}  // namespace
}  // namespace lockd
