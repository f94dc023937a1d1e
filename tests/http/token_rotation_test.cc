// The auth token replaced while the server runs: the file is read again on SIGHUP.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class TokenRotation : public testing::Test {
 protected:
  void write(std::string_view tokens) const { std::ofstream(path_) << tokens; }

  // On both ports alike.
  bool opens(const std::string& token) const {
    LineClient line(server_.port(), 0, false);
    const bool by_line = line.ask(request("auth", "", token)) == "ok";
    HttpClient http({.port = server_.http_port(), .tls = false});
    http.fields = "Authorization: Bearer " + token + "\r\n";
    EXPECT_EQ(http.get("/v1/stats").status, by_line ? 200 : 401) << token;
    return by_line;
  }

  const TemporaryDirectory folder_;
  const std::string path_ = [this] {
    std::ofstream(folder_.path() + "/token") << "the first of them\n";
    return folder_.path() + "/token";
  }();
  ServerProcess server_{{"--auth-token-file", path_, "--http-addr", "127.0.0.1:0"}};
};

TEST_F(TokenRotation, BothOfTwoAreGoodAndWhoIsInStays) {
  LineClient early(server_.port(), 0, false);
  ASSERT_EQ(early.ask(request("auth", "", "the first of them")), "ok");
  const std::string token = token_of(early.ask(request("l", "job", "0 60")));
  EXPECT_FALSE(opens("the second of them"));

  write(" the first of them \r\n\tthe second of them\n");
  EXPECT_NE(server_.reload().find(" reloaded"), std::string::npos);
  EXPECT_TRUE(opens("the first of them"));
  EXPECT_TRUE(opens("the second of them"));
  EXPECT_FALSE(opens("the first of themthe second of them"));
  EXPECT_FALSE(opens(""));

  write("the second of them\n");
  EXPECT_NE(server_.reload().find(" reloaded"), std::string::npos);
  EXPECT_FALSE(opens("the first of them"));
  EXPECT_TRUE(opens("the second of them"));
  EXPECT_EQ(early.ask(request("n", "job", token)), "ok 60");
}

TEST_F(TokenRotation, AFileThatIsNoGoodChangesNothingAndTheLogSaysSo) {
  const auto expect_old = [this](std::string_view why) {
    const std::string said = server_.reload();
    EXPECT_NE(said.find("not reloaded: all stays as it was"), std::string::npos) << said;
    EXPECT_NE(said.find("--auth-token-file is '" + path_ + "': " + std::string(why)),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find("of them\n"), std::string::npos) << said;
    EXPECT_TRUE(opens("the first of them"));
    EXPECT_FALSE(opens(""));
  };
  for (const char* text : {"", " \n\n", "one\ntwo\nthree\n", "one\n\ntwo\n"}) {
    SCOPED_TRACE(text);
    write(text);
    expect_old("the file must hold one or two lines");
  }
  EXPECT_FALSE(opens("one"));
  std::filesystem::remove(path_);
  expect_old("it cannot be read: No such file or directory");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_old("it cannot be read: not a regular file");
  std::filesystem::remove(path_);
  write("the second of them\n");
  EXPECT_NE(server_.reload().find(" reloaded"), std::string::npos);
  EXPECT_TRUE(opens("the second of them"));
  EXPECT_FALSE(opens("the first of them"));
}

}  // namespace
}  // namespace lockd
