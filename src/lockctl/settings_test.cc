#include "lockctl/settings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "config/testing/fake_environment.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;

// A machine with these variables and files, and nothing else.
struct FakeMachine : config::FakeEnvironment {
  FakeMachine() { variables["HOME"] = "/home/ana"; }

  Settings load(const std::vector<const char*>& words = {"ping"}) const {
    const config::Parsed parsed = parse_arguments(program(), words);
    EXPECT_EQ(parsed.error, "");
    return load_settings(parsed.arguments, environment());
  }

  std::string error(const std::vector<const char*>& words = {"ping"}) const {
    try {
      load(words);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), kExitConfig);
      return failure.what();
    }
    return "";
  }
};

std::vector<std::string> names(const Settings& settings) {
  std::vector<std::string> all;
  for (const client::Address& server : settings.servers) all.push_back(server.to_string());
  return all;
}

constexpr const char* kFile = "/home/ana/.config/lockd.toml";

TEST(Settings, HaveDefaults) {
  const Settings settings = FakeMachine().load();
  EXPECT_EQ(names(settings), std::vector<std::string>{"127.0.0.1:6388"});
  EXPECT_FALSE(settings.connect.tls);
  EXPECT_TRUE(settings.http.empty());
  EXPECT_EQ(settings.connect.auth_token, "");
}

TEST(Settings, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  FakeMachine machine;
  machine.files[kFile].text = "server = \"file:1\"\n";
  EXPECT_EQ(names(machine.load()), std::vector<std::string>{"file:1"});
  machine.variables["LOCKD_SERVERS"] = "variable:2";
  EXPECT_EQ(names(machine.load()), std::vector<std::string>{"variable:2"});
  EXPECT_EQ(names(machine.load({"ping", "-s", "flag:3"})), std::vector<std::string>{"flag:3"});
}

TEST(Settings, ServersAreAListInEverySource) {
  FakeMachine machine;
  const std::vector<std::string> both{"a:1", "b:6388"};
  EXPECT_EQ(names(machine.load({"ping", "-s", "a:1", "--servers", "b"})), both);
  EXPECT_EQ(names(machine.load({"ping", "-s", "a:1, b"})), both);
  machine.files[kFile].text = "servers = [\"a:1\", \"b\"]\n";
  EXPECT_EQ(names(machine.load()), both);
  machine.variables["LOCKD_SERVERS"] = "a:1,b";
  EXPECT_EQ(names(machine.load()), both);
}

TEST(Settings, AClusterIsAListInEverySource) {
  FakeMachine machine;
  const std::vector<std::string> both{"a:1", "b:6388"};
  const auto expect_cluster = [&](const Settings& settings) {
    EXPECT_EQ(names(settings), both);
    EXPECT_TRUE(settings.is_cluster);
    EXPECT_EQ(settings.client().cluster.size(), 2U);
  };
  expect_cluster(machine.load({"ping", "--cluster", "a:1", "--cluster", "b"}));
  expect_cluster(machine.load({"ping", "--cluster", "a:1, b"}));
  machine.files[kFile].text = "cluster = [\"a:1\", \"b\"]\n";
  expect_cluster(machine.load());
  machine.files[kFile].text = "cluster = \"elsewhere\"\n";
  machine.variables["LOCKD_CLUSTER"] = "a:1,b";
  expect_cluster(machine.load());
  EXPECT_FALSE(FakeMachine().load().is_cluster);
  EXPECT_EQ(FakeMachine().error({"ping", "--cluster", "a:b"}),
            "--cluster from the command line is 'a:b': it takes HOST or HOST:PORT");
}

TEST(Settings, OfAClusterAndServersTheStrongerSourceCounts) {
  FakeMachine machine;
  machine.files[kFile].text = "cluster = \"file\"\n";
  machine.variables["LOCKD_SERVERS"] = "one";
  EXPECT_EQ(names(machine.load()), std::vector<std::string>{"one:6388"});
  machine.variables.erase("LOCKD_SERVERS");
  machine.variables["LOCKD_CLUSTER"] = "variable";
  EXPECT_EQ(names(machine.load()), std::vector<std::string>{"variable:6388"});
  const Settings flag = machine.load({"ping", "-s", "flag"});
  EXPECT_EQ(names(flag), std::vector<std::string>{"flag:6388"});
  EXPECT_FALSE(flag.is_cluster);
  EXPECT_EQ(machine.error({"ping", "-s", "a", "--cluster", "b"}),
            "--server from the command line and --cluster from the command line: give one of them");
}

TEST(Settings, HttpAddressesMayBeThoseOfACluster) {
  FakeMachine machine;
  machine.variables["LOCKD_HTTP_ADDR"] = "a:1,https://b:2";
  const Settings settings = machine.load();
  ASSERT_EQ(settings.http.size(), 2U);
  EXPECT_EQ(settings.http[1].to_string(), "https://b:2");
  EXPECT_EQ(machine.load({"list", "--http", "c:3"}).http.size(), 1U);
  // Who names a server on the command line means that one.
  EXPECT_TRUE(machine.load({"list", "--server", "d"}).http.empty());
  EXPECT_TRUE(machine.load({"list", "--cluster", "d,e"}).http.empty());
  EXPECT_EQ(machine.load({"list", "--server", "d", "--http", "c:3"}).http.size(), 1U);
  EXPECT_EQ(machine.error({"list", "--http", "a:1,b"}),
            "--http from the command line is 'b': it takes HOST:PORT or http://HOST:PORT");
  EXPECT_EQ(machine.error({"list", "--http", ","}), "--http from the command line names no server");
}

TEST(Settings, WhereAServerListensIsNotWhereItIsReached) {
  FakeMachine machine;
  for (const char* name :
       {"LOCKD_SERVER_HOST", "LOCKD_SERVER_PORT", "LOCKD_SERVER_HTTP_ADDR",
        "LOCKD_SERVER_AUTH_TOKEN", "LOCKD_SERVER_TLS_CERT", "LOCKD_SERVER_TLS_KEY"}) {
    machine.variables[name] = "7000";
  }
  const Settings settings = machine.load();
  EXPECT_EQ(names(settings), std::vector<std::string>{"127.0.0.1:6388"});
  EXPECT_TRUE(settings.http.empty());
  EXPECT_FALSE(settings.connect.tls);
  EXPECT_EQ(settings.connect.auth_token, "");
}

TEST(Settings, WhatTheCommandOfRunSeesIsNoSetting) {
  FakeMachine machine;
  for (const char* name : {"LOCKD_KEY", "LOCKD_TOKEN", "LOCKD_FENCE", "LOCKD_EXPIRES_AT"}) {
    machine.variables[name] = "\n";
  }
  EXPECT_EQ(machine.load().connect.auth_token, "");
}

TEST(Settings, TheFileIsWhereXdgSaysIt) {
  FakeMachine machine;
  machine.files["/etc/xdg/lockd.toml"].text = "server = \"xdg\"";
  machine.files["/elsewhere"].text = "server = \"named\"";
  machine.variables["XDG_CONFIG_HOME"] = "/etc/xdg";
  EXPECT_EQ(names(machine.load()), std::vector<std::string>{"xdg:6388"});
  EXPECT_EQ(names(machine.load({"ping", "--config", "/elsewhere"})),
            std::vector<std::string>{"named:6388"});
  EXPECT_EQ(
      machine.error({"ping", "--config", "/none"}),
      "--config from the command line is '/none': it cannot be read: No such file or directory");
}

TEST(Settings, TheTokenOfTheStrongerSourceCounts) {
  FakeMachine machine;
  machine.files["/token"].text = "  from a file\n";
  machine.files[kFile].text = "token = \"from lockd.toml\"";
  EXPECT_EQ(machine.load().connect.auth_token, "from lockd.toml");
  machine.variables["LOCKD_AUTH_TOKEN_FILE"] = "/token";
  EXPECT_EQ(machine.load().connect.auth_token, "from a file");
  EXPECT_EQ(machine.load({"ping", "--token", "typed"}).connect.auth_token, "typed");
  machine.variables["LOCKD_AUTH_TOKEN"] = "both";
  EXPECT_EQ(
      machine.error(),
      "--token from LOCKD_AUTH_TOKEN and --token-file from LOCKD_AUTH_TOKEN_FILE: give one of "
      "them");
}

TEST(Settings, OptionsOfTlsImplyIt) {
  FakeMachine machine;
  EXPECT_TRUE(machine.load({"ping", "--tls"}).connect.tls);
  EXPECT_EQ(machine.load({"ping", "--tls-ca", "/ca"}).connect.tls->ca_file, "/ca");
  EXPECT_FALSE(machine.load({"ping", "--tls-insecure"}).connect.tls->verify);
  EXPECT_FALSE(machine.load({"ping", "--tls-ca", "/ca", "--no-tls"}).connect.tls);
  EXPECT_NE(machine.error({"ping", "--tls-cert", "/cert"}), "");
}

TEST(Settings, HttpAddresses) {
  const auto parse = [](const char* text, bool tls = false) {
    const auto http = parse_http_address(text, tls);
    return http ? http->to_string() : "none";
  };
  EXPECT_EQ(parse("localhost:8080"), "http://localhost:8080");
  EXPECT_EQ(parse("localhost:8080", true), "https://localhost:8080");
  EXPECT_EQ(parse("http://localhost:8080/", true), "http://localhost:8080");
  EXPECT_EQ(parse("https://[::1]:8080"), "https://[::1]:8080");
  EXPECT_EQ(parse(":8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(parse("0.0.0.0:8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(parse("[::]:8080"), "http://[::1]:8080");
  for (const char* bad : {"", "localhost", "[::1]", "::1:80", "a:b", "a:0", "a:70000"}) {
    EXPECT_EQ(parse(bad), "none") << bad;
  }
}

TEST(Settings, BenchOverHttpHasServersOfItsOwn) {
  FakeMachine machine;
  const auto named = machine.load({"bench", "--http", "--servers", "http://a:1,https://b:2"});
  ASSERT_EQ(named.http_servers.size(), 2U);
  EXPECT_EQ(named.http_servers[1].to_string(), "https://b:2");
  EXPECT_NE(machine.error({"bench", "--http"}), "");
  machine.variables["LOCKD_HTTP_ADDR"] = ":8080";
  EXPECT_EQ(machine.load({"bench", "--http"}).http_servers.at(0).to_string(),
            "http://127.0.0.1:8080");
}

TEST(Settings, MistakesNameTheirPlace) {
  const struct {
    const char* file;
    const char* error;
  } files[] = {
      {"tls = \"maybe\"",
       "--tls from line 1 of '/home/ana/.config/lockd.toml' is 'maybe': it takes true or false, 1 "
       "or "
       "0, yes or no, on or off"},
      {"server = []",
       "--server from line 1 of '/home/ana/.config/lockd.toml' is '': it takes a text that is not "
       "empty"},
  };
  for (const auto& [text, error] : files) {
    FakeMachine machine;
    machine.files[kFile].text = text;
    EXPECT_EQ(machine.error(), error);
  }
  FakeMachine machine;
  EXPECT_EQ(machine.error({"ping", "-s", "a:b"}),
            "--server from the command line is 'a:b': it takes HOST or HOST:PORT");
}

TEST(Settings, TimesAreRead) {
  EXPECT_EQ(FakeMachine().load({"ping", "--connect-timeout", "0.5"}).connect.reply_timeout, 500ms);
  EXPECT_EQ(FakeMachine().load().connect.reply_timeout, 10s);
}

}  // namespace
}  // namespace lockd::cli
