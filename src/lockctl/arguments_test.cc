#include "lockctl/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "lockctl/help_text.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

Parsed parse(const std::vector<const char*>& words) { return parse_arguments(words); }

TEST(Arguments, AnOptionMayBeSpeltInManyWays) {
  for (const auto& words :
       std::vector<std::vector<const char*>>{{"run", "-w", "5", "k", "true"},
                                             {"run", "-w5", "k", "true"},
                                             {"run", "-nw5", "k", "true"},
                                             {"run", "--wait", "5", "k", "true"},
                                             {"run", "--wait=5", "k", "true"},
                                             {"run", "-wait", "5", "k", "true"},
                                             {"run", "--timeout=5", "k", "true"},
                                             {"run", "-w=5", "k", "true"}}) {
    const Parsed parsed = parse(words);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.arguments.seconds("wait"), 5s);
    EXPECT_EQ(parsed.arguments.operands(), Words{"k"});
    EXPECT_EQ(parsed.arguments.command(), Words{"true"});
  }
}

TEST(Arguments, WhatRunRunsIsLeftAlone) {
  EXPECT_EQ(parse({"run", "k", "ls", "-n", "--", "-c"}).arguments.command(),
            (Words{"ls", "-n", "--", "-c"}));
  EXPECT_EQ(parse({"run", "-n", "k", "--", "ls", "-n"}).arguments.command(), (Words{"ls", "-n"}));
  EXPECT_EQ(parse({"run", "--", "k", "ls"}).arguments.command(), Words{"ls"});
  const Parsed help = parse({"run", "k", "ls", "--help"});
  EXPECT_EQ(help.action, Parsed::Action::execute);
}

TEST(Arguments, CStandsBeforeAndBehindTheKey) {
  for (const auto& words :
       std::vector<std::vector<const char*>>{{"run", "k", "-c", "a | b"},
                                             {"run", "-c", "a | b", "k"},
                                             {"run", "k", "--command", "a | b"}}) {
    const Parsed parsed = parse(words);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.arguments.text("command"), "a | b");
    EXPECT_TRUE(parsed.arguments.command().empty());
  }
  EXPECT_NE(parse({"run", "k", "-c", "a", "b"}).error, "");
  EXPECT_NE(parse({"run", "-c", "a", "k", "b"}).error, "");
}

TEST(Arguments, OptionsOfTheConnectionMayComeFirst) {
  const Parsed parsed = parse({"-s", "a:1", "--server=b:2", "ping", "-s", "c:3"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.arguments.all("server"), (std::vector<std::string_view>{"a:1", "b:2", "c:3"}));
  EXPECT_EQ(parse({"-s", "a:1", "completion", "bash"}).error,
            "lockctl completion has no option --server");
}

TEST(Arguments, OperandsAndOptionsMayBeMixed) {
  const Parsed parsed = parse({"release", "k", "--json", "7", "--holder", "me"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.arguments.operands(), (Words{"k", "7"}));
  EXPECT_EQ(parse({"signal", "--", "--channel", "-x"}).arguments.operands(),
            (Words{"--channel", "-x"}));
}

TEST(Arguments, TogglesMayBeTurnedOff) {
  EXPECT_TRUE(parse({"ping", "--tls"}).arguments.has("tls"));
  EXPECT_FALSE(parse({"ping", "--tls", "--no-tls"}).arguments.has("tls"));
  EXPECT_FALSE(parse({"ping", "--tls=off"}).arguments.has("tls"));
  EXPECT_EQ(parse({"ping", "--no-tls=1"}).error, "--no-tls takes no value");
}

TEST(Arguments, TheHttpOfBenchIsAToggle) {
  EXPECT_TRUE(parse({"bench", "--http", "--workers", "3"}).arguments.has("http"));
  EXPECT_EQ(parse({"ping", "--http", "a:1"}).arguments.text("http"), "a:1");
}

TEST(Arguments, CommandsOfTwoWords) {
  const Parsed parsed = parse({"wal", "verify", "/tmp"});
  ASSERT_NE(parsed.command, nullptr);
  EXPECT_EQ(parsed.command->name, "wal verify");
  EXPECT_EQ(parsed.arguments.operands(), Words{"/tmp"});
}

TEST(Arguments, HelpAndVersion) {
  EXPECT_EQ(parse({"--help"}).action, Parsed::Action::help);
  EXPECT_EQ(parse({"help"}).command, nullptr);
  EXPECT_EQ(parse({"help", "wal", "verify"}).command, find_command("wal verify"));
  EXPECT_EQ(parse({"run", "-h"}).command, find_command("run"));
  EXPECT_EQ(parse({"--version"}).action, Parsed::Action::version);
  EXPECT_EQ(parse({"-V"}).action, Parsed::Action::version);
}

TEST(Arguments, SecretsAreFoundWhereTheyStand) {
  const char* const secret = "hush";
  const Parsed parsed = parse({"ping", "--token", secret, "--oops"});
  ASSERT_EQ(parsed.secrets.size(), 1U);
  EXPECT_EQ(parsed.secrets.front().data(), secret);
  EXPECT_EQ(parsed.error.find("hush"), std::string::npos);
}

TEST(Arguments, MistakesAreNamed) {
  const struct {
    std::vector<const char*> words;
    const char* error;
  } cases[] = {
      {{}, "what is to be done? lockctl --help lists the commands"},
      {{"rum"}, "there is no command 'rum' (did you mean run?); lockctl --help lists them"},
      {{"wal"}, "there is no command 'wal'; lockctl --help lists them"},
      {{"run"}, "lockctl run needs KEY"},
      {{"run", "k"}, "lockctl run needs a command: lockctl run KEY -- COMMAND..."},
      {{"run", "k", "--"}, "lockctl run needs a command: lockctl run KEY -- COMMAND..."},
      {{"run", "--wiat", "1", "k"}, "there is no option '--wiat' (did you mean --wait?)"},
      {{"run", "-Z", "k"}, "there is no option '-Z'"},
      {{"run", "-w", "soon", "k"},
       "--wait: 'soon': it takes seconds, from 0 to 9223372036, such as 5 or 0.5"},
      {{"run", "-E", "256", "k"},
       "--conflict-exit-code: '256': it takes a whole number from 0 to 255"},
      {{"run", "--semaphore", "0", "k"},
       "--semaphore: '0': it takes a whole number from 1 to 2147483647"},
      {{"run", "-w"},
       "--wait needs a value: it takes seconds, from 0 to 9223372036, such as 5 or 0.5"},
      {{"release", "k"}, "lockctl release needs TOKEN"},
      {{"listen"}, "lockctl listen needs PATTERN"},
      {{"ping", "x"}, "unexpected argument 'x'"},
      {{"completion", "tcsh"}, "SHELL: 'tcsh': it is one of bash zsh fish"},
      {{"ping", "--token", ""}, "--token: it takes a text that is not empty"},
  };
  for (const auto& [words, error] : cases) EXPECT_EQ(parse(words).error, error);
}

TEST(CommandTable, NoCommandHasTwoOptionsOfOneName) {
  for (const Command& command : commands()) {
    std::vector<std::string> seen;
    for (const OptionGroup& group : command.groups) {
      for (const Option& option : group.options) {
        for (const std::string& name :
             {std::string(option.name), std::string(option.alias),
              option.letter == 0 ? std::string() : std::string(1, option.letter)}) {
          if (name.empty()) continue;
          EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0)
              << command.name << " has --" << name << " twice";
          seen.push_back(name);
        }
        EXPECT_NE(option.letter, 'h') << command.name;
        EXPECT_EQ(option.shape == Shape::toggle, option.value.empty()) << option.name;
        EXPECT_FALSE(option.help.empty()) << option.name;
      }
    }
    EXPECT_NE(command.execute, nullptr) << command.name;
  }
}

}  // namespace
}  // namespace lockd::cli
