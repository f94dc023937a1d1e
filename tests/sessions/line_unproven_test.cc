// How long a connection may be without proof, and how many of them there may be.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr auto kAuthTimeout = 1s;
const std::string kProof = request("auth", "", "open sesame");

Options guarded_options() {
  Options options = line_options();
  options.secret = options.auth_token = "open sesame";
  options.auth_timeout = kAuthTimeout;
  return options;
}

TEST(LineUnproven, WhoDoesNotAuthenticateInTimeIsClosed) {
  LineServer server(guarded_options());
  const auto began = SteadyClock::now();
  LineClient silent = server.connect();
  LineClient half = server.connect();
  LineClient proven = server.connect();
  half.send("auth\n\nopen");
  ASSERT_EQ(proven.ask(kProof), "ok");
  for (LineClient* client : {&silent, &half}) {
    EXPECT_EQ(client->read_line(), "error_auth");
    EXPECT_GE(SteadyClock::now(), began + kAuthTimeout);
    EXPECT_EQ(client->read_line(), kEnd);
  }
  EXPECT_EQ(proven.read_line(kAuthTimeout), kSilence);
  EXPECT_EQ(proven.ask(request("ping", "", "")), "ok");
}

// On one loop, so that it is known who comes first.
TEST(LineUnproven, WhoCameFirstMakesRoom) {
  Options options = guarded_options();
  options.auth_timeout = 60s;
  options.threads = 1;
  options.max_unauthenticated = 3;
  LineServer server(options);
  LineClient proven = server.connect();
  ASSERT_EQ(proven.ask(kProof), "ok");
  LineClient first = server.connect();
  LineClient second = server.connect();
  LineClient third = server.connect();
  LineClient last = server.connect();
  EXPECT_EQ(last.ask(kProof), "ok");
  const std::string end = first.read_line();
  EXPECT_TRUE(end == kEnd || end == kReset) << end;
  EXPECT_EQ(second.ask(kProof), "ok");
  EXPECT_EQ(third.ask(kProof), "ok");
  EXPECT_EQ(proven.ask(request("ping", "", "")), "ok");
}

// They wait out their pause, and count meanwhile.
TEST(LineUnproven, WhoIsRefusedCountsUntilItIsGone) {
  Options options = guarded_options();
  options.threads = 1;
  options.max_unauthenticated = 1;
  LineServer server(options);
  for (int i = 0; i < 20; ++i) {
    LineClient guess = server.connect();
    EXPECT_EQ(guess.ask(request("auth", "", "open")), "error_auth");
    LineClient honest = server.connect();
    EXPECT_EQ(honest.ask(kProof), "ok");
    const std::string end = guess.read_line(90ms);
    EXPECT_NE(end, kSilence);  // it was not given its pause
  }
}

}  // namespace
}  // namespace lockd
