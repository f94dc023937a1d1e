// What the log says at the start of settings that let in more than may be meant.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "journal/testing/temporary_directory.h"
#include "support/server_process.h"

namespace lockd {
namespace {

TEST(StartWarnings, AreInTheLogWithoutTheSecret) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/token";
  std::ofstream(path) << "open sesame\n";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  {
    const ServerProcess server({"--auth-token-file", path});
    const std::string log = server.log();
    EXPECT_NE(log.find("token' holds a secret and others can read it"), std::string::npos) << log;
    EXPECT_NE(log.find("the auth token crosses the network in plain text"), std::string::npos);
    EXPECT_NE(log.find("an auth token of fewer than 16 characters"), std::string::npos) << log;
    EXPECT_EQ(log.find("sesame"), std::string::npos) << log;
  }
  const ServerProcess open({"--host", "0.0.0.0"});
  EXPECT_NE(open.log().find("serves whoever can reach it"), std::string::npos) << open.log();
  const ServerProcess in_protected_mode;
  EXPECT_EQ(in_protected_mode.log().find("warn"), std::string::npos) << in_protected_mode.log();
}

TEST(StartWarnings, AJournalIsADirectory) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/locks.wal";
  std::ofstream(path) << "a file of somebody else's\n";
  ServerProcess server({"--wal", path}, ServerProcess::Launch{.may_refuse = true});
  EXPECT_EQ(server.port(), 0);
  EXPECT_EQ(server.await_exit(), 1);
  EXPECT_NE(server.log().find("--wal takes a directory, which is made if it is not there: '" +
                              path + "' is a file"),
            std::string::npos)
      << server.log();
  std::string kept;
  std::getline(std::ifstream(path), kept);
  EXPECT_EQ(kept, "a file of somebody else's");
}

}  // namespace
}  // namespace lockd
