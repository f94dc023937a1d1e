#include "server/settings/load_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "server/settings/testing/load_options_fixture.h"

namespace lockd {
namespace {

using config::Option;
using Kind = Option::Kind;

constexpr Profile kAll[] = {Profile::lockd, Profile::dflockd, Profile::lockd_server};

// A value that is not the default, and others to tell sources apart.
std::vector<std::string> samples(const Option& option) {
  const std::string name(option.name);
  if (option.kind == Kind::boolean) return {"true", "false", "true"};
  if (option.kind == Kind::whole) return {"11", "12", "13"};
  if (option.kind == Kind::seconds) return {"0.5", "12", "13"};
  if (option.kind == Kind::size) return {"12", "16MiB", "13KiB"};
  if (name == "host") return {"::1", "10.0.0.1", "localhost"};
  if (name == "http-addr" || name == "addr") return {"[::1]:1", ":2", "a.b:3"};
  if (name == "http-allow-origin") return {"*", "http://a:1", "https://a,https://b"};
  if (name == "http-allow-host") return {"*", "a.example", "a,b.example"};
  if (name == "wal-sync") return {"10ms", "2s", "3s"};
  if (name == "log-level") return {"trace", "warn", "error"};
  if (name == "log-format") return {"json", "text", "json"};
  return {"one", "two", "three"};
}

// A machine where every sample is a valid choice by itself.
FakeEnvironment machine_for(const Option& option, Profile profile) {
  FakeEnvironment machine{.profile = profile};
  for (const char* path : {"one", "two", "three"}) {
    machine.files[path].text = option.name == "auth-token-file" ? "token" : "";
  }
  if (option.name != "tls-cert") machine.variables["LOCKD_SERVER_TLS_CERT"] = "c";
  if (option.name != "tls-key") machine.variables["LOCKD_SERVER_TLS_KEY"] = "k";
  return machine;
}

std::string toml_line(const Option& option, const std::string& value) {
  const bool text = option.kind >= Kind::size;
  return std::string(option.name) + " = " + (text ? '"' + value + '"' : value) + "\n";
}

TEST(LoadOptions, TakesEverySettingByFlagInEveryForm) {
  for (const Profile profile : kAll) {
    for (const Option& option : settings(profile)) {
      const FakeEnvironment machine = machine_for(option, profile);
      for (const std::string& value : samples(option)) {
        const std::string one = "-" + std::string(option.name);
        const std::string two = "-" + one;
        std::vector<std::vector<std::string>> forms = {{one + "=" + value}, {two + "=" + value}};
        if (option.kind == Kind::boolean) {
          const std::string no = "-no-" + std::string(option.name);
          forms.push_back({value == "true" ? one : no});
          forms.push_back({value == "true" ? two : "-" + no});
        } else {
          forms.push_back({one, value});
          forms.push_back({two, value});
        }
        for (const auto& form : forms) {
          std::vector<const char*> arguments;
          for (const std::string& word : form) arguments.push_back(word.c_str());
          const Loaded loaded = machine.load(arguments);
          EXPECT_EQ(loaded.error, "") << form.front();
          EXPECT_EQ(value_of(loaded, option.name), value) << form.front();
          EXPECT_EQ(origin_of(loaded, option.name), "the command line") << form.front();
        }
      }
    }
  }
}

TEST(LoadOptions, TakesEverySettingByEachVariable) {
  for (const Profile profile : kAll) {
    for (const Option& option : settings(profile)) {
      for (const char* variable : option.variables) {
        if (variable == nullptr) continue;
        FakeEnvironment machine = machine_for(option, profile);
        machine.variables[variable] = samples(option)[0];
        const Loaded loaded = machine.load();
        EXPECT_EQ(loaded.error, "") << variable;
        EXPECT_EQ(value_of(loaded, option.name), samples(option)[0]) << variable;
        EXPECT_EQ(origin_of(loaded, option.name), variable);

        const Loaded unset =
            FakeEnvironment{.profile = profile, .variables = {{variable, ""}}}.load();
        EXPECT_EQ(unset.error, "") << variable;
        EXPECT_EQ(origin_of(unset, option.name), "default");
      }
    }
  }
}

TEST(LoadOptions, TakesEverySettingByFile) {
  for (const Profile profile : kAll) {
    for (const Option& option : settings(profile)) {
      if (option.name == "config") continue;
      FakeEnvironment machine = machine_for(option, profile);
      const Loaded loaded = machine.load_file("\n" + toml_line(option, samples(option)[0]));
      EXPECT_EQ(loaded.error, "") << option.name;
      EXPECT_EQ(value_of(loaded, option.name), samples(option)[0]) << option.name;
      EXPECT_EQ(origin_of(loaded, option.name), "line 2 of 'f.toml'");
    }
  }
}

// Every pair of sources, and all three, for every setting: flag, environment, file, default.
TEST(LoadOptions, FlagWinsOverEnvironmentOverFileAndForDflockdEnvironmentOverFlag) {
  for (const Option& option : settings(Profile::dflockd)) {
    if (option.name == "config") continue;
    const auto values = samples(option);
    for (int given = 1; given < 16; ++given) {
      if ((given & 7) == 0) continue;
      const Profile profile = (given & 8) != 0 ? Profile::dflockd : Profile::lockd;
      const bool by_file = (given & 1) != 0;
      const bool by_flag = (given & 2) != 0;
      const bool by_variable = (given & 4) != 0;
      FakeEnvironment machine = machine_for(option, profile);
      std::vector<const char*> arguments;
      const std::string flag = "--" + std::string(option.name) + "=" + values[1];
      if (by_file) {
        machine.files["f.toml"].text = toml_line(option, values[0]);
        arguments.push_back("--config=f.toml");
      }
      if (by_flag) arguments.push_back(flag.c_str());
      if (by_variable) machine.variables[option.variables[0]] = values[2];
      const Loaded loaded = machine.load(arguments);
      const bool variable_wins = by_variable && (profile == Profile::dflockd || !by_flag);
      const std::string expected = variable_wins ? values[2]
                                   : by_flag     ? values[1]
                                   : by_file     ? values[0]
                                                 : value_of(machine.load(), option.name);
      EXPECT_EQ(loaded.error, "") << option.name;
      EXPECT_EQ(value_of(loaded, option.name), expected) << option.name << given;
      const auto about = std::count_if(
          loaded.warnings.begin(), loaded.warnings.end(),
          [](const std::string& line) { return line.find("is used, not") != std::string::npos; });
      EXPECT_EQ(about, by_flag && by_variable && profile == Profile::dflockd ? 1 : 0)
          << option.name << given;
    }
  }
}

TEST(LoadOptions, WarnsWhenEnvironmentAndFlagDiffer) {
  using Lines = std::vector<std::string>;
  FakeEnvironment machine{.profile = Profile::dflockd, .variables = {{"DFLOCKD_PORT", "7000"}}};
  EXPECT_EQ(machine.load({"--port=6000", "--port=6001"}).warnings,
            Lines{"--port: '7000' from DFLOCKD_PORT is used, not '6001' from the command line"});
  EXPECT_EQ(machine.load({"--port=07000"}).warnings, Lines{});

  machine.variables = {{"LOCKD_SERVER_AUTH_TOKEN", "hunter2 and his dog"},
                       {"LOCKD_SERVER_HOST", "::1"}};
  EXPECT_EQ(
      machine.load({"--auth-token=hunter3"}).warnings,
      Lines{"--auth-token: the value from LOCKD_SERVER_AUTH_TOKEN is used, not the one from the "
            "command line"});

  machine.variables = {{"LOCKD_SERVER_GC_INTERVAL", "1"}, {"DFLOCKD_GC_LOOP_SLEEP", "2"}};
  const Loaded loaded = machine.load();
  EXPECT_EQ(value_of(loaded, "gc-interval"), "1");
  EXPECT_EQ(loaded.warnings, Lines{"--gc-interval: '1' from LOCKD_SERVER_GC_INTERVAL is used, not "
                                   "'2' from DFLOCKD_GC_LOOP_SLEEP"});
  EXPECT_EQ(machine.load({"--gc-interval=3"}).warnings.size(), 1U);
}

TEST(LoadOptions, ReadsTheFileThatTheEnvironmentNames) {
  const FakeEnvironment machine{
      .profile = Profile::dflockd,
      .variables = {{"LOCKD_SERVER_CONFIG", "f"}},
      .files = {{"f", {.text = "port = 1"}}, {"g", {.text = "port = 2"}}}};
  const Loaded loaded = machine.load({"--config=g"});
  EXPECT_EQ(loaded.options.port, 1);
  EXPECT_EQ(loaded.warnings,
            std::vector<std::string>{
                "--config: 'f' from LOCKD_SERVER_CONFIG is used, not 'g' from the command line"});
}

TEST(LoadOptions, DerivesWhatFollows) {
  FakeEnvironment machine{.cores = 6};
  EXPECT_EQ(machine.load().options.threads, 6U);
  machine.cores = 0;  // as when it is not known
  EXPECT_EQ(machine.load().options.threads, 1U);
  machine.cores = 5000;
  EXPECT_EQ(machine.load().options.threads, 256U);

  EXPECT_EQ(machine.load().options.max_buffer_memory, std::uint64_t{1} << 30);
  machine.memory = 64 << 20;
  EXPECT_EQ(value_of(machine.load(), "max-buffer-memory"), "16MiB");
  EXPECT_EQ(machine.load({"--max-buffer-memory=0"}).options.max_buffer_memory, 0U);
  EXPECT_EQ(machine.load_file("max-buffer-memory = 4096").options.max_buffer_memory, 4096U);

  EXPECT_FALSE(machine.load({"--http-addr=off"}).options.metrics);
  EXPECT_TRUE(machine.load().options.metrics);
  EXPECT_FALSE(machine.load({"--http-addr=:80", "--no-metrics"}).options.metrics);

  machine = {.cores = 2, .files_max = 20'000};
  EXPECT_EQ(machine.load().options.max_connections, 20'000U - 64 - 2 * 4);
  EXPECT_EQ(machine.load({"--threads=4"}).options.max_connections, 20'000U - 64 - 4 * 4);
  EXPECT_EQ(machine.load({"--max-connections=0"}).options.max_connections, 0U);
  EXPECT_EQ(machine.load({"--max-connections=0"}).options.max_unauthenticated, 1000U);
  EXPECT_EQ(machine.load().options.max_unauthenticated, 1000U);
  EXPECT_EQ(machine.load({"--max-connections=500"}).options.max_unauthenticated, 250U);
  EXPECT_EQ(machine.load({"--max-connections=500", "--max-unauthenticated=400"})
                .options.max_unauthenticated,
            400U);
  machine.files_max = 100;  // what is reserved is no more than half
  EXPECT_EQ(machine.load().options.max_connections, 50U);
  machine.files_max = UINT64_MAX;  // as when there is no limit
  EXPECT_EQ(machine.load().options.max_connections, UINT32_MAX);

  EXPECT_TRUE(machine.load().options.line_is_protected());
  EXPECT_FALSE(machine.load({"--auth-token=x"}).options.line_is_protected());
  EXPECT_FALSE(machine.load({"--host=0.0.0.0"}).options.line_is_protected());
  EXPECT_TRUE(machine.load({"--http-addr=:80", "--host=::"}).options.http_is_protected());
}

TEST(LoadOptions, DebugIsALogLevel) {
  FakeEnvironment machine;
  EXPECT_EQ(machine.load({"--debug"}).options.log_level, LogLevel::debug);
  EXPECT_EQ(machine.load({"--debug", "--log-level=error"}).options.log_level, LogLevel::debug);
  EXPECT_EQ(machine.load({"--debug", "--log-level=trace"}).options.log_level, LogLevel::trace);
  EXPECT_EQ(machine.load({"--no-debug", "--log-level=error"}).options.log_level, LogLevel::error);
  EXPECT_EQ(origin_of(machine.load({"--debug"}), "log-level"), "the command line");

  machine.profile = Profile::dflockd;
  machine.variables["LOCKD_SERVER_LOG_LEVEL"] = "warn";
  const Loaded loaded = machine.load({"--debug"});
  EXPECT_EQ(loaded.options.log_level, LogLevel::warn);
  EXPECT_EQ(
      loaded.warnings,
      std::vector<std::string>{
          "--log-level from LOCKD_SERVER_LOG_LEVEL is used, not --debug from the command line"});
}

TEST(LoadOptions, LockdServesHttpToThisMachineAndKeepsAJournal) {
  const FakeEnvironment machine;
  const Options plain = machine.load().options;
  EXPECT_EQ(plain.port, 6388);
  EXPECT_EQ(plain.http_addr, (Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(plain.wal, "lockd-data");
  EXPECT_EQ(plain.max_locks, 1'000'000U);
  EXPECT_FALSE(plain.dflockd_letter);
  EXPECT_EQ(machine.load({"--memory", "--http-addr=off"}).options.wal, "");
  EXPECT_EQ(machine.load({"--memory", "--http-addr=off"}).options.http_addr, std::nullopt);
  EXPECT_EQ(machine.load({"--memory", "--wal=w"}).error,
            "--wal from the command line and --memory from the command line exclude each other: "
            "locks are kept in one place");

  const FakeEnvironment of_cluster{.profile = Profile::lockd_ha};
  EXPECT_EQ(of_cluster.load().options.wal, "lockd-data");
  EXPECT_EQ(of_cluster.load({"--etcd=b:2", "--advertise-addr=a:1"}).options.wal, "");
}

TEST(LoadOptions, DflockdHasItsOwnDefaultsAndLetter) {
  const Options plain = FakeEnvironment{.profile = Profile::dflockd}.load().options;
  EXPECT_EQ(plain.port, 6388);
  EXPECT_EQ(plain.http_addr, std::nullopt);
  EXPECT_EQ(plain.wal, "");
  EXPECT_EQ(plain.max_locks, 1024U);
  EXPECT_TRUE(plain.dflockd_letter);
}

TEST(LoadOptions, TheProfileIsTheNameOfTheProgram) {
  EXPECT_EQ(profile_of("dflockd"), Profile::dflockd);
  EXPECT_EQ(profile_of("/usr/bin/lockd-server"), Profile::lockd_server);
  for (const char* other : {"lockd", "./lockd", "", "dflockd/x", "lockd-dflockd"}) {
    EXPECT_EQ(profile_of(other), Profile::lockd) << other;
  }
}

// A Service called lockd-server, and one called dflockd.
TEST(LoadOptions, VariablesOfKubernetesAreIgnored) {
  const FakeEnvironment machine{.variables = {{"LOCKD_SERVER_PORT", "tcp://10.0.0.7:6388"},
                                              {"LOCKD_SERVER_PORT_6388_TCP", "tcp://10.0.0.7:6388"},
                                              {"LOCKD_SERVER_PORT_6388_TCP_ADDR", "10.0.0.7"},
                                              {"LOCKD_SERVER_SERVICE_HOST", "10.0.0.7"},
                                              {"LOCKD_SERVER_SERVICE_PORT_HTTP", "8080"},
                                              {"DFLOCKD_PORT", "tcp://10.0.0.8:6388"}}};
  const Loaded loaded = machine.load();
  EXPECT_EQ(loaded.error, "");
  EXPECT_EQ(loaded.options.port, 6388);
  EXPECT_EQ(loaded.warnings,
            std::vector<std::string>{"DFLOCKD_PORT and 5 more ignored: Kubernetes sets such "
                                     "variables for a Service"});
}

TEST(LoadOptions, AnUnknownVariableOfTheServerIsAnError) {
  EXPECT_EQ(FakeEnvironment({.variables = {{"LOCKD_SERVER_MAX_LOCK", "5"}}}).load().error,
            "unknown variable 'LOCKD_SERVER_MAX_LOCK' (did you mean LOCKD_SERVER_MAX_LOCKS?)");
  EXPECT_NE(FakeEnvironment({.variables = {{"LOCKD_SERVER_PORTS_", ""}}}).load().error, "");
  EXPECT_EQ(FakeEnvironment({.variables = {{"LOCKD_SERVERS", "a"}}}).load().error, "");
}

TEST(LoadOptions, LockdServerHasItsOwnDefaults) {
  const FakeEnvironment machine{.profile = Profile::lockd_server};
  const Options plain = machine.load().options;
  EXPECT_EQ(plain.port, std::nullopt);
  EXPECT_EQ(plain.http_addr, (Endpoint{"", 8080}));
  EXPECT_EQ(plain.max_locks, 1'000'000U);
  EXPECT_FALSE(plain.metrics);
  EXPECT_FALSE(plain.line_is_protected());
  EXPECT_TRUE(plain.http_is_protected());

  const Options given = machine.load({"-addr", "0.0.0.0:9", "-wal", "/w", "-metrics"}).options;
  EXPECT_EQ(given.http_addr, (Endpoint{"0.0.0.0", 9}));
  EXPECT_EQ(given.wal, "/w");
  EXPECT_TRUE(given.metrics);
  EXPECT_FALSE(given.http_is_protected());

  EXPECT_EQ(machine.load({"--port=1"}).options.port, 1);
  EXPECT_EQ(
      FakeEnvironment({.profile = Profile::lockd_server, .variables = {{"DFLOCKD_PORT", "2"}}})
          .load()
          .options.port,
      2);
  EXPECT_EQ(machine.load({"--http-addr=:7"}).options.http_addr->port, 7);
  EXPECT_EQ(machine.load_file("addr = ':1'\nhttp-addr = ':2'").error,
            "line 2 of 'f.toml': http-addr is the same setting as addr");
}

TEST(LoadOptions, ScrubsSecretsFromArgumentsAndEnvironment) {
  std::string one = "--auth-token=hunter2";
  std::string two = "hunter3";
  std::string three = "hunter4";
  const std::vector<const char*> arguments = {one.c_str(), "-auth-token", two.c_str(), "--port=1"};
  const config::FakeEnvironment nothing;
  config::Environment environment = nothing.environment();
  environment.variable = [&](const char* name) {
    return name == std::string("LOCKD_SERVER_AUTH_TOKEN") ? three.c_str() : nullptr;
  };
  Loaded loaded = load_options(Profile::lockd, arguments, environment);
  scrub_secrets(loaded);
  EXPECT_EQ(one, "--auth-token=*******");
  EXPECT_EQ(two, "*******");
  EXPECT_EQ(three, "*******");
  EXPECT_EQ(loaded.options.secret, "hunter3");
  EXPECT_EQ(value_of(loaded, "auth-token"), "*******");
}

}  // namespace
}  // namespace lockd
