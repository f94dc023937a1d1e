// What lockctl says, and exits with, when there is nobody to ask or it is not let in.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"
#include "support/lying_server.h"
#include "support/silent_port.h"
#include "support/test_authority.h"

namespace lockd {
namespace {

TEST(Refusals, UsageIs64) {
  for (const Words& words : {Words{}, Words{"run"}, Words{"run", "k"}, Words{"frobnicate"},
                             Words{"run", "-w", "x", "k", "true"}, Words{"run", "", "true"},
                             Words{"run", "k", "--typo", "true"}}) {
    const Finished finished = lockctl(words);
    EXPECT_EQ(finished.status, 64) << finished.errors;
    EXPECT_TRUE(finished.errors.starts_with("lockctl: ")) << finished.errors;
    EXPECT_EQ(finished.output, "");
  }
}

TEST(Refusals, NoServerIs69) {
  const SilentPort silent;
  const std::string at = "127.0.0.1:" + std::to_string(silent.number());
  const Finished finished = lockctl({"run", "-n", "-s", at, "k", "true"});
  EXPECT_EQ(finished.status, 69);
  EXPECT_NE(finished.errors.find(at), std::string::npos) << finished.errors;
}

TEST(Refusals, AServerThatIsTooOldIs76) {
  const client::LyingServer old([](client::Peer& peer) {
    if (peer.read_request()) peer.send("error\n");
  });
  const Finished finished =
      lockctl({"run", "-S", "-w", "60", "-s", old.address().to_string(), "k", "true"});
  EXPECT_EQ(finished.status, 76);
  EXPECT_TRUE(has(finished.errors, "the server is too old for shared locks")) << finished.errors;
}

TEST(Refusals, AWrongTokenIs77) {
  ServerProcess server({"--auth-token", "right"});
  const std::string at = address_of(server);
  EXPECT_EQ(lockctl({"run", "-s", at, "k", "true"}).status, 77);
  EXPECT_EQ(lockctl({"run", "-s", at, "--token", "wrong", "k", "true"}).status, 77);
  EXPECT_EQ(lockctl({"run", "-s", at, "--token", "right", "k", "true"}).status, 0);
  EXPECT_EQ(lockctl({"bench", "-s", at, "--token", "wrong", "--rounds", "1"}).status, 77);
  EXPECT_EQ(lockctl({"bench", "-s", at, "--token", "right", "--rounds", "1"}).status, 0);
}

TEST(Refusals, TlsVerifiesTheServerUnlessItIsToldNotTo) {
  const TestAuthority& authority = test_authority();
  ServerProcess server(
      {"--tls-cert", authority.certificate("server"), "--tls-key", authority.key("server")});
  const std::string at = address_of(server);
  const std::string ca = authority.certificate("ca");
  for (const Words& command : {Words{"run", "k", "true"}, Words{"bench", "--rounds", "1"}}) {
    const auto with = [&](const Words& options) {
      return lockctl(with_options(command, joined({"-s", at}, options))).status;
    };
    EXPECT_EQ(with({"--tls-ca", ca}), 0) << command.front();
    EXPECT_EQ(with({"--tls-insecure"}), 0) << command.front();
    EXPECT_EQ(with({"--tls"}), 77) << command.front();
    EXPECT_EQ(with({"--tls-ca", ca, "--tls-server-name", "example.com"}), 77) << command.front();
  }
}

TEST(Refusals, AServerMayAskWhoWeAre) {
  const TestAuthority& authority = test_authority();
  ServerProcess server({"--tls-cert", authority.certificate("server"), "--tls-key",
                        authority.key("server"), "--tls-client-ca", authority.certificate("ca"),
                        "--auth-token", "hush"});
  TemporaryDirectory folder;
  std::ofstream(folder.path() + "/lockd.toml")
      << "server = \"" << address_of(server) << "\"\ntls-ca = \"" << authority.certificate("ca")
      << "\"\ntls-cert = \"" << authority.certificate("client") << "\"\ntls-key = \""
      << authority.key("client") << "\"\ntoken = \"hush\"\n";
  const Lockctl::Launch home{.environment = {"XDG_CONFIG_HOME=" + folder.path()}};
  const Finished finished = lockctl({"run", "k", "echo", "in"}, home);
  EXPECT_EQ(finished.status, 0) << finished.errors;
  EXPECT_EQ(finished.output, "in\n");
}

TEST(Refusals, AFullServerIs75) {
  ServerProcess server({"--max-locks", "1"});
  LineClient holder = server.connect();
  holder.ask(request("l", "other", "0 600"));
  EXPECT_EQ(lockctl({"run", "-s", address_of(server), "k", "true"}).status, 75);
}

TEST(Refusals, SettingsAre78) {
  TemporaryDirectory folder;
  std::ofstream(folder.path() + "/lockd.toml") << "server = 17\n";
  EXPECT_EQ(lockctl({"ping"}, {.environment = {"XDG_CONFIG_HOME=" + folder.path()}}).status, 78);
  EXPECT_EQ(lockctl({"ping"}, {.environment = {"LOCKD_SERVERS=a:b"}}).status, 78);
}

TEST(Refusals, OutputThatCannotBeWrittenIs74) {
  Lockctl process({"-c", path_of_lockctl() + " --help > /dev/full; echo $?"},
                  {.program = "/bin/sh"});
  EXPECT_EQ(process.await_exit(), 0);
  EXPECT_EQ(process.output(), "74\n");
}

}  // namespace
}  // namespace lockd
