// What is refused, and the line that says so.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/settings/load_options.h"
#include "server/settings/testing/load_options_fixture.h"

namespace lockd {
namespace {

TEST(LoadOptionsErrors, NameTheSettingTheSourceTheValueAndTheRule) {
  // One for each rule of the table, by flag.
  const struct {
    const char* flag;
    const char* error;
  } cases[] = {
      {"--host=1.2.3", "is '1.2.3': it takes an IPv4 or IPv6 address, or a host name"},
      {"--port=70000",
       "is '70000': it takes a whole number from 0 to 65535, where 0 picks a free port"},
      {"--http-addr=8080",
       "is '8080': it takes host:port, [::1]:port or :port, with a port from 0 to 65535; or off"},
      {"--threads=0", "is '0': it takes a whole number from 1 to 256"},
      {"--gc-interval=0",
       "is '0': it takes seconds, more than 0 and at most 9223372036, such as 5 or 0.5"},
      {"--gc-max-idle=-1", "is '-1': it takes seconds, from 0 to 9223372036, such as 5 or 0.5"},
      {"--max-locks=0", "is '0': it takes a whole number from 1 to 2147483647"},
      {"--max-waiters=many",
       "is 'many': it takes a whole number from 0 to 4294967295, where 0 is no limit"},
      {"--debug=maybe", "is 'maybe': it takes true or false, 1 or 0, yes or no, on or off"},
      {"--tls-cert=", "is '': it takes the name of a file"},
      {"--wal=", "is '': it takes the name of a directory"},
      {"--wal-sync=10",
       "is '10': it takes `always`, or an interval more than 0, such as 10ms or 1s"},
      {"--log-level=loud", "is 'loud': it takes trace, debug, info, warn or error"},
      {"--log-format=xml", "is 'xml': it takes text or json"},
      {"--auth-token=", "is not valid: it takes one line of text, not empty, at most 65536 bytes"},
      {"--auth-token=hunter2\n",
       "is not valid: it takes one line of text, not empty, at most 65536 bytes"},
      {"--port=1\n2",
       "is '1\\x0a2': it takes a whole number from 0 to 65535, where 0 picks a free port"},
  };
  for (const auto& [flag, error] : cases) {
    const std::string word = flag;
    EXPECT_EQ(FakeEnvironment().load({flag}).error,
              word.substr(0, word.find('=')) + " from the command line " + error);
  }
}

TEST(LoadOptionsErrors, CommandLine) {
  const struct {
    std::vector<const char*> arguments;
    const char* error;
  } cases[] = {
      {{"-max_locks=1"},
       "unknown flag '--max_locks' (did you mean --max-locks?); --help lists them all"},
      {{"--auth-tokn=hunter2"},
       "unknown flag '--auth-tokn' (did you mean --auth-token?); --help lists them all"},
      {{"--check-config=1"}, "--check-config takes no value"},
      {{"serve"}, "unexpected argument 'serve'"},
      {{"--"}, "unexpected argument '--'"},
      {{"-"}, "unexpected argument '-'"},
      {{""}, "unexpected argument ''"},
      {{"--debug", "false"},
       "unexpected argument 'false' after --debug; a boolean is given as --debug=VALUE"},
      {{"--debug", "--check-config", "x"}, "unexpected argument 'x'"},
      {{"--port", "1", "2"}, "unexpected argument '2' after --port"},
      {{"--auth-token", "hunter", "two"}, "unexpected argument after --auth-token"},
  };
  for (const auto& [arguments, error] : cases) {
    EXPECT_EQ(FakeEnvironment().load(arguments).error, error);
  }
}

TEST(LoadOptionsErrors, TlsIsWholeOrAbsent) {
  const FakeEnvironment machine{.variables = {{"LOCKD_SERVER_TLS_KEY", "k"}}};
  EXPECT_EQ(machine.load().error,
            "--tls-key from LOCKD_SERVER_TLS_KEY needs --tls-cert: give both or neither");
  EXPECT_EQ(FakeEnvironment().load({"--tls-cert=c"}).error,
            "--tls-cert from the command line needs --tls-key: give both or neither");
  EXPECT_EQ(FakeEnvironment().load({"--tls-client-ca=a"}).error,
            "--tls-client-ca from the command line needs --tls-cert and --tls-key");
  EXPECT_EQ(machine.load({"--tls-cert=c", "--tls-client-ca=a"}).error, "");
}

TEST(LoadOptionsErrors, TokenFile) {
  const struct {
    const char* what;
    const char* text;
    const char* secret;
    const char* second = "";
  } cases[] = {
      {"plain", "hunter2", "hunter2"},
      {"a newline", "hunter2\n", "hunter2"},
      {"CRLF", "hunter2\r\n", "hunter2"},
      {"space around", "\n\t hunter2  \n\n", "hunter2"},
      {"space within", "a b", "a b"},
      {"two lines", "hunter2 \r\n\thunter3\n", "hunter2", "hunter3"},
      {"empty", "", nullptr},
      {"only space", " \r\n\t\n", nullptr},
      {"three lines", "hunter2\nhunter3\nhunter4\n", nullptr},
      {"an empty line between", "hunter2\n\nhunter3\n", nullptr},
      {"a line end of old", "hunter2\rhunter3", nullptr},
  };
  for (const auto& [what, text, secret, second] : cases) {
    const FakeEnvironment machine{.files = {{"t", {.text = text}}}};
    const Loaded loaded = machine.load({"--auth-token-file=t"});
    EXPECT_EQ(loaded.error, secret != nullptr
                                ? ""
                                : "--auth-token-file from the command line is 't': the file must "
                                  "hold one or two lines of text, none of them empty, at most "
                                  "65536 bytes each")
        << what;
    EXPECT_EQ(loaded.options.secret, secret != nullptr ? secret : "") << what;
    EXPECT_EQ(loaded.options.second_secret, second) << what;
  }
  EXPECT_EQ(FakeEnvironment().load({"--auth-token-file=t"}).error,
            "--auth-token-file from the command line is 't': it cannot be read: No such file or "
            "directory");
}

TEST(LoadOptionsErrors, TokenAndTokenFileMustAgree) {
  FakeEnvironment machine{.variables = {{"LOCKD_SERVER_AUTH_TOKEN", "hunter2"}},
                          .files = {{"t", {.text = "hunter2\n"}}}};
  EXPECT_EQ(machine.load({"--auth-token-file=t"}).error, "");
  machine.files["t"].text = "hunter3\nhunter2\n";
  EXPECT_EQ(machine.load({"--auth-token-file=t"}).error, "");
  machine.files["t"].text = "hunter3\n";
  EXPECT_EQ(
      machine.load({"--auth-token-file=t"}).error,
      "--auth-token from LOCKD_SERVER_AUTH_TOKEN differs from what --auth-token-file from the "
      "command line holds: give one of them");
}

TEST(LoadOptionsErrors, TheFileOfAccessIsLookedAt) {
  FakeEnvironment machine{.files = {{"a", {.text = "[[token]]\nname = 'x'\n"}}}};
  EXPECT_EQ(machine.load({"--access=a"}).error,
            "--access is 'a': line 1: token 'x': sha256 is missing");
  EXPECT_EQ(machine.load({"--access=b"}).error,
            "--access is 'b': it cannot be read: No such file or directory");
  machine.files["a"].text = "[[certificate]]\nname = 'x'\ncn = 'x'\nrights = []\n";
  EXPECT_EQ(machine.load({"--access=a"}).error,
            "--access is 'a': certificate 'x' needs --tls-client-ca: nobody is asked for "
            "certificates");
  const Loaded loaded =
      machine.load({"--access=a", "--tls-cert=c", "--tls-key=k", "--tls-client-ca=ca"});
  EXPECT_EQ(loaded.error, "");
  EXPECT_EQ(loaded.options.access, "a");
}

TEST(LoadOptionsWarnings, SayWhatIsOfNoUse) {
  const FakeEnvironment machine;
  const struct {
    std::vector<const char*> arguments;
    std::vector<std::string> warnings;
  } cases[] = {
      {{"--metrics", "--http-addr=off"},
       {"--metrics from the command line has no effect without --http-addr"}},
      {{"--wal-sync=1s", "--memory"},
       {"--wal-sync from the command line has no effect without a journal"}},
      {{"--wal-sync=1s", "--wal=w"}, {}},
      {{"--default-lease-ttl=9", "--max-lease-ttl=8"},
       {"--default-lease-ttl from the command line is cut to --max-lease-ttl"}},
      {{"--default-lease-ttl=8", "--max-lease-ttl=8"}, {}},
      {{"--max-lease-ttl=8"}, {}},
      {{"--max-connections=1", "--max-connections-per-ip=2"},
       {"--max-connections-per-ip from the command line has no effect: it is more than "
        "--max-connections"}},
      {{"--max-connections=2", "--max-connections-per-ip=2"}, {}},
      {{"--max-connections-per-ip=2"}, {}},
  };
  for (const auto& [arguments, warnings] : cases) {
    const Loaded loaded = machine.load(arguments);
    EXPECT_EQ(loaded.error, "");
    EXPECT_EQ(loaded.warnings, warnings) << arguments.front();
  }
  const FakeEnvironment of_cluster{.profile = Profile::lockd_ha};
  EXPECT_EQ(of_cluster.load({"--advertise-addr=a:1"}).warnings,
            std::vector<std::string>{"--advertise-addr from the command line has no effect without "
                                     "--etcd: this server stands alone"});
  EXPECT_EQ(of_cluster.load({"--advertise-addr=a:1", "--etcd=b:2"}).warnings.size(), 0U);
}

TEST(LoadOptionsWarnings, APasswordForEtcdGoesOverAChannelThatIsEncrypted) {
  const FakeEnvironment of_cluster{
      .profile = Profile::lockd_ha,
      .files = {{"p", {.text = "secret"}}, {"ca", {.text = "pem"}}},
  };
  const auto warnings = [&](const char* etcd, const char* more) {
    return of_cluster
        .load({"--advertise-addr=a:1", etcd, "--etcd-user=u", "--etcd-password-file=p", more})
        .warnings;
  };
  EXPECT_EQ(warnings("--etcd=127.0.0.1:2379,10.0.0.1:2379", "--etcd-cluster=c"),
            std::vector<std::string>{"the password of --etcd-user crosses the network in plain "
                                     "text: set --etcd-ca"});
  EXPECT_EQ(warnings("--etcd=10.0.0.1:2379", "--etcd-ca=ca").size(), 0U);
  EXPECT_EQ(warnings("--etcd=127.0.0.1:2379,[::1]:2379", "--etcd-cluster=c").size(), 0U);
}

TEST(LoadOptionsErrors, AnAddressForClientsIsNotEveryAddress) {
  const FakeEnvironment of_cluster{.profile = Profile::lockd_ha};
  for (const char* address : {"0.0.0.0:6388", "[::]:6388"}) {
    EXPECT_EQ(of_cluster.load({"--advertise-addr", address, "--etcd=b:2"}).error,
              "--advertise-addr from the command line is every address of this machine, and no "
              "address for clients on others")
        << address;
  }
}

// Whoever copies a chain serves nobody: of the settings those that reach etcd count.
TEST(LoadOptionsErrors, AChainIsCopiedWithoutAnAddressForClients) {
  const FakeEnvironment of_cluster{.profile = Profile::lockd_ha};
  const Loaded loaded = of_cluster.load({"--export", "backup", "--etcd=b:2", "--tls-cert=c",
                                         "--cluster-secret-file=gone", "--fence-floor=9"});
  EXPECT_EQ(loaded.error, "");
  EXPECT_EQ(loaded.warnings.size(), 0U);
  EXPECT_EQ(loaded.action, Action::export_chain);
  EXPECT_EQ(loaded.directory, "backup");
  EXPECT_EQ(loaded.options.fence_floor, 9U);
  EXPECT_EQ(of_cluster.load({"--import=backup", "--etcd=b:2"}).action, Action::import_chain);
  EXPECT_EQ(of_cluster.load({"--import=backup", "--etcd=b:2", "--check-config"}).action,
            Action::check_config);

  const auto error = [&](std::vector<const char*> arguments) {
    return of_cluster.load(arguments).error;
  };
  EXPECT_EQ(error({"--export=d"}), "--export needs --etcd");
  EXPECT_EQ(error({"--import=", "--etcd=b:2"}),
            "--import from the command line is '': it takes the name of a directory");
  EXPECT_EQ(error({"--import=a", "--export=b", "--etcd=b:2"}),
            "--export and --import exclude each other: one at a time");
  EXPECT_EQ(error({"--import=a", "--etcd=b:2", "--etcd-cert=c"}),
            "--etcd-cert and --etcd-key need each other: give both or neither");
  EXPECT_NE(FakeEnvironment{}.load({"--export=d"}).error, "");
}

TEST(LoadOptionsWarnings, SayWhatIsUnsafe) {
  const FakeEnvironment machine{
      .files = {
          {"good", {.text = "0123456789abcdef"}},
          {"open", {.text = "0123456789abcdef", .open_to_others = true}},
          {"two", {.text = "0123456789abcde\n0123456789abcdef"}},
          {"c", {.text = "auth-token = '0123456789abcdef'", .open_to_others = true}},
          {"d", {.text = "port = 1", .open_to_others = true}},
          {"key", {.text = "k", .open_to_others = true}},
      }};
  const std::string everybody =
      " from the command line serves whoever can reach it: set --auth-token-file, --access or "
      "--tls-client-ca";
  const std::string plain =
      "the auth token crosses the network in plain text: set --tls-cert and --tls-key";
  const std::string is_short =
      "an auth token of fewer than 16 characters can be guessed: make it longer, at random";
  const std::string is_open = " holds a secret and others can read it: chmod go-r";
  const struct {
    std::vector<const char*> arguments;
    std::vector<std::string> warnings;
  } cases[] = {
      // Whom it serves.
      {{}, {}},
      {{"--http-addr=:80"}, {}},
      {{"--host=0.0.0.0"}, {"--host" + everybody}},
      {{"--host=::", "--http-addr=10.0.0.1:80"}, {"--host" + everybody, "--http-addr" + everybody}},
      {{"--host=locks.example"}, {"--host" + everybody}},
      {{"--host=127.0.0.2", "--http-addr=[::1]:80"}, {}},
      {{"--host=localhost"}, {}},
      {{"--host=0.0.0.0", "--tls-cert=c", "--tls-key=good", "--tls-client-ca=a"}, {}},
      // How the token travels.
      {{"--auth-token-file=good"}, {plain}},
      {{"--auth-token-file=good", "--host=0.0.0.0"}, {plain}},
      {{"--auth-token-file=good", "--host=::1", "--http-addr=:80"}, {plain}},
      {{"--auth-token-file=good", "--host=127.0.0.1", "--http-addr=localhost:80"}, {}},
      {{"--auth-token-file=good", "--tls-cert=c", "--tls-key=good"}, {}},
      // How long it is.
      {{"--auth-token=0123456789abcdef", "--host=::1"}, {}},
      {{"--auth-token=0123456789abcde", "--host=::1"}, {is_short}},
      {{"--auth-token-file=two", "--host=::1"}, {is_short}},
      // Who can read it.
      {{"--auth-token-file=open", "--host=::1"}, {"'open'" + is_open}},
      {{"--config=c", "--host=::1"}, {"'c'" + is_open}},
      {{"--config=d"}, {}},
      {{"--tls-cert=c", "--tls-key=key"}, {"'key'" + is_open}},
      {{"--tls-cert=d", "--tls-key=gone"}, {}},
  };
  for (const auto& [arguments, warnings] : cases) {
    const Loaded loaded = machine.load(arguments);
    EXPECT_EQ(loaded.error, "");
    EXPECT_EQ(loaded.warnings, warnings) << (arguments.empty() ? "" : arguments.front());
  }
}

}  // namespace
}  // namespace lockd
