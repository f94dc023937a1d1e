// Tokens with rights, in a server that runs: both ports, rotation, what a reload takes away, and
// what expires.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "base/sha256.h"
#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

const std::string kBilling = "the secret of billing";
const std::string kOps = "the secret of operations";

std::string table(const std::string& name, const std::string& secret, const std::string& rest) {
  return "[[token]]\nname = '" + name + "'\nsha256 = '" + hex_of(sha256(secret)) + "'\n" + rest +
         "\n";
}

const std::string kOpsTable = table("ops", kOps, "rights = ['admin']");

class AccessReload : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  LineClient enter(const std::string& secret) const {
    LineClient client(server_.port(), 0, false);
    EXPECT_EQ(client.ask(request("auth", "", secret)), "ok") << secret;
    return client;
  }
  HttpReply get(const std::string& secret, std::string_view target) const {
    HttpClient http({.port = server_.http_port(), .tls = false});
    http.fields = "Authorization: Bearer " + secret + "\r\n";
    return http.get(target);
  }

  const TemporaryDirectory folder_;
  const std::string path_ = [this] {
    std::ofstream(folder_.path() + "/access.toml")
        << kOpsTable + table("billing", kBilling, "rights = ['lock', 'read']\nkeys = ['billing/']");
    return folder_.path() + "/access.toml";
  }();
  ServerProcess server_{{"--access", path_, "--http-addr", "127.0.0.1:0"}};
};

TEST_F(AccessReload, EachHasItsOwnRightsOnBothPorts) {
  LineClient billing = enter(kBilling);
  EXPECT_EQ(masked(billing.ask(request("l", "billing/1", "0"))), "ok <token> 33");
  EXPECT_EQ(billing.ask(request("l", "other", "0")), "error_denied");
  EXPECT_EQ(billing.ask(request("signal", "billing/1", "p")), "error_denied");
  LineClient ops = enter(kOps);
  EXPECT_EQ(masked(ops.ask(request("l", "other", "0"))), "ok <token> 33");

  const std::string seen = billing.ask(request("stats", "", ""));
  EXPECT_NE(seen.find("billing/1"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("other"), std::string::npos) << seen;
  const HttpReply listed = get(kBilling, "/v1/locks");
  EXPECT_NE(listed.body.find("billing/1"), std::string::npos) << listed.body;
  EXPECT_EQ(listed.body.find("other"), std::string::npos) << listed.body;
  EXPECT_NE(get(kOps, "/v1/locks").body.find("other"), std::string::npos);
  EXPECT_EQ(get(kBilling, "/metrics").status, 403);
  EXPECT_EQ(get(kBilling, "/metrics").text("error"), "denied");
  EXPECT_EQ(get(kOps, "/metrics").status, 200);
  EXPECT_EQ(get(kBilling, "/v1/whoami").text("name"), "billing");
  EXPECT_EQ(get("another", "/v1/whoami").status, 401);
  EXPECT_EQ(server_.log().find("secret of"), std::string::npos);
}

TEST_F(AccessReload, ByTheLineProtocolsCallsToo) {
  LineClient billing = enter(kBilling);
  EXPECT_TRUE(billing.ask(request("api", "GET /v1/whoami", "")).starts_with("ok 200 {\"name\""));
  EXPECT_TRUE(billing.ask(request("api", "POST /v1/acquire", R"({"key":"other","holder":"h"})"))
                  .starts_with("ok 403 {\"error\":\"denied\""));
  EXPECT_TRUE(billing.ask(request("api", "POST /v1/signals/billing/1", R"({"payload":"p"})"))
                  .starts_with("ok 403 {\"error\":\"denied\""));
  EXPECT_EQ(billing.ask(request("ping", "", "")), "ok");
}

// One key that it may not touch is enough: nothing has happened to the others.
TEST_F(AccessReload, OfSeveralKeysEachMustBeAllowed) {
  HttpClient http({.port = server_.http_port(), .tls = false});
  http.fields = "Authorization: Bearer " + kBilling + "\r\n";
  const auto body = [](std::string_view keys, std::string_view more = "") {
    return R"({"keys":)" + std::string(keys) + R"(,"holder":"h")" + std::string(more) + "}";
  };
  constexpr std::string_view kBoth = R"(["billing/1","other"])";
  const HttpReply denied = http.post("/v1/acquire", body(kBoth));
  EXPECT_EQ(shown(denied), R"(403 {"error":"denied"})");
  const HttpReply taken = http.post("/v1/acquire", body(R"(["billing/1","billing/2"])"));
  ASSERT_EQ(taken.status, 200) << taken.body;
  const std::string token = R"(,"token":)" + std::to_string(taken.number("token"));
  EXPECT_EQ(http.post("/v1/renew", body(kBoth, token)).status, 403);
  EXPECT_EQ(http.post("/v1/release", body(kBoth, token)).status, 403);
  EXPECT_EQ(shown(http.post("/v1/release", body(R"(["billing/1"])", token))),
            R"(200 {"released":["billing/1"],"not_held":[]})");
}

TEST_F(AccessReload, OnlyReadersSeeTheAddressAndNoteOfAHolder) {
  write(kOpsTable + table("billing", kBilling, "rights = ['lock']"));
  ASSERT_NE(server_.reload().find(" reloaded"), std::string::npos);
  const auto ask = [&](const std::string& secret, std::string_view body) {
    HttpClient http({.port = server_.http_port(), .tls = false});
    http.fields = "Authorization: Bearer " + secret + "\r\n";
    return http.post("/v1/acquire", body);
  };
  ASSERT_EQ(ask(kOps, hold_json("k", "a", R"("note":"deploy")")).status, 200);
  for (const std::string& body : {hold_json("k", "b"), hold_json("k", "b", R"("wait_ms":1)"),
                                  std::string(R"({"keys":["j","k"],"holder":"b"})")}) {
    for (const char* member : {R"("peer":")", R"("note":"deploy")"}) {
      EXPECT_NE(ask(kOps, body).body.find(member), std::string::npos) << body;
      EXPECT_EQ(ask(kBilling, body).body.find(member), std::string::npos) << body;
    }
    const std::string refused = shown(ask(kBilling, body));
    EXPECT_NE(refused.find(held_by("a", "exclusive")), std::string::npos) << refused;
  }
}

TEST_F(AccessReload, ASecretIsReplacedWithoutAGap) {
  const std::string rest = "rights = ['lock']";
  LineClient early = enter(kBilling);
  write(table("billing", kBilling, rest) + table("billing", "the next one", rest));
  EXPECT_NE(server_.reload().find(" reloaded"), std::string::npos);
  EXPECT_EQ(masked(early.ask(request("l", "k", "0"))), "ok <token> 33");
  LineClient late = enter("the next one");

  write(table("billing", "the next one", rest));
  EXPECT_NE(server_.reload().find(" reloaded"), std::string::npos);
  EXPECT_EQ(early.read_to_end(), Lines{std::string(kEnd)}) << "without a word from it";
  EXPECT_EQ(masked(late.ask(request("l", "k", "5"))), "ok <token> 33") << "it has let go";
  LineClient again(server_.port(), 0, false);
  EXPECT_EQ(again.ask(request("auth", "", kBilling)), "error_auth");
}

TEST_F(AccessReload, AFileThatIsNoGoodLeavesTheOldOneInForce) {
  LineClient billing = enter(kBilling);
  write(kOpsTable + "[[token]]\nname = 'x'\nsha256 = '" + kBilling + "'\nrights = ['lock']\n");
  const std::string said = server_.reload();
  EXPECT_NE(said.find("not reloaded: all stays as it was"), std::string::npos) << said;
  EXPECT_NE(said.find("line 7: token 'x': sha256 must be 64 hex digits"), std::string::npos)
      << said;
  EXPECT_EQ(said.find(kBilling), std::string::npos) << said;
  EXPECT_EQ(masked(billing.ask(request("l", "billing/1", "0"))), "ok <token> 33");
  enter(kBilling);

  ServerProcess refused({"--access", path_, "--check-config"}, {.may_refuse = true});
  EXPECT_EQ(refused.await_exit(), 1);
  EXPECT_NE(refused.log().find("line 7"), std::string::npos) << refused.log();
}

// Not a moment before it expires, and soon after that.
TEST_F(AccessReload, WhatExpiresIsClosedThen) {
  const std::time_t expiry = std::time(nullptr) + 2;
  std::tm parts{};
  ::gmtime_r(&expiry, &parts);
  std::array<char, 40> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  write(kOpsTable +
        table("billing", kBilling, std::string("rights = ['lock']\nexpires = ") + text.data()));
  EXPECT_NE(server_.reload().find(" reloaded"), std::string::npos);
  LineClient idle = enter(kBilling);
  EXPECT_EQ(get(kBilling, "/v1/whoami").text("expires"), text.data());
  EXPECT_EQ(idle.read_to_end(), Lines{std::string(kEnd)});
  // Not std::time: that lags behind by up to a tick.
  EXPECT_GE(std::chrono::system_clock::now(), std::chrono::system_clock::from_time_t(expiry));
  EXPECT_EQ(get(kBilling, "/v1/whoami").status, 401);
  LineClient again(server_.port(), 0, false);
  EXPECT_EQ(again.ask(request("auth", "", kBilling)), "error_auth");
  EXPECT_EQ(enter(kOps).ask(request("ping", "", "")), "ok");
}

TEST(AccessWithSharedToken, BothAreGoodAndDefaultIsNoAdminBesideOne) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/access.toml";
  std::ofstream(path) << table("billing", kBilling, "rights = ['lock']");
  ServerProcess server(
      {"--access", path, "--auth-token", "sixteen letters!", "--http-addr", "127.0.0.1:0"});
  const auto rights = [&] {
    HttpClient http({.port = server.http_port(), .tls = false});
    http.fields = "Authorization: Bearer sixteen letters!\r\n";
    const HttpReply reply = http.get("/v1/whoami");
    EXPECT_EQ(reply.text("name"), "default") << reply.body;
    return reply.body;
  };
  EXPECT_NE(rights().find("admin"), std::string::npos);
  std::ofstream(path) << kOpsTable;
  ::kill(server.pid(), SIGHUP);
  ASSERT_TRUE(server.comes_to_log(" reloaded"));
  EXPECT_EQ(rights().find("admin"), std::string::npos);
  EXPECT_EQ(server.log().find("sixteen"), std::string::npos);
}

TEST(AccessWithSharedToken, AShortOneIsWarnedAboutAtAReloadToo) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/token";
  std::ofstream(path) << "long enough to be random\n";
  ServerProcess server({"--auth-token-file", path});
  EXPECT_EQ(server.log().find("fewer than 16 characters"), std::string::npos);
  std::ofstream(path) << "short\n";
  ::kill(server.pid(), SIGHUP);
  EXPECT_TRUE(server.comes_to_log("an auth token of fewer than 16 characters can be guessed"));
}

}  // namespace
}  // namespace lockd
