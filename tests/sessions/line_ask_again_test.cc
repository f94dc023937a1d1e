// Idempotent acquisition: the word `as=`.
#include <gtest/gtest.h>

#include <string>

#include "support/line_client.h"

namespace lockd {
namespace {

const std::string kAs = " as=8a1f0c2d4e6b7391";

// One after the other: which is the older is a matter of when the server took them.
LineClient connect(LineServer& server) {
  LineClient client = server.connect();
  EXPECT_EQ(client.ask("ping\n\n\n"), "ok");
  return client;
}

TEST(LineAskAgain, AClientThatLostItsConnectionGetsTheGrantInForce) {
  LineServer server;
  LineClient first = connect(server);
  LineClient second = connect(server);
  const std::string token = token_of(first.ask(request("l", "k", "0 30" + kAs)));
  EXPECT_EQ(token.substr(16), kAs.substr(4));
  EXPECT_EQ(second.ask(request("l", "k", "0 60" + kAs)), "ok " + token + " 60");
  first.close();
  await_stats(second, "{\"connections\":1,");
  EXPECT_EQ(second.ask(request("n", "k", token)), "ok 60") << "its end has released it";
  second.close();
  LineClient third = connect(server);
  await_stats(third, "{\"connections\":1,");
  EXPECT_NE(token_of(third.ask(request("l", "k", "30" + kAs))), token) << "it ends with its own";
}

TEST(LineAskAgain, AnOlderConnectionIsToldAndReleasesNothing) {
  LineServer server;
  LineClient older = connect(server);
  LineClient newer = connect(server);
  const std::string token = token_of(newer.ask(request("l", "k", "0" + kAs)));
  EXPECT_EQ(token_of(older.ask(request("l", "k", "0" + kAs))), token);
  older.close();
  await_stats(newer, "{\"connections\":1,");
  EXPECT_EQ(newer.ask(request("n", "k", token)), "ok 33");
}

TEST(LineAskAgain, OtherTermsAreRefused) {
  LineServer server;
  LineClient client = connect(server);
  const std::string lock = token_of(client.ask(request("l", "k", "0" + kAs)));
  const std::string permits = token_of(client.ask(request("sl", "pool", "0 4 30 2" + kAs)));
  EXPECT_EQ(client.ask(request("l", "k", "0 shared" + kAs)), "error_mode_mismatch");
  EXPECT_EQ(client.ask(request("e", "k", "shared" + kAs)), "error_mode_mismatch");
  EXPECT_EQ(client.ask(request("sl", "pool", "0 4 30 3" + kAs)), "error_permits_mismatch");
  EXPECT_EQ(client.ask(request("se", "pool", "4 30 3" + kAs)), "error_permits_mismatch");
  EXPECT_EQ(client.ask(request("sl", "pool", "0 5 30 2" + kAs)), "error_limit_mismatch");
  EXPECT_EQ(client.ask(request("n", "k", lock)), "ok 33");
  EXPECT_EQ(client.ask(request("sn", "pool", permits)), "ok 30");
}

}  // namespace
}  // namespace lockd
