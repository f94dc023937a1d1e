#include "config/arguments.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "config/testing/sample_program.h"

namespace lockd::config {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

Parsed parse(const std::vector<const char*>& words) { return parse_arguments(kSample, words); }

TEST(Arguments, AnOptionMayBeSpeltInManyWays) {
  for (const auto& words :
       std::vector<std::vector<const char*>>{{"do", "-w", "5", "k", "x"},
                                             {"do", "-w5", "k", "x"},
                                             {"do", "-nw5.0", "k", "x"},
                                             {"do", "--wait", "5", "k", "x"},
                                             {"do", "--wait=5", "k", "x"},
                                             {"do", "-wait", "05", "k", "x"},
                                             {"do", "-w=5e0", "k", "--", "x"}}) {
    const Parsed parsed = parse(words);
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.place.path, "sam-ple do");
    EXPECT_EQ(parsed.arguments.text("wait"), "5");
    EXPECT_EQ(parsed.arguments.seconds("wait"), 5s);
    EXPECT_EQ(parsed.arguments.operands(), Words{"k"});
    EXPECT_EQ(parsed.arguments.command(), Words{"x"});
  }
}

TEST(Arguments, AWordIsLettersOnlyIfAllOfItAre) {
  EXPECT_EQ(parse({"do", "-nx"}).error, "unknown flag '--nx'; --help lists them all");
  EXPECT_EQ(parse({"do", "-hosst"}).error, "unknown flag '--hosst'; --help lists them all");
  EXPECT_TRUE(parse({"do", "-nh"}).arguments.has("help"));
}

TEST(Arguments, AnOptionOfItsOwnHidesASharedOne) {
  const Parsed own = parse({"do", "--size", "k", "x"});
  EXPECT_EQ(own.error, "");
  EXPECT_EQ(own.arguments.given().front().option, &kSampleDo[3]);
  EXPECT_EQ(parse({"--size", "7", "do", "k", "x"}).error, "sam-ple do has no option --size");
}

TEST(Arguments, WhatIsRunIsLeftAlone) {
  EXPECT_EQ(parse({"do", "k", "ls", "-n", "--", "-c"}).arguments.command(),
            (Words{"ls", "-n", "--", "-c"}));
  EXPECT_EQ(parse({"do", "--", "k", "ls"}).arguments.command(), Words{"ls"});
  EXPECT_EQ(parse({"do", "k", "-c", "a | b"}).arguments.text("line"), "a | b");
  EXPECT_EQ(parse({"do", "k", "-c", "a", "b"}).error, "unexpected argument 'b' after --line");
  EXPECT_EQ(parse({"do", "k", "--"}).error, "sam-ple do needs COMMAND");
}

TEST(Arguments, DashedWordWhereTheCommandBeginsIsRefused) {
  const std::string behind =
      " behind KEY is no command: give options of sam-ple do before KEY, and -- before a COMMAND "
      "that begins with a dash";
  EXPECT_EQ(parse({"do", "k", "--typo", "x"}).error, "'--typo'" + behind);
  EXPECT_EQ(parse({"do", "k", "-n", "x"}).error, "'-n'" + behind);
  EXPECT_EQ(parse({"do", "k", "--secret=hush", "x"}).error, "'--secret'" + behind);
  EXPECT_EQ(parse({"do", "k", "--", "--typo", "x"}).arguments.command(), (Words{"--typo", "x"}));
  EXPECT_EQ(parse({"do", "--", "k", "--typo"}).arguments.command(), Words{"--typo"});
  EXPECT_EQ(parse({"do", "k", "-", "x"}).arguments.command(), (Words{"-", "x"}));
}

TEST(Arguments, OperandsMayBeMany) {
  const Parsed parsed = parse({"log", "show", "one", "-", "3"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.arguments.operands(), (Words{"one", "-", "3"}));
  EXPECT_EQ(parse({"log", "show", "--", "one", "--x"}).arguments.operands(), (Words{"one", "--x"}));
  EXPECT_EQ(parse({"log", "show", "six"}).error, "KIND is 'six': it takes one or two");
}

TEST(Arguments, HelpAndVersionWorkWhateverElseIsWrong) {
  EXPECT_EQ(parse({"do", "--oops", "--wait=x", "--help"}).error, "");
  EXPECT_EQ(parse({"--oops", "--version"}).error, "");
  EXPECT_EQ(parse({"help", "log", "show"}).place.path, "sam-ple log show");
  EXPECT_EQ(parse({"od", "--help"}).error, "there is no command 'od'; sam-ple --help lists them");
}

TEST(Arguments, MistakesAreNamed) {
  const struct {
    std::vector<const char*> words;
    const char* error;
  } cases[] = {
      {{}, "what is to be done? sam-ple --help lists the commands"},
      {{"log"}, "what is to be done? sam-ple log --help lists the commands"},
      {{"log", "shwo"},
       "there is no command 'shwo' (did you mean show?); sam-ple log --help lists them"},
      {{"do"}, "sam-ple do needs KEY"},
      {{"do", "--wiat"}, "unknown flag '--wiat' (did you mean --wait?); --help lists them all"},
      {{"do", "-Z"}, "unknown flag '-Z'; --help lists them all"},
      {{"do", "---wait"}, "unknown flag '---wait' (did you mean --wait?); --help lists them all"},
      {{"do", "--=1"}, "unknown flag '--'; --help lists them all"},
      {{"do", "--wait"},
       "--wait needs a value: it takes seconds, from 0 to 9223372036, such as 5 or 0.5"},
      {{"do", "--no-loud=1"}, "--no-loud takes no value"},
      {{"do", "--no-wait"}, "unknown flag '--no-wait'; --help lists them all"},
      {{"--version=1"}, "--version takes no value"},
      {{"--word=d", "--word=a", "do"}, "--word from the command line is 'd': it takes a, b or c"},
      {{"do", "--secret", ""},
       "--secret from the command line is not valid: it takes a text that is not empty"},
  };
  for (const auto& [words, error] : cases) EXPECT_EQ(parse(words).error, error);
}

TEST(Arguments, SecretsAreFoundWhereTheyStand) {
  std::string one = "--secret=hush";
  std::string two = "hush";
  const Parsed parsed = parse({"do", one.c_str(), "--secret", two.c_str(), "--oops"});
  EXPECT_EQ(parsed.error.find("hush"), std::string::npos);
  scrub(parsed.secrets);
  EXPECT_EQ(one, "--secret=****");
  EXPECT_EQ(two, "****");
}

TEST(Option, SuggestsTheNearestName) {
  EXPECT_EQ(suggestion("prt", {"port", "host"}, "--"), " (did you mean --port?)");
  EXPECT_EQ(suggestion("frobnicate", {"port", "host"}, "--"), "");
  EXPECT_EQ(suggestion("x", {"a"}, "--"), "");
  EXPECT_EQ(suggestion(std::string(1000, 'x'), {"port"}, "--"), "");
}

}  // namespace
}  // namespace lockd::config
