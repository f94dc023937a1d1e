// What a session hears of what others did to it: holds that it has lost, and its own end.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "engine/testing/forgetful_journal.h"
#include "protocol/line/line_token.h"
#include "server/session/http_session.h"
#include "server/session/line_session.h"
#include "server/session/session_host.h"
#include "server/session/testing/session_harness.h"

namespace lockd {
namespace {

class LostHoldTest : public testing::Test {
 protected:
  HostedSession& connect() { return harness_.open<LineSession>(++last_id_); }
  HostedSession& connect_as_ann() {
    HostedSession& hosted = connect();
    say(hosted, "client\nann\ndeploy\n");
    turn();
    return hosted;
  }
  void say(HostedSession& hosted, std::string_view lines) {
    ASSERT_EQ(harness_.host().receive(hosted, lines), lines.size());
  }
  void turn() {
    harness_.host().end_turn();
    journal_.sync();
    harness_.host().end_turn();
  }
  static std::string heard(const HostedSession& hosted) { return SessionHarness::said_by(hosted); }
  // Takes the lock; the token.
  static std::string token_in(const HostedSession& hosted) {
    const std::string said = heard(hosted);
    return said.substr(said.rfind("ok ") + 3, LineToken::kSize);
  }
  KeyEvent ends(const HostedSession& loser, KeyEvent::Type type, std::string_view token,
                std::string_view key = "k") {
    const auto parsed = LineToken::parse(token);
    return {.type = type,
            .key = key,
            .session = loser.session->id(),
            .fence = parsed->fence,
            .secret = parsed->secret};
  }

  ForgetfulJournal journal_{ForgetfulJournal::Sync::by_hand};
  SessionHarness harness_{Options{}, &journal_};
  SessionId last_id_ = 0;
};

constexpr auto kExpired = KeyEvent::Type::expired;
constexpr auto kRevoked = KeyEvent::Type::revoked;
const std::string kSomeToken = "00000000000000070123456789abcdef";

TEST_F(LostHoldTest, AClientThatSaidWhoItIsHearsOfItsLosses) {
  HostedSession& client = connect_as_ann();
  harness_.happens(ends(client, kExpired, kSomeToken));
  harness_.happens(ends(client, kRevoked, kSomeToken, "my job  of today"));
  turn();
  EXPECT_EQ(heard(client), "ok\nlost " + kSomeToken + " expired k\nlost " + kSomeToken +
                               " revoked my job  of today\n");
}

TEST_F(LostHoldTest, WhatItEndedItselfIsNoLoss) {
  HostedSession& client = connect_as_ann();
  for (const auto type : {KeyEvent::Type::released, KeyEvent::Type::disconnected,
                          KeyEvent::Type::granted, KeyEvent::Type::gave_up}) {
    harness_.happens(ends(client, type, kSomeToken));
  }
  turn();
  EXPECT_EQ(heard(client), "ok\n");
}

TEST_F(LostHoldTest, OthersHearNothing) {
  HostedSession& unnamed = connect();
  HostedSession& client = connect_as_ann();
  harness_.happens(ends(unnamed, kExpired, kSomeToken));
  KeyEvent of_nobody = ends(client, kExpired, kSomeToken);
  of_nobody.session = 0;
  harness_.happens(of_nobody);
  turn();
  EXPECT_EQ(heard(unnamed), "");
  EXPECT_EQ(heard(client), "ok\n");
}

TEST_F(LostHoldTest, NobodyHearsOfALossBeforeItIsDurable) {
  HostedSession& client = connect_as_ann();
  HostedSession& other = connect();
  say(other, "l\nx\n0\n");
  harness_.host().end_turn();
  harness_.happens(ends(client, kExpired, kSomeToken), journal_.events().size());
  harness_.host().end_turn();
  EXPECT_EQ(heard(client), "ok\n");
  turn();
  EXPECT_EQ(heard(client), "ok\nlost " + kSomeToken + " expired k\n");
}

TEST_F(LostHoldTest, ALossIsToldWhileARequestBlocks) {
  HostedSession& holder = connect();
  HostedSession& client = connect_as_ann();
  say(holder, "l\nbusy\n0 1000\n");
  turn();
  say(client, "l\nbusy\n60\n");
  turn();
  ASSERT_TRUE(client.session->is_blocked());
  harness_.happens(ends(client, kExpired, kSomeToken));
  turn();
  EXPECT_EQ(heard(client), "ok\nlost " + kSomeToken + " expired k\n");
  EXPECT_TRUE(client.session->is_blocked());
}

TEST_F(LostHoldTest, AGrantThatWasLostOnItsWayIsLostBehindItsReply) {
  HostedSession& holder = connect();
  HostedSession& client = connect_as_ann();
  say(holder, "l\nk\n0 1000\n");
  turn();
  const std::string held = token_in(holder);
  say(client, "l\nk\n60\n");
  turn();
  // The end of the wait is in the inbox, the host has not looked there yet; the secret of the grant
  // is nobody's to know, and no loss is told twice for another fence.
  say(holder, "r\nk\n" + held + "\n");
  KeyEvent loss = ends(client, kRevoked, kSomeToken);
  loss.fence = LineToken::parse(held)->fence + 1;
  harness_.happens(loss);
  turn();
  const std::string said = heard(client);
  const std::string token = token_in(client);
  EXPECT_TRUE(said.ends_with("ok " + token + " 33\nlost " + token + " revoked k\n")) << said;
}

TEST_F(LostHoldTest, ALossWaitsForTheEndOfAReportsLine) {
  HostedSession& client = connect_as_ann();
  SessionHarness::set_room(client, false);
  say(client, "stats\n\n\n");
  turn();
  ASSERT_EQ(heard(client), "ok\nok {");
  harness_.happens(ends(client, kExpired, kSomeToken));
  turn();
  EXPECT_EQ(heard(client), "ok\nok {");
  SessionHarness::set_room(client, true);
  harness_.host().continue_report(client);
  turn();
  turn();
  EXPECT_EQ(heard(client), "ok\nok {}\nlost " + kSomeToken + " expired k\n");
}

TEST_F(LostHoldTest, WhoHasLeftHearsNothing) {
  HostedSession& client = connect_as_ann();
  harness_.happens(ends(client, kExpired, kSomeToken));
  harness_.host().cut(client);
  turn();
  harness_.happens(ends(client, kExpired, kSomeToken));
  turn();
  EXPECT_EQ(heard(client), "ok\n");
}

TEST_F(LostHoldTest, WhoTakesNothingIsClosed) {
  HostedSession& client = connect_as_ann();
  SessionHarness::set_room(client, false);
  harness_.happens(ends(client, kExpired, kSomeToken));
  turn();
  EXPECT_FALSE(client.is_over);
  SessionHarness::set_room_for_signals(client, false);
  harness_.happens(ends(client, kExpired, kSomeToken));
  turn();
  EXPECT_TRUE(client.is_over);
}

// Disconnects.

TEST_F(LostHoldTest, ADisconnectedClientLosesWhatItHolds) {
  HostedSession& holder = connect();
  HostedSession& waiter = connect();
  say(holder, "l\nk\n0 1000\n");
  turn();
  say(waiter, "l\nk\n60\n");
  turn();
  Position gone_at = 0;
  bool is_gone = false;
  ASSERT_TRUE(harness_.clients().disconnect(1, [&](Position position) {
    gone_at = position;
    is_gone = true;
  }));
  EXPECT_FALSE(is_gone) << "its own thread ends it";
  harness_.host().end_turn();
  EXPECT_TRUE(is_gone);
  EXPECT_TRUE(holder.is_over);
  EXPECT_FALSE(harness_.engine().is_durable(gone_at)) << "it rests on the release";
  turn();
  EXPECT_TRUE(harness_.engine().is_durable(gone_at));
  EXPECT_TRUE(heard(waiter).starts_with("ok "));
  EXPECT_FALSE(harness_.clients().disconnect(1, [](Position) {}));
}

// While the server stops, holds are kept for the next one; but not those of whom an admin ends.
TEST_F(LostHoldTest, ADisconnectReleasesAlsoWhileTheServerStops) {
  HostedSession& holder = connect();
  say(holder, "l\nk\n0 1000\n");
  turn();
  harness_.host().context().keeps_holds = true;
  harness_.host().drain();
  turn();
  ASSERT_FALSE(holder.is_over);
  harness_.clients().disconnect(1, [](Position) {});
  turn();
  EXPECT_FALSE(harness_.engine().status(Kind::lock, "k")->holders > 0);
}

TEST_F(LostHoldTest, AnHttpClientIsDisconnectedWhileItWaits) {
  HostedSession& holder = connect();
  say(holder, "l\nk\n0 1000\n");
  turn();
  HostedSession& browser = harness_.open<HttpSession>(++last_id_);
  const std::string body = R"({"key":"k","holder":"b","wait_ms":60000})";
  say(browser, "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n\r\n" + body);
  turn();
  ASSERT_TRUE(browser.session->is_blocked());
  ASSERT_TRUE(harness_.clients().disconnect(browser.session->id(), [](Position) {}));
  turn();
  EXPECT_TRUE(browser.is_over);
  EXPECT_EQ(harness_.engine().status(Kind::lock, "k")->waiters, 0u);
}

TEST_F(LostHoldTest, SessionsAreKnownFromTheirComingToTheirEnd) {
  HostedSession& client = connect_as_ann();
  EXPECT_EQ(harness_.clients().status(1)->client->name, "ann");
  say(client, "client\nann\nrollback\n");
  turn();
  EXPECT_EQ(harness_.clients().status(1)->client->note, "rollback");
  harness_.host().cut(client);
  EXPECT_FALSE(harness_.clients().status(1));
  EXPECT_FALSE(harness_.clients().find(1)->is_connected);
}

}  // namespace
}  // namespace lockd
