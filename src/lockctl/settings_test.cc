#include "lockctl/settings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

using namespace std::chrono_literals;

// A machine with these variables and files, and nothing else.
struct FakeMachine {
  std::map<std::string, std::string> variables{{"HOME", "/home/ana"}};
  std::map<std::string, std::string> files{};

  Settings load(const std::vector<const char*>& words = {"ping"}) const {
    const auto look = [](const std::map<std::string, std::string>& all) {
      return [&all](const std::string& name) -> std::optional<std::string> {
        const auto found = all.find(name);
        return found == all.end() ? std::nullopt : std::optional(found->second);
      };
    };
    const Parsed parsed = parse_arguments(words);
    EXPECT_EQ(parsed.error, "");
    return load_settings(parsed.arguments, {.variable = look(variables), .file = look(files)});
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
  FakeMachine environment;
  environment.files[kFile] = "server = \"file:1\"\n";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"file:1"});
  environment.variables["DFLOCKD_SERVERS"] = "variable:2";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"variable:2"});
  EXPECT_EQ(names(environment.load({"ping", "-s", "flag:3"})), std::vector<std::string>{"flag:3"});
}

TEST(Settings, ServersAreAListInEverySource) {
  FakeMachine environment;
  const std::vector<std::string> both{"a:1", "b:6388"};
  EXPECT_EQ(names(environment.load({"ping", "-s", "a:1", "--servers", "b"})), both);
  EXPECT_EQ(names(environment.load({"ping", "-s", "a:1, b"})), both);
  environment.files[kFile] = "servers = [\"a:1\", \"b\"]\n";
  EXPECT_EQ(names(environment.load()), both);
  environment.variables["DFLOCKD_SERVERS"] = "a:1,b";
  EXPECT_EQ(names(environment.load()), both);
}

TEST(Settings, AClusterIsAListInEverySource) {
  FakeMachine environment;
  const std::vector<std::string> both{"a:1", "b:6388"};
  const auto expect_cluster = [&](const Settings& settings) {
    EXPECT_EQ(names(settings), both);
    EXPECT_TRUE(settings.is_cluster);
    EXPECT_EQ(settings.client().cluster.size(), 2U);
  };
  expect_cluster(environment.load({"ping", "--cluster", "a:1", "--cluster", "b"}));
  expect_cluster(environment.load({"ping", "--cluster", "a:1, b"}));
  environment.files[kFile] = "cluster = [\"a:1\", \"b\"]\n";
  expect_cluster(environment.load());
  environment.files[kFile] = "cluster = \"elsewhere\"\n";
  environment.variables["DFLOCKD_CLUSTER"] = "a:1,b";
  expect_cluster(environment.load());
  EXPECT_FALSE(FakeMachine().load().is_cluster);
  EXPECT_EQ(FakeMachine().error({"ping", "--cluster", "a:b"}),
            "--cluster: 'a:b': it takes HOST or HOST:PORT");
}

TEST(Settings, OfAClusterAndServersTheStrongerSourceCounts) {
  FakeMachine environment;
  environment.files[kFile] = "cluster = \"file\"\n";
  environment.variables["DFLOCKD_HOST"] = "host";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"host:6388"});
  environment.variables["DFLOCKD_CLUSTER"] = "variable";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"variable:6388"});
  const Settings flag = environment.load({"ping", "-s", "flag"});
  EXPECT_EQ(names(flag), std::vector<std::string>{"flag:6388"});
  EXPECT_FALSE(flag.is_cluster);
  EXPECT_EQ(environment.error({"ping", "-s", "a", "--cluster", "b"}),
            "--cluster and --server: give one of them");
}

TEST(Settings, HttpAddressesMayBeThoseOfACluster) {
  FakeMachine environment;
  environment.variables["DFLOCKD_HTTP_ADDR"] = "a:1,https://b:2";
  const Settings settings = environment.load();
  ASSERT_EQ(settings.http.size(), 2U);
  EXPECT_EQ(settings.http[1].to_string(), "https://b:2");
  EXPECT_EQ(environment.load({"list", "--http", "c:3"}).http.size(), 1U);
  EXPECT_EQ(environment.error({"list", "--http", "a:1,b"}),
            "--http: 'b': it takes HOST:PORT or http://HOST:PORT");
  EXPECT_EQ(environment.error({"list", "--http", ","}), "--http: it names no server");
}

TEST(Settings, HostAndPortOfTheServerAreUnderstood) {
  FakeMachine environment;
  environment.variables["DFLOCKD_PORT"] = "7000";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"127.0.0.1:7000"});
  environment.variables["DFLOCKD_HOST"] = "0.0.0.0";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"127.0.0.1:7000"});
  environment.variables["DFLOCKD_HOST"] = "locks";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"locks:7000"});
  environment.variables["DFLOCKD_SERVERS"] = "other:1";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"other:1"});
}

TEST(Settings, TheFileIsWhereXdgSaysIt) {
  FakeMachine environment;
  environment.files["/etc/xdg/lockd.toml"] = "server = \"xdg\"";
  environment.files["/elsewhere"] = "server = \"named\"";
  environment.variables["XDG_CONFIG_HOME"] = "/etc/xdg";
  EXPECT_EQ(names(environment.load()), std::vector<std::string>{"xdg:6388"});
  EXPECT_EQ(names(environment.load({"ping", "--config", "/elsewhere"})),
            std::vector<std::string>{"named:6388"});
  EXPECT_EQ(environment.error({"ping", "--config", "/none"}), "/none: there is no such file");
}

TEST(Settings, TheTokenOfTheStrongerSourceCounts) {
  FakeMachine environment;
  environment.files["/token"] = "  from a file\n";
  environment.files[kFile] = "token = \"from lockd.toml\"";
  EXPECT_EQ(environment.load().connect.auth_token, "from lockd.toml");
  environment.variables["DFLOCKD_AUTH_TOKEN_FILE"] = "/token";
  EXPECT_EQ(environment.load().connect.auth_token, "from a file");
  EXPECT_EQ(environment.load({"ping", "--token", "typed"}).connect.auth_token, "typed");
  environment.variables["DFLOCKD_AUTH_TOKEN"] = "both";
  EXPECT_EQ(environment.error(),
            "DFLOCKD_AUTH_TOKEN and DFLOCKD_AUTH_TOKEN_FILE: give one of them");
}

TEST(Settings, OptionsOfTlsImplyIt) {
  FakeMachine environment;
  EXPECT_TRUE(environment.load({"ping", "--tls"}).connect.tls);
  EXPECT_EQ(environment.load({"ping", "--tls-ca", "/ca"}).connect.tls->ca_file, "/ca");
  EXPECT_FALSE(environment.load({"ping", "--tls-insecure"}).connect.tls->verify);
  EXPECT_FALSE(environment.load({"ping", "--tls-ca", "/ca", "--no-tls"}).connect.tls);
  EXPECT_NE(environment.error({"ping", "--tls-cert", "/cert"}), "");
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
  FakeMachine environment;
  const auto named = environment.load({"bench", "--http", "--servers", "http://a:1,https://b:2"});
  ASSERT_EQ(named.http_servers.size(), 2U);
  EXPECT_EQ(named.http_servers[1].to_string(), "https://b:2");
  EXPECT_NE(environment.error({"bench", "--http"}), "");
  environment.variables["DFLOCKD_HTTP_ADDR"] = ":8080";
  EXPECT_EQ(environment.load({"bench", "--http"}).http_servers.at(0).to_string(),
            "http://127.0.0.1:8080");
}

TEST(Settings, MistakesNameTheirPlace) {
  const struct {
    const char* file;
    const char* error;
  } files[] = {
      {"tls = \"maybe\"",
       "line 1 of /home/ana/.config/lockd.toml: 'maybe': it takes true or "
       "false, 1 or 0, yes or no, on or off"},
      {"\nsevrer = \"a\"",
       "line 2 of /home/ana/.config/lockd.toml: there is no setting 'sevrer'; "
       "lockctl --help lists them"},
      {"token = 17",
       "line 1 of /home/ana/.config/lockd.toml: token is text, and needs quotes "
       "around it"},
      {"server = \"a\"\nservers = \"b\"",
       "line 2 of /home/ana/.config/lockd.toml: server is there twice, once as servers"},
      {"auth-token = hush", "line 1 of /home/ana/.config/lockd.toml: not valid TOML"},
      {"server = []",
       "line 1 of /home/ana/.config/lockd.toml: '': it takes a text that is not "
       "empty"},
  };
  for (const auto& [text, error] : files) {
    FakeMachine environment;
    environment.files[kFile] = text;
    EXPECT_EQ(environment.error(), error);
  }
  FakeMachine environment;
  environment.variables["DFLOCKD_PORT"] = "0";
  EXPECT_EQ(environment.error(), "DFLOCKD_PORT: '0': it takes a whole number from 1 to 65535");
  EXPECT_EQ(environment.error({"ping", "-s", "a:b"}),
            "--server: 'a:b': it takes HOST or HOST:PORT");
}

TEST(Settings, TimesAreRead) {
  EXPECT_EQ(FakeMachine().load({"ping", "--connect-timeout", "0.5"}).connect.reply_timeout, 500ms);
  EXPECT_NE(FakeMachine().error({"ping", "--connect-timeout", "0"}), "");
}

}  // namespace
}  // namespace lockd::cli
