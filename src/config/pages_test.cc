#include "config/pages.h"

#include <gtest/gtest.h>

#include <string>

#include "config/testing/sample_program.h"

namespace lockd::config {
namespace {

const Place kDo{"sam-ple do", &kSampleCommands[0]};

// The command whose own the shared options are.
constexpr Command kSettingsCommand{.name = "settings",
                                   .summary = "say how it is set up",
                                   .description = "Says it.",
                                   .options = kSampleSettings};
const Place kSettings{"sam-ple settings", &kSettingsCommand};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(HelpText, LooksLikeThis) {
  EXPECT_EQ(help_text(kDo),
            "Usage: sam-ple do [OPTION...] KEY [--] COMMAND...\n"
            "\n"
            "Do it.\n"
            "\n"
            "Does it.\n"
            "\n"
            "Arguments:\n"
            "  KEY\n"
            "      A key.\n"
            "  COMMAND\n"
            "      What.\n"
            "\n"
            "Options:\n"
            "  -n, --now\n"
            "      At once.\n"
            "  -w, --wait SECONDS\n"
            "      How long to wait. Takes seconds, from 0 to 9223372036, such as 5 or 0.5.\n"
            "  -c, --line LINE\n"
            "      A line for the shell.\n"
            "  --size\n"
            "      Not the other --size.\n"
            "\n"
            "Settings:\n"
            "  --peer, --pause, --loud and so on: sam-ple settings lists them.\n");
  EXPECT_TRUE(
      has(help_text(kSettings),
          "Settings:\n"
          "  -p, --peer, --peers HOST\n"
          "      Whom to ask.\n"
          "      Variable: PEER\n"
          "  --size N\n"
          "      How much; at most. Takes a whole number from 1 to 100.\n"
          "      Default: 5. Variable: SIZE or OLD_SIZE\n"
          "  --pause SECONDS\n"
          "      How long to pause. Takes seconds, more than 0 and at most 9223372036, such\n"
          "      as 5 or 0.5.\n"
          "      Default: 1. Variable: PAUSE\n"
          "  --loud, --no-loud\n"
          "      Say more.\n"
          "      Variable: LOUD\n"
          "  --word WORD\n"
          "      Which. Takes a, b or c.\n"
          "      Variable: WORD\n"
          "  --secret TEXT\n"
          "      Hush.\n"
          "      Variable: SECRET\n"
          "  --config FILE\n"
          "      A file.\n"
          "      Variable: CONFIG\n"));
  EXPECT_TRUE(has(help_text(place_of(kSample)),
                  "Usage: sam-ple COMMAND [OPTION...] [ARGUMENT...]\n"
                  "\n"
                  "A sample.\n"
                  "\n"
                  "A program.\n"
                  "\n"
                  "Commands:\n"
                  "  do        Do it\n"
                  "  log show  Show it\n"
                  "\n"
                  "sam-ple COMMAND --help says more of each.\n"));
}

TEST(ManPage, EscapesWhatRoffWouldObey) {
  const std::string page = man_page(kDo, "lockd 1.0");
  EXPECT_TRUE(page.starts_with(".TH \"SAM\\-PLE\\-DO\" 1 \"\" \"lockd 1.0\" \"User Commands\"\n"));
  EXPECT_TRUE(has(page, " and so on: see sam\\-ple\\-settings(1).\n"));
  EXPECT_TRUE(has(man_page(kSettings, ""),
                  ".TP\n.B \"\\-p, \\-\\-peer, \\-\\-peers HOST\"\nWhom to ask.\n"));
  EXPECT_TRUE(has(man_page(place_of(kSample), ""), "Show it; see sam\\-ple\\-log\\-show(1).\n"));
}

TEST(Completions, KnowWhatAValueIs) {
  const std::string bash = bash_completion(kSample);
  EXPECT_TRUE(has(bash, "    'do:--word') echo 'a b c' ;;\n"));
  EXPECT_TRUE(has(bash, "    'do:--config') echo file ;;\n"));
  EXPECT_TRUE(has(bash, "    'do:--peer'|'do:--peers'|'do:-p') echo text ;;\n"));
  EXPECT_TRUE(has(bash, "    'log show') words=\"one two\"; options=\"--help -h\" ;;\n"));
  EXPECT_TRUE(has(bash, "complete -F _sam_ple sam-ple\n"));
  const std::string zsh = zsh_completion(kSample);
  EXPECT_TRUE(has(zsh, "'--word=[Which]:WORD:(a b c)'"));
  EXPECT_TRUE(has(zsh, "'--no-loud[Not\\: Say more]'"));
  EXPECT_TRUE(has(zsh, "'1:KIND:(one two)'"));
  const std::string fish = fish_completion(kSample);
  EXPECT_TRUE(has(fish, "-n '__fish_seen_subcommand_from do' -l word -x -a 'a b c' -d 'Which'\n"));
  EXPECT_TRUE(has(fish, " -l no-loud -d 'Not: Say more'\n"));
  EXPECT_TRUE(has(fish,
                  "-n '__fish_seen_subcommand_from log; and not __fish_seen_subcommand_from "
                  "show' -a show -d 'Show it'\n"));
}

TEST(Markdown, HasARowForEachOption) {
  EXPECT_TRUE(markdown_groups(kSampleSettings)
                  .starts_with("\n## Settings\n\n"
                               "| flag | variable | default | |\n|---|---|---|---|\n"
                               "| `--peer HOST` | `PEER` |  | Whom to ask. |\n"
                               "| `--size N` | `SIZE`, `OLD_SIZE` | 5 | How much; at most. Takes a "
                               "whole number from 1 to 100. |\n"));
  EXPECT_TRUE(has(markdown_rows(kSampleSettings), "| `--loud`, `--no-loud` | `LOUD` |"));
}

}  // namespace
}  // namespace lockd::config
