// What lockctl can be told, through its table.
#include "lockctl/commands/command_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "config/arguments.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

config::Parsed parse(const std::vector<const char*>& words) {
  return parse_arguments(program(), words);
}

Words given(const config::Parsed& parsed, std::string_view option) {
  Words texts;
  for (const config::Given& one : parsed.arguments.given()) {
    if (one.option->name == option) texts.push_back(one.text);
  }
  return texts;
}

TEST(CommandTable, SeveralKeysEndWithDashesOrAnOptionForTheCommand) {
  const config::Parsed several =
      parse({"run", "--all", "a", "-w", "5", "b", "--", "make", "--", "-n"});
  EXPECT_EQ(several.error, "");
  EXPECT_EQ(several.arguments.operands(), (Words{"a", "b"}));
  EXPECT_EQ(several.arguments.command(), (Words{"make", "--", "-n"}));
  EXPECT_EQ(several.arguments.seconds("wait"), 5s);
  const config::Parsed shell = parse({"run", "--all", "a", "b", "-c", "make"});
  EXPECT_EQ(shell.error, "");
  EXPECT_EQ(shell.arguments.operands(), (Words{"a", "b"}));
  EXPECT_EQ(parse({"run", "--all", "a", "b", "make"}).error, "lockctl run needs COMMAND");
  EXPECT_EQ(parse({"run", "--all", "--", "make"}).error, "lockctl run needs KEY");
  const config::Parsed one = parse({"run", "a", "b", "--", "make"});
  EXPECT_EQ(one.arguments.operands(), Words{"a"});
  EXPECT_EQ(one.arguments.command(), (Words{"b", "--", "make"}));
}

TEST(CommandTable, EveryTimeMayHaveAUnit) {
  int times = 0;
  for (const config::Place& place : places_of(config::place_of(program()))) {
    for (const config::Option* option : options_of(*place.command)) {
      EXPECT_NE(option->kind, config::Option::Kind::seconds) << place.path << ' ' << option->name;
      if (option->kind != config::Option::Kind::duration) continue;
      ++times;
      EXPECT_EQ(kept_text(*option, "2m"), "120") << place.path << ' ' << option->name;
      EXPECT_EQ(kept_text(*option, "5s"), "5") << place.path << ' ' << option->name;
    }
  }
  EXPECT_GT(times, 10);
  EXPECT_EQ(parse({"acquire", "k", "-w500ms"}).arguments.seconds("wait"), 500ms);
  EXPECT_EQ(parse({"run", "--ttl", "1h", "k", "true"}).arguments.seconds("ttl"), 1h);
}

TEST(CommandTable, CStandsBeforeAndBehindTheKey) {
  for (const auto& words :
       std::vector<std::vector<const char*>>{{"run", "k", "-c", "a | b"},
                                             {"run", "-c", "a | b", "k"},
                                             {"run", "k", "--command", "a | b"}}) {
    const config::Parsed parsed = parse(words);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.arguments.text("command"), "a | b");
    EXPECT_TRUE(parsed.arguments.command().empty());
  }
  EXPECT_NE(parse({"run", "k", "-c", "a", "b"}).error, "");
  EXPECT_NE(parse({"run", "-c", "a", "k", "b"}).error, "");
}

TEST(CommandTable, OptionsOfTheConnectionMayComeFirst) {
  const config::Parsed parsed = parse({"-s", "a:1", "--server=b:2", "ping", "-s", "c:3"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(given(parsed, "server"), (Words{"a:1", "b:2", "c:3"}));
  EXPECT_EQ(parse({"-s", "a:1", "completion", "bash"}).error,
            "lockctl completion has no option --server");
}

TEST(CommandTable, TogglesMayBeTurnedOff) {
  EXPECT_TRUE(parse({"ping", "--tls"}).arguments.has("tls"));
  EXPECT_FALSE(parse({"ping", "--tls", "--no-tls"}).arguments.has("tls"));
  EXPECT_FALSE(parse({"ping", "--tls=off"}).arguments.has("tls"));
  EXPECT_EQ(parse({"ping", "--no-tls=1"}).error, "--no-tls takes no value");
}

TEST(CommandTable, TheHttpOfBenchIsAToggle) {
  EXPECT_TRUE(parse({"bench", "--http", "--workers", "3"}).arguments.has("http"));
  EXPECT_EQ(parse({"ping", "--http", "a:1"}).arguments.text("http"), "a:1");
}

TEST(CommandTable, MistakesAreNamed) {
  const struct {
    std::vector<const char*> words;
    const char* error;
  } cases[] = {
      {{"run", "-w", "soon", "k"},
       "--wait from the command line is 'soon': it takes seconds, from 0 to 9223372036, such as 5 "
       "or 0.5, or with a unit: 500ms, 5s, 2m, 1h"},
      {{"run", "-E", "256", "k"},
       "--conflict-exit-code from the command line is '256': it takes a whole number from 0 to "
       "255"},
      {{"run", "--semaphore", "0", "k"},
       "--semaphore from the command line is '0': it takes a whole number from 1 to 2147483647"},
      {{"ping", "x"}, "unexpected argument 'x'"},
      {{"completion", "tcsh"}, "SHELL is 'tcsh': it takes bash, zsh or fish"},
      {{"ping", "--token", ""},
       "--token from the command line is not valid: it takes one line of text, not empty, at most "
       "65536 bytes"},
  };
  for (const auto& [words, error] : cases) EXPECT_EQ(parse(words).error, error);
}

TEST(CommandTable, NoCommandHasTwoOptionsOfOneName) {
  for (const config::Place& place : places_of(config::place_of(program()))) {
    Words seen;
    for (const config::Option* option : options_of(*place.command)) {
      for (const std::string& name :
           {std::string(option->name), std::string(option->alias),
            option->letter == 0 ? std::string() : std::string(1, option->letter)}) {
        if (name.empty()) continue;
        EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0)
            << place.path << " has --" << name << " twice";
        seen.push_back(name);
      }
      EXPECT_EQ(option->takes_value(), !option->value.empty()) << option->name;
      EXPECT_FALSE(option->help.empty()) << option->name;
    }
    EXPECT_EQ(execute_of(place) == nullptr, !place.command->commands.empty()) << place.path;
  }
}

}  // namespace
}  // namespace lockd::cli
