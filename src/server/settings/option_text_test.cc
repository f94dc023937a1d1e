// What --help and --check-config print, and what is in no text.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "config/pages.h"
#include "server/settings/testing/load_options_fixture.h"

namespace lockd {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string help_text(Profile profile) {
  return config::help_text(config::place_of(program(profile)));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Actions, AreAskedForByFlag) {
  const FakeEnvironment machine;
  EXPECT_EQ(machine.load().action, Action::serve);
  EXPECT_EQ(machine.load({"--check-config"}).action, Action::check_config);
  EXPECT_EQ(machine.load({"-version"}).action, Action::version);
  for (const char* flag : {"--help", "-help", "-h"}) {
    EXPECT_EQ(machine.load({"--version", flag}).action, Action::help);
  }
}

TEST(Actions, HelpAndVersionWorkWhateverElseIsWrong) {
  const FakeEnvironment machine{.variables = {{"LOCKD_SERVER_PORT", "x"}}};
  for (const char* flag : {"--help", "--version"}) {
    EXPECT_EQ(machine.load({"--frobnicate", flag, "--port=y"}).error, "");
  }
  EXPECT_NE(machine.load({"--check-config"}).error, "");
}

TEST(HelpText, NamesEverySettingItsVariablesAndDefault) {
  for (const Profile profile : {Profile::lockd, Profile::dflockd, Profile::lockd_server}) {
    const std::string text = help_text(profile);
    EXPECT_TRUE(has(text, "Usage: " + std::string(program(profile).name) + " "));
    for (const config::Option& option : program(profile).options) {
      EXPECT_TRUE(has(text, "--" + std::string(option.name))) << option.name;
      EXPECT_TRUE(has(text, "\n" + std::string(option.group) + ":\n")) << option.group;
      if (!option.is_setting()) continue;
      EXPECT_TRUE(has(text, option.variables[0])) << option.name;
      EXPECT_TRUE(has(text, "Default: " + std::string(default_text(option)) + ".")) << option.name;
    }
    for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(HelpText, LooksLikeThis) {
  EXPECT_TRUE(
      has(help_text(Profile::lockd),
          "\n"
          "  --gc-interval SECONDS\n"
          "      Interval between two scans for idle keys. Takes seconds, more than 0 and\n"
          "      at most 9223372036, such as 5 or 0.5.\n"
          "      Default: 5. Variable: LOCKD_SERVER_GC_INTERVAL or DFLOCKD_GC_INTERVAL_S or\n"
          "      DFLOCKD_GC_LOOP_SLEEP\n"));
  EXPECT_TRUE(has(help_text(Profile::lockd),
                  "\n"
                  "Logging:\n"
                  "  --log-level LEVEL\n"));
  EXPECT_TRUE(has(help_text(Profile::lockd_server),
                  "  --metrics, --no-metrics\n"
                  "      Serve /metrics over HTTP.\n"
                  "      Default: false. Variable: LOCKD_SERVER_METRICS\n"));
}

TEST(ConfigText, ShowsEveryValueAndWhereItCameFrom) {
  const FakeEnvironment machine{
      .variables = {{"LOCKD_SERVER_MAX_LOCKS", "10"}, {"LOCKD_SERVER_AUTH_TOKEN", "hunter2"}},
      .files = {{"f", {.text = "\nwal = 'a\"b'\n"}}}};
  const Loaded loaded = machine.load({"--config=f", "--read-timeout=0.5", "--debug"});
  EXPECT_EQ(config_text(loaded),
            "# Listening\n"
            "# host: every address                   # default\n"
            "port = 6388                             # default\n"
            "http-addr = \"127.0.0.1:8080\"            # default\n"
            "metrics = true                          # default\n"
            "# http-allow-origin: none               # default\n"
            "# http-allow-host: none                 # default\n"
            "threads = 4                             # default\n"
            "\n"
            "# Leases and keys\n"
            "default-lease-ttl = 33                  # default\n"
            "lease-sweep-interval = 1                # default\n"
            "gc-interval = 5                         # default\n"
            "gc-max-idle = 60                        # default\n"
            "max-locks = 10                          # LOCKD_SERVER_MAX_LOCKS\n"
            "max-waiters = 0                         # default\n"
            "max-holds = 10000000                    # default\n"
            "max-holds-per-client = 0                # default\n"
            "max-lease-ttl = 0                       # default\n"
            "max-set-wait = 600                      # default\n"
            "fence-floor = 0                         # default\n"
            "auto-release-on-disconnect = true       # default\n"
            "\n"
            "# Connections\n"
            "max-connections = 944                   # default\n"
            "max-connections-per-ip = 0              # default\n"
            "max-subscriptions = 10000               # default\n"
            "max-watchers = 1000                     # default\n"
            "max-buffer-memory = \"1GiB\"              # default\n"
            "read-timeout = 0.5                      # the command line\n"
            "write-timeout = 5                       # default\n"
            "shutdown-timeout = 30                   # default\n"
            "detailed-errors = false                 # default\n"
            "close-on-violation = true               # default\n"
            "\n"
            "# Access\n"
            "# tls-cert: none                        # default\n"
            "# tls-key: none                         # default\n"
            "# tls-client-ca: none                   # default\n"
            "# auth-token: hidden                    # LOCKD_SERVER_AUTH_TOKEN\n"
            "# auth-token-file: none                 # default\n"
            "# access: none                          # default\n"
            "auth-timeout = 10                       # default\n"
            "max-unauthenticated = 472               # default\n"
            "\n"
            "# Durability\n"
            "wal = \"a\\\"b\"                            # line 2 of 'f'\n"
            "memory = false                          # default\n"
            "wal-sync = \"always\"                     # default\n"
            "\n"
            "# Watching\n"
            "history = \"16MiB\"                       # default\n"
            "slow-wait = 0                           # default\n"
            "slow-hold = 0                           # default\n"
            "\n"
            "# Logging\n"
            "log-level = \"debug\"                     # the command line\n"
            "log-format = \"text\"                     # default\n"
            "debug = true                            # the command line\n"
            "\n"
            "# Configuration file\n"
            "# config: \"f\"                           # the command line\n"
            "\n"
            "# The line port: open\n"
            "# HTTP: open\n");
}

TEST(ConfigText, SaysWhatIsProtected) {
  const FakeEnvironment machine{.profile = Profile::lockd_server};
  EXPECT_TRUE(has(config_text(machine.load()),
                  "\n# The line port: off\n# HTTP: protected mode, loopback peers only\n"));
}

TEST(ConfigText, IsAFileThatSaysTheSame) {
  const FakeEnvironment machine{.files = {{"t", {.text = "hunter2"}}}};
  const Loaded first =
      machine.load({"--http-addr=[::1]:80", "--wal=a\n\x7f\\\"b", "--wal-sync=1.5s", "--debug",
                    "--gc-max-idle=0.000000001", "--host=::", "--auth-token-file=t"});
  ASSERT_EQ(first.error, "");
  const Loaded second = machine.load_file(config_text(first));
  ASSERT_EQ(second.error, "");
  EXPECT_EQ(second.warnings, first.warnings);
  for (const config::Option& option : settings(Profile::lockd)) {
    if (option.name == "config") continue;
    EXPECT_EQ(value_of(first, option.name), value_of(second, option.name)) << option.name;
  }
}

TEST(Secrets, AreInNoText) {
  const FakeEnvironment machine{
      .variables = {{"LOCKD_SERVER_AUTH_TOKEN", "hunter2"}},
      .files = {{"f", {.text = "auth-token = 'hunter3'", .open_to_others = true}},
                {"t", {.text = "hunter4"}},
                {"bad", {.text = "auth-token = hunter5"}}}};
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {"--auth-token=hunter6"},
           {"--config=f", "--auth-token", "hunter7"},
           {"--config=bad"},
           {"--auth-token-file=t"},
           {"--auth-token=hunter8\n"},
           {"--auth-token", "x", "hunter9"},
           {"--auth-tokenn=hunter10"},
       }) {
    const Loaded loaded = machine.load(arguments);
    std::string all = loaded.error + (loaded.error.empty() ? config_text(loaded) : "");
    for (const std::string& line : loaded.warnings) all += line;
    EXPECT_FALSE(has(all, "hunter")) << all;
  }
}

}  // namespace
}  // namespace lockd
