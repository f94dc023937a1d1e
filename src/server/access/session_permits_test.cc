// What each right lets a client do on either port, and with which keys; and what becomes of those
// who are in when permits change.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/session/http_session.h"
#include "server/session/line_session.h"
#include "server/session/testing/session_harness.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// That of the harness's clock.
constexpr Permit::Expiry kHarnessTime{1'700'000'000s};

class SessionPermits : public testing::Test {
 protected:
  SessionPermits() { permit_one(Rights::all()); }

  static Options options() {
    Options options;
    options.access = "f";
    return options;
  }

  // From now on there is one token, "billing", whose secret is "s".
  void permit_one(Rights rights, std::vector<std::string> prefixes = {}) {
    replace({{.name = "billing",
              .rights = rights,
              .prefixes = std::move(prefixes),
              .proof = Permit::Proof::token,
              .shown = std::string(bytes_of(sha256("s")))}});
  }
  void replace(std::vector<Permit> permits) {
    harness_.access().replace({.permits = std::move(permits)}, kHarnessTime);
  }

  HostedSession& enter() {
    HostedSession& hosted = harness_.open<LineSession>(++last_id_);
    EXPECT_EQ(ask(hosted, "auth\n\ns\n"), "ok\n");
    return hosted;
  }
  HostedSession& open_http() { return harness_.open<HttpSession>(++last_id_); }

  // What it says now.
  std::string ask(HostedSession& hosted, std::string_view request) {
    const std::size_t before = SessionHarness::said_by(hosted).size();
    harness_.host().receive(hosted, request);
    harness_.host().end_turn();
    return SessionHarness::said_by(hosted).substr(before);
  }
  // On a connection of its own.
  std::string ask_http(HttpMethod method, std::string_view target, std::string_view body = "") {
    return ask(open_http(), http(method, target, body));
  }
  static std::string http(HttpMethod method, std::string_view target, std::string_view body = "") {
    std::string request = method == HttpMethod::post ? "POST " : "GET ";
    (request += target) += " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer s\r\n";
    if (method != HttpMethod::post) return request + "\r\n";
    return request + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
  }

  SessionHarness harness_{options()};
  SessionId last_id_ = 0;
};

const Right kEachRight[] = {Right::none, Right::lock, Right::signal, Right::read, Right::admin};

TEST_F(SessionPermits, EachLineCommandNeedsItsRight) {
  const struct {
    std::string_view request;
    Right needs;
  } cases[] = {
      {"l\nk\n0\n", Right::lock},
      {"e\nk2\n\n", Right::lock},
      {"w\nk2\n0\n", Right::lock},
      {"n\nk\n0123456789abcdef0123456789abcdef\n", Right::lock},
      {"r\nk\n0123456789abcdef0123456789abcdef\n", Right::lock},
      {"sl\nj\n0 2\n", Right::lock},
      {"se\nj2\n2\n", Right::lock},
      {"sw\nj2\n0\n", Right::lock},
      {"sn\nj\n0123456789abcdef0123456789abcdef\n", Right::lock},
      {"sr\nj\n0123456789abcdef0123456789abcdef\n", Right::lock},
      {"listen\nc\n\n", Right::signal},
      {"signal\nc\nhello\n", Right::signal},
      {"unlisten\nc\n\n", Right::signal},
      {"stats\n\n\n", Right::read},
      {"ping\n\n\n", Right::none},
      {"barrier\n\n\n", Right::none},
  };
  for (const Right right : kEachRight) {
    permit_one(right == Right::none ? Rights() : Rights().with(right));
    for (const auto& [request, needs] : cases) {
      HostedSession& hosted = enter();
      const bool may = needs == Right::none || needs == right || right == Right::admin;
      EXPECT_EQ(ask(hosted, request) == "error_denied\n", !may) << request << word_of(right);
      // Whatever was denied, it goes on.
      if (!may) {
        EXPECT_EQ(ask(hosted, "ping\n\n\n"), "ok\n") << request;
      }
      harness_.host().cut(hosted);
      harness_.host().end_turn();
    }
  }
}

TEST_F(SessionPermits, EachRouteNeedsItsRight) {
  for (const Right right : kEachRight) {
    const Rights rights = right == Right::none ? Rights() : Rights().with(right);
    permit_one(rights);
    for (const Route& route : kRoutes) {
      std::string path(route.path);
      if (path.ends_with("{channel}")) path.replace(path.find('{'), path.size(), "c");
      const std::string said = ask_http(route.method, path, "{}");
      const bool is_denied = said.starts_with("HTTP/1.1 403 ");
      EXPECT_EQ(is_denied, !rights.allow(rule_of(route.operation).right))
          << path << ' ' << word_of(right) << said;
      EXPECT_EQ(is_denied, said.find(R"({"error":"denied","detail":"this needs the right `)") !=
                               std::string::npos);
      EXPECT_EQ(is_denied, said.find("which 'billing' lacks") != std::string::npos) << said;
    }
  }
}

TEST_F(SessionPermits, WhatIsDeniedIsAnsweredByItsHead) {
  permit_one({});
  HostedSession& hosted = open_http();
  const std::string said = ask(hosted,
                               "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer s\r\n"
                               "Content-Length: 100000\r\n\r\n");
  EXPECT_TRUE(said.starts_with("HTTP/1.1 403 ")) << said;
}

TEST_F(SessionPermits, OverHttpTheConnectionStaysOpen) {
  permit_one({});
  HostedSession& hosted = open_http();
  EXPECT_TRUE(ask(hosted, http(HttpMethod::get, "/v1/stats")).starts_with("HTTP/1.1 403 "));
  EXPECT_TRUE(ask(hosted, http(HttpMethod::get, "/v1/whoami")).starts_with("HTTP/1.1 200 "));
}

TEST_F(SessionPermits, PrefixesBindEveryLineCommand) {
  permit_one(Rights::all(), {"billing."});
  const std::string token = "0123456789abcdef0123456789abcdef";
  const std::pair<std::string, std::string> requests[] = {
      {"l\n", "\n0\n"},
      {"e\n", "\n\n"},
      {"w\n", "\n0\n"},
      {"n\n", "\n" + token + "\n"},
      {"r\n", "\n" + token + "\n"},
      {"sl\n", "\n0 2\n"},
      {"se\n", "\n2\n"},
      {"sw\n", "\n0\n"},
      {"sn\n", "\n" + token + "\n"},
      {"sr\n", "\n" + token + "\n"},
      {"signal\n", "\nhello\n"},
      {"listen\n", "\n\n"},
      {"unlisten\n", "\n\n"},
  };
  for (const auto& [command, rest] : requests) {
    HostedSession& hosted = enter();
    for (const char* const name : {"other", "billing", "xbilling.1", "Billing.1"}) {
      EXPECT_EQ(ask(hosted, command + name + rest), "error_denied\n") << command << name;
    }
    EXPECT_NE(ask(hosted, command + "billing.1" + rest), "error_denied\n") << command;
    harness_.host().cut(hosted);
    harness_.host().end_turn();
  }
  HostedSession& hosted = enter();
  EXPECT_EQ(ask(hosted, "listen\nbilling.*\n\n"), "ok\n");
  EXPECT_EQ(ask(hosted, "listen\n*.1\n\n"), "error_denied\n");
  EXPECT_EQ(ask(hosted, "listen\n>\n\n"), "error_denied\n");
}

TEST_F(SessionPermits, PrefixesBindEveryCall) {
  permit_one(Rights::all(), {"billing."});
  const auto status = [this](HttpMethod method, const std::string& target,
                             const std::string& body = "") {
    return ask_http(method, target, body).substr(9, 3);
  };
  const auto body_for = [](const std::string& key) {
    return R"({"key":")" + key + R"(","holder":"h")";
  };
  const std::string outside = body_for("other");
  const std::string inside = body_for("billing.1");
  for (const std::string kind : {"", "semaphores/"}) {
    const std::string limit = kind.empty() ? "}" : R"(,"limit":2})";
    EXPECT_EQ(status(HttpMethod::post, "/v1/" + kind + "acquire", outside + limit), "403");
    EXPECT_EQ(status(HttpMethod::post, "/v1/" + kind + "acquire", inside + limit), "200");
    for (const std::string call : {"renew", "release"}) {
      const std::string path = "/v1/" + kind + call;
      EXPECT_EQ(status(HttpMethod::post, path, outside + R"(,"token":1})"), "403");
      EXPECT_NE(status(HttpMethod::post, path, inside + R"(,"token":1})"), "403");
    }
  }
  EXPECT_EQ(status(HttpMethod::get, "/v1/fence?key=other"), "403");
  EXPECT_EQ(status(HttpMethod::get, "/v1/fence?key=billing.1"), "200");
  EXPECT_EQ(status(HttpMethod::get, "/v1/locks?key=other"), "403");
  EXPECT_EQ(status(HttpMethod::get, "/v1/locks?key=billing.1"), "200");
  EXPECT_EQ(status(HttpMethod::get, "/v1/locks?prefix=other"), "200");
  EXPECT_EQ(status(HttpMethod::post, "/v1/signals/other", R"({"payload":"p"})"), "403");
  EXPECT_EQ(status(HttpMethod::post, "/v1/signals/billing.1", R"({"payload":"p"})"), "200");
  EXPECT_EQ(status(HttpMethod::get, "/v1/signals?pattern=*"), "403");
  EXPECT_EQ(status(HttpMethod::get, "/v1/signals?pattern=billing.*"), "200");
  EXPECT_EQ(status(HttpMethod::get, "/v1/overview"), "200");
  EXPECT_EQ(status(HttpMethod::get, "/metrics"), "403");
  const std::string said = ask_http(HttpMethod::get, "/v1/fence?key=other");
  EXPECT_NE(said.find("has its rights for what begins with 'billing.'"), std::string::npos) << said;
}

TEST_F(SessionPermits, FewerRightsHoldFromTheNextRequestOn) {
  HostedSession& hosted = enter();
  EXPECT_TRUE(ask(hosted, "l\nk\n0\n").starts_with("ok "));
  permit_one(Rights().with(Right::read));
  EXPECT_EQ(ask(hosted, "l\nj\n0\n"), "error_denied\n");
  EXPECT_EQ(ask(hosted, "ping\n\n\n"), "ok\n");
  permit_one(Rights().with(Right::lock), {"billing."});
  EXPECT_EQ(ask(hosted, "l\nj\n0\n"), "error_denied\n");
  EXPECT_TRUE(ask(hosted, "l\nbilling.1\n0\n").starts_with("ok "));
  harness_.host().finish_if([](ServerSession& session) { return !session.renew_permit(); });
  EXPECT_FALSE(hosted.is_over);
}

TEST_F(SessionPermits, WhoseTokenIsRemovedIsClosed) {
  HostedSession& idle = enter();
  HostedSession& busy = enter();
  HostedSession& waiting = enter();
  ASSERT_TRUE(ask(idle, "l\nk\n0 60\n").starts_with("ok "));
  ask(waiting, "l\nk\n60\n");
  HostedSession& stranger = harness_.open<LineSession>(++last_id_);
  replace({});
  EXPECT_EQ(ask(busy, "ping\n\n\n"), "");
  EXPECT_TRUE(busy.is_over);
  EXPECT_FALSE(idle.is_over);
  harness_.host().finish_if([](ServerSession& session) { return !session.renew_permit(); });
  harness_.host().end_turn();
  EXPECT_TRUE(idle.is_over);
  EXPECT_TRUE(waiting.is_over);
  EXPECT_FALSE(stranger.is_over) << "it has yet to show one";
  permit_one(Rights::all());
  EXPECT_TRUE(ask(enter(), "l\nk\n0\n").starts_with("ok ")) << "what they held is free";
}

TEST_F(SessionPermits, AnotherSecretOfTheSameNameIsAnotherToken) {
  HostedSession& hosted = enter();
  replace({{.name = "billing",
            .rights = Rights::all(),
            .proof = Permit::Proof::token,
            .shown = std::string(bytes_of(sha256("s2")))}});
  harness_.host().finish_if([](ServerSession& session) { return !session.renew_permit(); });
  EXPECT_TRUE(hosted.is_over);
}

// What is pushed is not asked for again: so it cannot be denied then.
TEST_F(SessionPermits, WhoListensToMoreThanItMayIsClosed) {
  HostedSession& listener = enter();
  HostedSession& locker = enter();
  ASSERT_EQ(ask(listener, "listen\nbilling.*\n\n"), "ok\n");
  HostedSession& signals = open_http();
  ask(signals, http(HttpMethod::get, "/v1/signals?pattern=billing.*"));
  HostedSession& events = open_http();
  ask(events, http(HttpMethod::get, "/v1/events"));
  ASSERT_TRUE(events.session->needs_peer());

  permit_one(Rights::all(), {"billing."});
  harness_.host().finish_if([](ServerSession& session) { return !session.renew_permit(); });
  EXPECT_TRUE(listener.is_over);
  EXPECT_TRUE(signals.is_over);
  EXPECT_TRUE(events.is_over);
  EXPECT_FALSE(locker.is_over);
}

TEST_F(SessionPermits, MoreRightsCloseNobody) {
  permit_one(Rights().with(Right::signal), {"billing."});
  HostedSession& listener = enter();
  ASSERT_EQ(ask(listener, "listen\nbilling.*\n\n"), "ok\n");
  permit_one(Rights::all());
  harness_.host().finish_if([](ServerSession& session) { return !session.renew_permit(); });
  EXPECT_FALSE(listener.is_over);
  EXPECT_EQ(ask(listener, "listen\nother\n\n"), "ok\n");
}

TEST_F(SessionPermits, WhoWatchesIsToldOfItsKeysOnly) {
  permit_one(Rights::all(), {"billing."});
  HostedSession& events = open_http();
  ask(events, http(HttpMethod::get, "/v1/events"));
  permit_one(Rights::all());
  HostedSession& locker = enter();
  ask(locker, "l\nother\n0\nl\nbilling.1\n0\n");
  harness_.host().show_events();
  harness_.host().end_turn();
  const std::string& said = SessionHarness::said_by(events);
  EXPECT_EQ(said.find("other"), std::string::npos) << said;
  EXPECT_NE(said.find(R"("key":"billing.1")"), std::string::npos) << said;
}

TEST_F(SessionPermits, AListedCertificateMakesAuthOptional) {
  Options options = SessionPermits::options();
  options.tls_client_ca = "ca";
  SessionHarness harness(options);
  const std::string digest(bytes_of(sha256("s")));
  harness.access().replace({.permits = {{.name = "deployer",
                                         .rights = Rights().with(Right::read),
                                         .proof = Permit::Proof::certificate,
                                         .shown = by_common_name("deployer")},
                                        {.name = "billing",
                                         .rights = Rights().with(Right::lock),
                                         .proof = Permit::Proof::token,
                                         .shown = digest}}},
                           kHarnessTime);
  SessionHost& host = harness.host();
  const CertificateNames listed{.common_names = {"deployer"}};
  const auto says = [&](HostedSession& hosted, std::string_view request) {
    const std::size_t before = SessionHarness::said_by(hosted).size();
    host.receive(hosted, request);
    host.end_turn();
    return SessionHarness::said_by(hosted).substr(before);
  };

  HostedSession& deployer = harness.open<LineSession>(1);
  EXPECT_FALSE(deployer.session->is_authenticated());
  host.on_event(deployer, CertificateShown{listed});
  EXPECT_TRUE(deployer.session->is_authenticated());
  EXPECT_EQ(says(deployer, "l\nk\n0\n"), "error_denied\n");
  EXPECT_EQ(says(deployer, "auth\n\ns\n"), "ok\n");
  EXPECT_TRUE(says(deployer, "l\nk\n0\n").starts_with("ok "));
  EXPECT_EQ(says(deployer, "stats\n\n\n"), "error_denied\n") << "they are replaced";
  EXPECT_EQ(says(deployer, "auth\n\ns\n"), "error\n") << "once";

  HostedSession& guesser = harness.open<LineSession>(2);
  host.on_event(guesser, CertificateShown{listed});
  EXPECT_EQ(says(guesser, "auth\n\nwrong\n"), "error_auth\n");
  EXPECT_EQ(guesser.session->pause(), ServerSession::Pause::failed_attempt);

  HostedSession& unlisted = harness.open<LineSession>(3);
  host.on_event(unlisted, CertificateShown{{.common_names = {"stranger"}}});
  EXPECT_EQ(says(unlisted, "ping\n\n\n"), "error_auth\n");

  HostedSession& http = harness.open<HttpSession>(4);
  host.on_event(http, CertificateShown{listed});
  const std::string whoami = "GET /v1/whoami HTTP/1.1\r\nHost: a\r\n";
  EXPECT_NE(says(http, whoami + "\r\n").find(R"("name":"deployer")"), std::string::npos);
  EXPECT_NE(says(http, whoami + "Authorization: Bearer s\r\n\r\n").find(R"("name":"billing")"),
            std::string::npos);
  EXPECT_NE(says(http, whoami + "\r\n").find(R"("name":"deployer")"), std::string::npos);
  EXPECT_EQ(says(http, whoami + "Authorization: Bearer t\r\n\r\n"), "") << "after a pause";
}

// A connection has one principal: `auth` may replace the certificate until the connection asks to
// acquire, wait or listen.
TEST_F(SessionPermits, AuthAfterACertificateIsRefusedOnceTheConnectionIsUsed) {
  Options options = SessionPermits::options();
  options.tls_client_ca = "ca";
  SessionHarness harness(options);
  const std::vector<Permit> token{{.name = "billing",
                                   .rights = Rights().with(Right::lock),
                                   .proof = Permit::Proof::token,
                                   .shown = std::string(bytes_of(sha256("s")))}};
  std::vector<Permit> both = token;
  both.push_back({.name = "deployer",
                  .rights = Rights::all(),
                  .prefixes = {"d."},
                  .proof = Permit::Proof::certificate,
                  .shown = by_common_name("deployer")});
  SessionHost& host = harness.host();
  SessionId last_id = 0;
  const auto says = [&](HostedSession& hosted, std::string_view request) {
    const std::size_t before = SessionHarness::said_by(hosted).size();
    host.receive(hosted, request);
    host.end_turn();
    return SessionHarness::said_by(hosted).substr(before);
  };
  const auto enter = [&]() -> HostedSession& {
    harness.access().replace({.permits = both}, kHarnessTime);
    HostedSession& hosted = harness.open<LineSession>(++last_id);
    host.on_event(hosted, CertificateShown{{.common_names = {"deployer"}}});
    return hosted;
  };
  for (const std::string_view use :
       {"l\nd.k\n0\n", "e\nd.k\n\n", "w\nd.k\n0\n", "sl\nd.s\n0 2\n", "se\nd.s\n2\n",
        "sw\nd.s\n0\n", "listen\nd.c\n\n", "api\nGET /v1/signals\n{\"pattern\":\"d.c\"}\n",
        "api\nGET /v1/events\n\n", "api\nPOST /v1/acquire\n{\"key\":\"d.h\",\"holder\":\"h\"}\n",
        "api\nPOST /v1/semaphores/acquire\n{\"key\":\"d.t\",\"holder\":\"h\",\"limit\":2}\n"}) {
    HostedSession& hosted = enter();
    EXPECT_NE(says(hosted, use), "error_denied\n") << use;
    EXPECT_EQ(says(hosted, "auth\n\ns\n"), "error\n") << use;
    host.cut(hosted);
    host.end_turn();
  }

  HostedSession& hosted = enter();
  for (const std::string_view harmless :
       {"ping\n\n\n", "client\nann\n\n", "stats\n\n\n", "signal\nd.c\nhello\n", "unlisten\nd.c\n\n",
        "l\nother\n0\n", "listen\nother\n\n", "api\nGET /v1/whoami\n\n"}) {
    says(hosted, harmless);
  }
  EXPECT_EQ(says(hosted, "auth\n\ns\n"), "ok\n");
  EXPECT_NE(
      says(hosted, "api\nGET /v1/whoami\n\n").find(R"("name":"billing","rights":["lock"],"peer")"),
      std::string::npos);
  EXPECT_EQ(says(hosted, "listen\nd.c\n\n"), "error_denied\n");
  EXPECT_TRUE(says(hosted, "l\nk\n0\n").starts_with("ok "));
  harness.access().replace({.permits = token}, kHarnessTime);
  host.finish_if([](ServerSession& session) { return !session.renew_permit(); });
  EXPECT_FALSE(hosted.is_over) << "the certificate no longer counts";
  harness.access().replace({.permits = {both.back()}}, kHarnessTime);
  host.finish_if([](ServerSession& session) { return !session.renew_permit(); });
  EXPECT_TRUE(hosted.is_over) << "nor does it keep the connection open";
}

TEST_F(SessionPermits, WithCertificatesAloneAnUnlistedOneHasNoRights) {
  Options options = SessionPermits::options();
  options.tls_client_ca = "ca";
  SessionHarness harness(options);
  HostedSession& unlisted = harness.open<LineSession>();
  harness.host().on_event(unlisted, CertificateShown{{.common_names = {"stranger"}}});
  harness.host().receive(unlisted, "ping\n\n\nl\nk\n0\nstats\n\n\nsignal\nc\np\n");
  harness.host().end_turn();
  EXPECT_EQ(SessionHarness::said_by(unlisted), "ok\nerror_denied\nerror_denied\nerror_denied\n");
}

TEST(ForwardedTest, AProxysMarkIsSeen) {
  const struct {
    std::string_view field;
    bool is_admin;
  } cases[] = {
      {"", true},
      {"Forwarded: for=10.0.0.1\r\n", false},
      {"forwarded: for=unknown\r\n", false},
      {"X-Forwarded-For: 10.0.0.1\r\n", false},
      {"x-forwarded-for:\r\n", false},
      {"X-Forwarded-Forx: 10.0.0.1\r\n", true},
  };
  for (const auto& [field, is_admin] : cases) {
    SessionHarness harness(Options{});
    SessionHost& host = harness.host();
    HostedSession& hosted = harness.open<HttpSession>(1, {.is_loopback = true});
    host.receive(hosted,
                 "GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n" + std::string(field) + "\r\n");
    host.end_turn();
    const bool said_admin = SessionHarness::said_by(hosted).find("admin") != std::string::npos;
    EXPECT_EQ(said_admin, is_admin) << field;
  }
}

// Without an auth token, Host must be one whole name or address, and perhaps a port.
TEST(HostTest, IsReadStrictly) {
  const struct {
    std::string_view host;
    bool is_own;
  } cases[] = {
      {"localhost", true},
      {"LocalHost:8080", true},
      {"a.localhost:1", true},
      {"127.0.0.1", true},
      {"127.0.0.1:65535", true},
      {"[::1]", true},
      {"[::1]:8080", true},
      {"localhost:", true},
      {"[localhost]evil.com", false},
      {"[localhost]", false},
      {"[::1", false},
      {"[::1]evil.com", false},
      {"[::1]:evil", false},
      {"[127.0.0.1]", false},
      {"127.0.0.1:evil", false},
      {"127.0.0.1:80:80", false},
      {"127.0.0.1:65536", false},
      {"localhost:80@evil.com", false},
      {"::1", false},
      {"[", false},
      {"[]", false},
      {":80", false},
      {"evil.com/.localhost", false},
      {"evil.com", false},
      {"own.example:evil", false},
      {"own.example:80", true},
      {"[own.example]", false},
  };
  for (const auto& [host, is_own] : cases) {
    Options options;
    options.http_allow_host = {"own.example"};
    SessionHarness harness(options);
    HostedSession& hosted =
        harness.open<HttpSession>(1, {.is_loopback = true, .at_loopback = true});
    harness.host().receive(hosted,
                           "GET /v1/whoami HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    harness.host().end_turn();
    EXPECT_EQ(SessionHarness::said_by(hosted).starts_with("HTTP/1.1 200 "), is_own) << host;
  }
}

}  // namespace
}  // namespace lockd
