// What a session knows of its client's proof, of the request that is under way, and of whether the
// client may be silent.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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
  std::string offer(HostedSession& hosted, std::string unread) {
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
  HostedSession& good = harness_.open<LineSession>(1);
  EXPECT_FALSE(good.session->is_authenticated());
  offer(good, "auth\n\nopen sesame\n");
  EXPECT_TRUE(good.session->is_authenticated());

  HostedSession& bad = harness_.open<LineSession>(2);
  offer(bad, "auth\n\nopen\n");
  EXPECT_FALSE(bad.session->is_authenticated());
}

TEST_F(UnprovenSession, OverHttpProvesItselfByARequestThatNeedsTheToken) {
  HostedSession& hosted = harness_.open<HttpSession>();
  for (const std::string& request :
       {get("/livez", "open sesame"), get("/", "open sesame"), get("/v1/stats", "wrong")}) {
    offer(hosted, request);
    EXPECT_FALSE(hosted.session->is_authenticated()) << request;
  }
  harness_.host().on_event(hosted, PauseOver{});
  offer(hosted, get("/v1/fence?key=k", "open sesame"));
  EXPECT_TRUE(hosted.session->is_authenticated());
}

TEST(UnprovenSessionWithoutToken, HasNothingToProveUnlessItIsTurnedAway) {
  SessionHarness harness{Options{}};
  for (HostedSession* hosted : {&harness.open<LineSession>(1), &harness.open<HttpSession>(2)}) {
    EXPECT_TRUE(hosted->session->is_authenticated());
    harness.host().on_event(*hosted, ClientRejected{});
    EXPECT_FALSE(hosted->session->is_authenticated());
  }
}

// Each has a number of its own, from its first byte on until it is whole.
TEST_F(UnprovenSession, KnowsWhichRequestIsUnderWay) {
  HostedSession& hosted = harness_.open<LineSession>();
  const auto under_way = [&] { return hosted.session->request_under_way(); };
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
  HostedSession& hosted = harness_.open<LineSession>();
  offer(hosted, "auth\n\nopen sesame\nl\nk\n0\n");
  const std::string unread = offer(hosted, "l\nk\n1\nping\n");
  ASSERT_TRUE(hosted.session->is_blocked());
  EXPECT_EQ(unread, "ping\n");
  EXPECT_EQ(hosted.session->request_under_way(), 0U);
}

// Whether the client may be silent, after each of these lines.
TEST(SilentSession, MayBeSilentWhileItHoldsWaitsOrListens) {
  const struct {
    std::string_view lines;
    bool may;
  } steps[] = {
      {"ping\n\n\n", false},    {"l\nk\n0 as=00000000000000ff\n", true},
      {"e\nj\n\n", true},       {"r\nk\n{k}\n", true},
      {"w\nj\n0\n", true},      {"r\nj\n{j}\n", false},
      {"listen\na\n\n", true},  {"unlisten\na\n\n", false},
      {"e\nheld\n\n", true},    {"w\nheld\n0\n", false},
      {"sl\nk\n0 1 1\n", true}, {"l\nheld\n5\n", true},
  };
  SessionHarness harness{Options{}};
  SessionHost& host = harness.host();
  host.receive(harness.open<LineSession>(1), "l\nheld\n0\n");
  HostedSession& client = harness.open<LineSession>(2);
  std::string j_token;
  std::string k_token;
  for (const auto& step : steps) {
    std::string lines(step.lines);
    const auto fill_in = [&](std::string_view mark, const std::string& token) {
      const std::size_t at = lines.find(mark);
      if (at != std::string::npos) lines.replace(at, mark.size(), token);
    };
    fill_in("{k}", k_token);
    fill_in("{j}", j_token);
    const std::size_t before = SessionHarness::said_by(client).size();
    ASSERT_EQ(host.receive(client, lines), lines.size()) << lines;
    host.end_turn();
    const std::string said = SessionHarness::said_by(client).substr(before);
    if (lines.starts_with("l\nk")) k_token = said.substr(3, 32);
    if (lines.starts_with("w\nj")) j_token = said.substr(3, 32);
    EXPECT_EQ(client.session->may_be_silent(), step.may) << lines << said;
  }
}

TEST(SilentSession, OverHttpMayBeSilentWhileItWaitsOrStreams) {
  SessionHarness harness{Options{}};
  SessionHost& host = harness.host();
  host.receive(harness.open<LineSession>(1), "l\nheld\n0\n");
  const std::string wait = R"({"key":"held","holder":"a","wait_ms":60000})";
  const std::string hold = R"({"key":"k","holder":"a"})";
  const auto post = [](const std::string& body) {
    return "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  SessionId id = 1;
  for (const auto& [request, may] :
       {std::pair{post(hold), false}, std::pair{post(wait), true},
        std::pair{std::string("GET /v1/events HTTP/1.1\r\nHost: a\r\n\r\n"), true}}) {
    HostedSession& client = harness.open<HttpSession>(++id);
    ASSERT_EQ(host.receive(client, request), request.size());
    host.end_turn();
    EXPECT_EQ(client.session->may_be_silent(), may) << request << SessionHarness::said_by(client);
  }
}

// What its client is told at a deadline.
TEST(SilentSession, IsClosedWithAnErrorOrOverHttpWithoutAWord) {
  const auto told = [](auto* kind, bool half) {
    SessionHarness harness{Options{}};
    HostedSession& client = harness.open<std::remove_pointer_t<decltype(kind)>>();
    harness.host().on_event(client, ClientTimedOut{half});
    harness.host().end_turn();
    EXPECT_TRUE(client.is_over);
    return SessionHarness::said_by(client);
  };
  for (const bool half : {false, true}) {
    EXPECT_EQ(told(static_cast<LineSession*>(nullptr), half), "error\n");
  }
  EXPECT_EQ(told(static_cast<HttpSession*>(nullptr), false), "");
  EXPECT_TRUE(told(static_cast<HttpSession*>(nullptr), true).starts_with("HTTP/1.1 408 "));
}

}  // namespace
}  // namespace lockd
