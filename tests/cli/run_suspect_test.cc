// A lock whose connection has ended: the command of lockctl run is paused until it is renewed, and
// ended when the server refuses the client.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/sha256.h"
#include "cli/lockctl.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr const char* kTicks = "echo begun; while :; do echo tick; sleep 0.02; done";

TEST(RunSuspect, ACommandIsPausedUntilItsLockIsRenewed) {
  const TemporaryDirectory journal;
  ServerProcess first({"--wal", journal.path()});
  const std::string port = std::to_string(first.port());
  Lockctl process(run(first, {"--ttl", "600", "k", "-c", kTicks}));
  process.await_output("tick", 3);
  first.kill();
  process.await_errors("the lock on 'k' is suspect");
  std::this_thread::sleep_for(200ms);
  const std::string paused = process.output();
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(process.output(), paused);

  const ServerProcess second({"--wal", journal.path(), "--port", port});
  process.await_errors("the lock on 'k' is held again; the command is continued");
  process.await_output(paused + "tick");
  process.signal(SIGTERM);
  EXPECT_EQ(process.await_exit(), 128 + SIGTERM);
}

// Two clients of one name, of which one has the file of a rotated auth token.
class RotatedToken : public testing::Test {
 protected:
  void SetUp() override {
    accept({kOld, kNew});
    write_token(kOld);
  }

  // The server accepts these auth tokens.
  void accept(const std::vector<std::string>& tokens) const {
    std::ofstream file(access_);
    for (const std::string& token : tokens) {
      file << "[[token]]\nname = 'app'\nsha256 = '" << hex_of(sha256(token))
           << "'\nrights = ['lock']\n";
    }
  }
  void write_token(const std::string& token) const { std::ofstream(token_file_) << token << "\n"; }

  // Ends the old token while lockctl holds the lock and another client waits for it, and expects
  // that lockctl ends long before its lease. What it said.
  std::string errors_of_rotation(const std::string& token_file) {
    const ServerProcess server({"--access", access_});
    Lockctl process(run(server, {"--token-file", token_file_, "--ttl", "3600", "k", "-c", kTicks}));
    process.await_output("begun");
    LineClient next(server.port(), 0, false);
    EXPECT_EQ(next.ask(request("auth", "", kNew)), "ok");
    next.send(request("l", "k", "60 600"));
    write_token(token_file);
    accept({kNew});
    EXPECT_NE(server.reload().find(" reloaded"), std::string::npos);
    EXPECT_EQ(masked(next.read_line()), "ok <token> 600");
    EXPECT_EQ(process.await_exit(), 79);
    return process.errors();
  }

  const std::string kOld = "the old token";
  const std::string kNew = "the new token";
  const TemporaryDirectory folder_;
  const std::string access_ = folder_.path() + "/access.toml";
  const std::string token_file_ = folder_.path() + "/token";
};

TEST_F(RotatedToken, AClientThatKeptTheOldOneLosesItsLockAtOnce) {
  const std::string errors = errors_of_rotation(kOld);
  EXPECT_TRUE(has(errors, "the server did not accept the auth token")) << errors;
}

TEST_F(RotatedToken, AClientWhoseFileHasTheNewOneHearsThatTheLockWasReleased) {
  const std::string errors = errors_of_rotation(kNew);
  EXPECT_TRUE(has(errors, "the server says that k is held no more")) << errors;
}

}  // namespace
}  // namespace lockd
