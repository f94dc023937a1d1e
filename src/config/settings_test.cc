#include "config/settings.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "config/testing/fake_environment.h"
#include "config/testing/sample_program.h"

namespace lockd::config {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

struct Machine : FakeEnvironment {
  Precedence precedence = Precedence::environment;
  std::string default_file{};
  std::string_view prefix{};

  Settings load(std::vector<const char*> words = {}) const {
    words.insert(words.begin(), "do");
    words.insert(words.end(), {"key", "command"});
    const Parsed parsed = parse_arguments(kSample, words);
    EXPECT_EQ(parsed.error, "");
    return load_settings(kSampleSettings, parsed.arguments.given(), environment(),
                         {precedence, default_file, prefix});
  }

  Settings load_file(const std::string& text) const {
    Machine with_file = *this;
    with_file.files["f"].text = text;
    return with_file.load({"--config=f"});
  }
};

TEST(Settings, HaveDefaults) {
  const Settings settings = Machine().load();
  EXPECT_EQ(settings.error, "");
  EXPECT_EQ(settings.whole("size"), 5U);
  EXPECT_EQ(settings.seconds("pause"), 1s);
  EXPECT_FALSE(settings.is_on("loud"));
  EXPECT_FALSE(settings.is_given("peer"));
  EXPECT_EQ(settings.value("peer").origin.name, "default");
}

TEST(Settings, WhichOfEnvironmentAndCommandLineWinsIsTheProgramsToSay) {
  Machine machine;
  machine.variables["PAUSE"] = "2";
  machine.files["f"].text = "pause = 4\nword = 'a'";
  const auto pause = [&] { return machine.load({"--config=f", "--pause=3"}); };
  EXPECT_EQ(pause().seconds("pause"), 2s);
  EXPECT_EQ(pause().text("word"), "a");
  EXPECT_EQ(pause().warnings,
            Lines{"--pause: '2' from PAUSE is used, not '3' from the command line"});
  machine.precedence = Precedence::command_line;
  EXPECT_EQ(pause().seconds("pause"), 3s);
  EXPECT_EQ(pause().warnings, Lines{});
  EXPECT_EQ(machine.load({"--config=f"}).seconds("pause"), 2s);
  machine.variables["PAUSE"] = "";  // is unset
  EXPECT_EQ(machine.load({"--config=f"}).seconds("pause"), 4s);
}

TEST(Settings, TwoSpellingsOfOneValueDoNotDiffer) {
  Machine machine;
  machine.variables["PAUSE"] = "1e1";
  EXPECT_EQ(machine.load({"--pause=10.0"}).warnings, Lines{});
}

TEST(Settings, OfTwoVariablesTheFirstCounts) {
  Machine machine;
  machine.variables = {{"SIZE", "7"}, {"OLD_SIZE", "8"}};
  EXPECT_EQ(machine.load().whole("size"), 7U);
  EXPECT_EQ(machine.load().warnings, Lines{"--size: '7' from SIZE is used, not '8' from OLD_SIZE"});
}

TEST(Settings, ThoseThatRepeatMakeOneList) {
  Machine machine;
  EXPECT_EQ(machine.load({"-p", "a", "--peers=b,c"}).text("peer"), "a,b,c");
  EXPECT_EQ(machine.load_file("peers = ['a', 'b']").text("peer"), "a,b");
  machine.variables["PEER"] = "d";
  EXPECT_EQ(machine.load({"-p", "a"}).text("peer"), "d");
}

TEST(Settings, EveryValueMustBeValid) {
  Machine machine;
  machine.variables["SIZE"] = "0";
  EXPECT_EQ(machine.load().error, "--size from SIZE is '0': it takes a whole number from 1 to 100");
  machine.precedence = Precedence::command_line;
  EXPECT_NE(machine.load_file("size = 7").error, "");
  machine.variables = {{"SECRET", ""}, {"WORD", "z"}};
  EXPECT_EQ(machine.load({"--word=a"}).error, "--word from WORD is 'z': it takes a, b or c");
}

TEST(Settings, TheDefaultFileMayBeMissing) {
  Machine machine;
  machine.default_file = "/d";
  EXPECT_EQ(machine.load().error, "");
  machine.files["/d"].text = "size = 7";
  EXPECT_EQ(machine.load().whole("size"), 7U);
  EXPECT_EQ(machine.load().value("size").origin.name, "line 1 of '/d'");
  machine.files["/d"] = {.error = "Permission denied"};
  EXPECT_EQ(machine.load().error,
            "--config from default is '/d': it cannot be read: Permission denied");
  EXPECT_EQ(machine.load({"--config=/e"}).error,
            "--config from the command line is '/e': it cannot be read: No such file or directory");
}

TEST(Settings, TheFileTakesWhatFlagsTake) {
  for (const char* five : {"5", "5.0", "'5'", "0.5e1", "5_0e-1", "'5e0'"}) {
    const Settings settings =
        Machine().load_file("size = " + std::string(five) + "\npause = " + five);
    EXPECT_EQ(settings.error, "") << five;
    EXPECT_EQ(settings.text("size"), "5") << five;
    EXPECT_EQ(settings.text("pause"), "5") << five;
  }
  EXPECT_TRUE(Machine().load_file("loud = 'Yes'").is_on("loud"));
  EXPECT_TRUE(Machine().load_file("loud = 1").is_on("loud"));
  EXPECT_EQ(Machine().load_file("secret = 'a # b'").text("secret"), "a # b");
}

TEST(Settings, MistakesInTheFileNameTheirLine) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"\nsise = 1", "line 2 of 'f': unknown setting 'sise' (did you mean size?)"},
      {"config = 'g'", "line 1 of 'f': 'config' cannot be set in the file itself"},
      {"size = [1]", "line 1 of 'f': size takes a whole number from 1 to 100"},
      {"word = 7", "line 1 of 'f': word is text, and needs quotes around it"},
      {"peer = [1]", "line 1 of 'f': peer is text, and needs quotes around it"},
      {"peer = 'a'\npeers = 'b'", "line 2 of 'f': peers is the same setting as peer"},
      {"secret = 7777", "line 1 of 'f': secret is text, and needs quotes around it"},
      {"\n[table]\nsize = 1", "line 2 of 'f': unknown setting 'table'"},
      {"secret = hush", "line 1 of 'f': not valid TOML"},
      {"secret = 99999999999999999999", "line 1 of 'f': not valid TOML"},
      {"loud = true\nsize = ",
       "line 2 of 'f': not valid TOML: Error while parsing key-value pair: encountered "
       "end-of-file"},
      {"size = 1\nsize = 2",
       "line 2 of 'f': not valid TOML: Error while parsing key-value pair: cannot redefine "
       "existing integer 'size'"},
      {"pause = inf",
       "--pause from line 1 of 'f' is 'inf': it takes seconds, more than 0 and at most 9223372036, "
       "such as 5 or 0.5"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(Machine().load_file(text).error, error);
}

TEST(Settings, PrintAsAFileThatSaysTheSame) {
  Machine machine;
  machine.variables["SECRET"] = "hush";
  machine.files["f"].open_to_others = true;
  const Settings settings = machine.load({"--pause=1e-3", "--loud", "-p", "a\"b"});
  EXPECT_EQ(config_text(settings),
            "# Settings\n"
            "peer = \"a\\\"b\"                           # the command line\n"
            "size = 5                                # default\n"
            "pause = 0.001                           # the command line\n"
            "loud = true                             # the command line\n"
            "# word:                                 # default\n"
            "# secret: hidden                        # SECRET\n"
            "# config:                               # default\n");
  EXPECT_EQ(config_text(Machine().load_file(config_text(settings))).substr(0, 90).find("default"),
            std::string::npos);
}

TEST(Settings, WarnOfAFileWithASecretThatOthersCanRead) {
  Machine machine;
  machine.files["f"] = {.text = "secret = 's'", .open_to_others = true};
  EXPECT_EQ(machine.load({"--config=f"}).warnings,
            Lines{"'f' holds a secret and others can read it: chmod go-r"});
}

TEST(Environment, IsThatOfTheProcess) {
  const Environment process = process_environment();
  EXPECT_EQ(process.variable("LOCKD_NO_SUCH_VARIABLE"), nullptr);
  ASSERT_EQ(setenv("LOCKD_TEST_VARIABLE", "x", 1), 0);
  EXPECT_STREQ(process.variable("LOCKD_TEST_VARIABLE"), "x");

  const std::string path = testing::TempDir() + "lockd_environment_test";
  std::ofstream(path) << "a\nb";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(process.read_file(path).text, "a\nb");
  EXPECT_FALSE(process.read_file(path).open_to_others);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_TRUE(process.read_file(path).open_to_others);
  // Root may give leave to a group.
  const bool is_root = ::geteuid() == 0;
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(process.read_file(path).open_to_others, !is_root);
  if (is_root) {
    ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
    EXPECT_TRUE(process.read_file(path).open_to_others);
  }
  std::remove(path.c_str());
  EXPECT_EQ(process.read_file(path).error, "No such file or directory");
  EXPECT_TRUE(process.read_file(path).missing);
  EXPECT_EQ(process.read_config("/").error, "Is a directory");
  EXPECT_FALSE(process.read_file("/").missing);
  EXPECT_EQ(process.read_config("/dev/zero").error, "larger than 1 MiB");
}

}  // namespace
}  // namespace lockd::config
