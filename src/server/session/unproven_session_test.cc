// What a session knows of its client's proof, and of the request that is under way.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/session/http_session.h"
#include "server/session/line_session.h"
#include "server/session/testing/session_harness.h"

namespace lockd {
namespace {

Options with_token() {
  Options options;
  options.auth_token = options.secret = "open sesame";
  return options;
}

class UnprovenSession : public testing::Test {
 protected:
  // What is left unread, as a transport would keep it.
  std::string offer(Transport& hosted, std::string unread) {
    unread.erase(0, harness_.host().receive(hosted, unread));
    harness_.host().end_turn();
    return unread;
  }
  std::string get(std::string_view target, std::string_view token) {
    return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " +
           std::string(token) + "\r\n\r\n";
  }

  SessionHarness harness_{with_token()};
};

TEST_F(UnprovenSession, OnTheLinePortProvesItselfByItsFirstRequest) {
  Transport& good = harness_.open<LineSession>(1);
  EXPECT_FALSE(good.session().has_proved());
  offer(good, "auth\n\nopen sesame\n");
  EXPECT_TRUE(good.session().has_proved());

  Transport& bad = harness_.open<LineSession>(2);
  offer(bad, "auth\n\nopen\n");
  EXPECT_FALSE(bad.session().has_proved());
}

TEST_F(UnprovenSession, OverHttpProvesItselfByARequestThatNeedsTheToken) {
  Transport& hosted = harness_.open<HttpSession>();
  for (const std::string& request :
       {get("/healthz", "open sesame"), get("/", "open sesame"), get("/v1/stats", "wrong")}) {
    offer(hosted, request);
    EXPECT_FALSE(hosted.session().has_proved()) << request;
  }
  harness_.host().end_pause(hosted);
  offer(hosted, get("/v1/fence?key=k", "open sesame"));
  EXPECT_TRUE(hosted.session().has_proved());
}

TEST(UnprovenSessionWithoutToken, HasNothingToProveUnlessItIsTurnedAway) {
  SessionHarness harness{Options{}};
  for (Transport* hosted : {&harness.open<LineSession>(1), &harness.open<HttpSession>(2)}) {
    EXPECT_TRUE(hosted->session().has_proved());
    harness.host().turn_away(*hosted);
    EXPECT_FALSE(hosted->session().has_proved());
  }
}

// Each has a number of its own, from its first byte on until it is whole.
TEST_F(UnprovenSession, KnowsWhichRequestIsUnderWay) {
  Transport& hosted = harness_.open<LineSession>();
  const auto under_way = [&] { return hosted.session().request_under_way(); };
  EXPECT_EQ(under_way(), 0U);
  std::string unread = offer(hosted, "a");
  const auto first = under_way();
  EXPECT_NE(first, 0U);
  unread = offer(hosted, unread + "uth\n\nopen sesa");
  EXPECT_EQ(under_way(), first);
  unread = offer(hosted, unread + "me\n");
  EXPECT_EQ(under_way(), 0U);
  unread = offer(hosted, "ping\n\n\npi");
  const auto third = under_way();
  EXPECT_NE(third, 0U);
  EXPECT_NE(third, first);
  unread = offer(hosted, unread + "ng\n\n\npi");
  EXPECT_NE(under_way(), third);
  EXPECT_EQ(unread, "pi");
}

TEST_F(UnprovenSession, HasNoRequestUnderWayBehindOneThatBlocks) {
  Transport& hosted = harness_.open<LineSession>();
  offer(hosted, "auth\n\nopen sesame\nl\nk\n0\n");
  const std::string unread = offer(hosted, "l\nk\n1\nping\n");
  ASSERT_TRUE(hosted.session().blocked());
  EXPECT_EQ(unread, "ping\n");
  EXPECT_EQ(hosted.session().request_under_way(), 0U);
}

}  // namespace
}  // namespace lockd
