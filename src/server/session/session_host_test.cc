// The host's gate: what leaves when, and what is taken back because nobody will hear of it.
#include "server/session/session_host.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <string>
#include <string_view>

#include "engine/testing/forgetful_journal.h"
#include "server/session/http_session.h"
#include "server/session/line_session.h"
#include "server/session/testing/session_harness.h"

namespace lockd {
namespace {

class SessionHostTest : public testing::Test {
 protected:
  HostedSession& connect() { return harness_.open<LineSession>(++last_id_); }
  HostedSession& browse() { return harness_.open<HttpSession>(++last_id_); }

  void say(HostedSession& hosted, std::string_view command, std::string_view key,
           std::string_view argument) {
    std::string lines;
    for (const std::string_view line : {command, key, argument}) (lines += line) += '\n';
    ASSERT_EQ(harness_.host().receive(hosted, lines), lines.size());
  }
  void post(HostedSession& hosted, std::string_view path, const std::string& body) {
    const std::string request = "POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" +
                                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                                body;
    ASSERT_EQ(harness_.host().receive(hosted, request), request.size());
  }
  void get(HostedSession& hosted, std::string_view target) {
    const std::string request = "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_EQ(harness_.host().receive(hosted, request), request.size());
  }
  void end_turn() { harness_.host().end_turn(); }
  void sync() {
    journal_.sync();
    end_turn();
  }
  // All that the session has said and that has left.
  static std::string heard(const HostedSession& hosted) { return SessionHarness::said_by(hosted); }
  // Takes the lock, all the way; the token.
  std::string take(HostedSession& hosted, std::string_view key) {
    say(hosted, "l", key, "0 1000");
    end_turn();
    sync();
    const std::string said = heard(hosted);
    return said.substr(said.rfind("ok ") + 3, 32);
  }

  ForgetfulJournal journal_{ForgetfulJournal::Sync::by_hand};
  SessionHarness harness_{Options{}, &journal_};
  SessionId last_id_ = 0;
};

TEST_F(SessionHostTest, NothingLeavesBeforeWhatItRestsOnIsDurable) {
  HostedSession& client = connect();
  say(client, "l", "k", "0 30");
  end_turn();
  EXPECT_EQ(heard(client), "");
  sync();
  EXPECT_TRUE(heard(client).starts_with("ok "));
}

// As when its auth token expires in the turn in which it asks.
TEST_F(SessionHostTest, NothingLeavesEarlierBecauseItIsTheLast) {
  HostedSession& client = connect();
  say(client, "l", "k", "0 30");
  harness_.host().finish_if([](const ServerSession& session) { return !session.is_blocked(); });
  EXPECT_EQ(heard(client), "");
  end_turn();
  EXPECT_EQ(heard(client), "");
  sync();
  EXPECT_TRUE(heard(client).starts_with("ok "));
}

TEST_F(SessionHostTest, NobodyWaitsForWhatOthersDidInTheSameTurn) {
  HostedSession& writer = connect();
  HostedSession& other = connect();
  say(writer, "l", "k", "0 30");
  say(other, "ping", "", "");
  end_turn();
  EXPECT_EQ(heard(writer), "");
  EXPECT_EQ(heard(other), "ok\n");
}

TEST_F(SessionHostTest, AGrantLeavesWithTheReleaseThatMadeItPossible) {
  HostedSession& holder = connect();
  HostedSession& waiter = connect();
  HostedSession& other = connect();
  const std::string token = take(holder, "k");
  say(waiter, "l", "k", "10 30");
  end_turn();
  say(holder, "r", "k", token);
  end_turn();
  say(other, "l", "else", "0 30");  // a turn behind them, and a position
  journal_.sync();
  say(other, "l", "more", "0 30");
  end_turn();
  EXPECT_TRUE(heard(holder).ends_with("\nok\n"));
  EXPECT_TRUE(heard(waiter).starts_with("ok "));
  EXPECT_EQ(harness_.stats().hand_off.read().count(), 1U);
}

TEST_F(SessionHostTest, WhatIsSaidBehindACorkWaitsForItsOwnPosition) {
  HostedSession& client = connect();
  say(client, "l", "a", "0 30");
  end_turn();
  journal_.sync();
  say(client, "l", "b", "0 30");
  end_turn();
  const std::string first = heard(client);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 1);
  sync();
  const std::string both = heard(client);
  EXPECT_EQ(std::count(both.begin(), both.end(), '\n'), 2);
}

// A fence that was granted in vain is told to nobody, whether the journal failed before or after.
TEST_F(SessionHostTest, AFenceThatWillBeLostIsNotTold) {
  HostedSession& writer = connect();
  HostedSession& early = browse();
  HostedSession& late = browse();
  say(writer, "l", "k", "0 30");
  get(early, "/v1/fence?key=k");
  end_turn();
  journal_.set_state(Journal::State::failed);
  get(late, "/v1/fence?key=k");
  end_turn();
  EXPECT_EQ(heard(writer), "");
  EXPECT_EQ(heard(early), "");
  EXPECT_EQ(heard(late), "");
}

TEST_F(SessionHostTest, WhoWaitsHearsThatTheJournalHasFailed) {
  HostedSession& holder = connect();
  HostedSession& waiter = connect();
  HostedSession& browser = browse();
  take(holder, "k");
  say(waiter, "l", "k", "1000 30");
  post(browser, "/v1/acquire", R"({"key":"k","holder":"b","wait_ms":60000})");
  end_turn();
  EXPECT_EQ(heard(waiter), "");
  journal_.set_state(Journal::State::failed);
  end_turn();
  EXPECT_EQ(heard(waiter), "error_storage\n");
  EXPECT_TRUE(heard(browser).starts_with("HTTP/1.1 503 "));
}

// The reply to what came before is sent.
TEST_F(SessionHostTest, AGrantThatHasNotLeftIsTakenBackWhenItsPeerLeaves) {
  HostedSession& holder = connect();
  HostedSession& browser = browse();
  HostedSession& next = connect();
  const std::string token = take(holder, "k");
  post(browser, "/v1/acquire", R"({"key":"other","holder":"h"})");
  post(browser, "/v1/acquire", R"({"key":"k","holder":"h","wait_ms":60000})");
  end_turn();
  say(holder, "r", "k", token);
  end_turn();
  harness_.leave(browser);
  end_turn();
  say(next, "l", "k", "0 30");
  end_turn();
  sync();
  EXPECT_NE(heard(browser).find(R"("key":"other")"), std::string::npos);
  EXPECT_EQ(heard(browser).find(R"("key":"k")"), std::string::npos);
  EXPECT_TRUE(heard(next).starts_with("ok ")) << heard(next);
  EXPECT_EQ(harness_.stats().hand_off.read().count(), 0U);
}

TEST_F(SessionHostTest, AGrantToOneWhoseConnectionBreaksIsTakenBack) {
  HostedSession& holder = connect();
  HostedSession& browser = browse();
  HostedSession& next = connect();
  const std::string token = take(holder, "k");
  post(browser, "/v1/acquire", R"({"key":"k","holder":"h","wait_ms":60000})");
  end_turn();
  say(holder, "r", "k", token);
  end_turn();
  harness_.host().on_broken(browser);
  end_turn();
  say(next, "l", "k", "0 30");
  end_turn();
  sync();
  EXPECT_TRUE(heard(next).starts_with("ok ")) << heard(next);
}

// By whichever the host hears of it: nothing of the set is kept.
TEST_F(SessionHostTest, AGrantOfSeveralKeysIsTakenBackWhole) {
  for (const bool breaks : {false, true}) {
    HostedSession& holder = connect();
    HostedSession& browser = browse();
    HostedSession& next = connect();
    const std::string token = take(holder, "k");
    post(browser, "/v1/acquire", R"({"keys":["a","k","z"],"holder":"h","wait_ms":60000})");
    end_turn();
    say(holder, "r", "k", token);
    end_turn();
    EXPECT_EQ(harness_.engine().stats().locks_held, 3U);
    breaks ? harness_.host().on_broken(browser) : harness_.leave(browser);
    end_turn();
    EXPECT_EQ(harness_.engine().stats().locks_held, 0U);
    for (const char* key : {"a", "k", "z"}) say(next, "l", key, "0 30");
    end_turn();
    sync();
    const std::string said = heard(next);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
    EXPECT_EQ(said.find("timeout"), std::string::npos) << said;
    EXPECT_EQ(heard(browser), "");
    harness_.host().on_broken(next);
    end_turn();
  }
}

// What was told stays.
TEST_F(SessionHostTest, AGrantThatHasLeftOutlivesItsPeer) {
  HostedSession& holder = connect();
  HostedSession& browser = browse();
  const std::string token = take(holder, "k");
  post(browser, "/v1/acquire", R"({"key":"k","holder":"h","wait_ms":60000})");
  end_turn();
  say(holder, "r", "k", token);
  end_turn();
  sync();
  EXPECT_NE(heard(browser).find(R"("key":"k")"), std::string::npos);
  harness_.leave(browser);
  end_turn();
  EXPECT_EQ(harness_.engine().stats().locks_held, 1U);
}

// The answer to the release that left it with nothing waits for the journal, and so does the close.
TEST_F(SessionHostTest, WhileItDrainsWhoHoldsNothingIsClosedOnceTheLastAnswerHasLeft) {
  HostedSession& holder = connect();
  HostedSession& idle = connect();
  const std::string token = take(holder, "k");
  harness_.host().drain();
  end_turn();
  EXPECT_TRUE(idle.is_over);
  EXPECT_FALSE(holder.is_over);
  say(holder, "n", "k", token);
  say(holder, "l", "other", "0");
  end_turn();
  sync();
  EXPECT_TRUE(heard(holder).ends_with("\nok 1000\nerror_draining\n")) << heard(holder);
  EXPECT_FALSE(holder.is_over);
  say(holder, "r", "k", token);
  end_turn();
  EXPECT_TRUE(holder.is_over);
  EXPECT_TRUE(heard(holder).ends_with("\nerror_draining\n"));
  sync();
  EXPECT_TRUE(heard(holder).ends_with("\nok\n"));
}

// It was on its way when the server began to stop.
TEST_F(SessionHostTest, WhileItDrainsAGrantThatCameInTimeIsServedOn) {
  HostedSession& holder = connect();
  HostedSession& waiter = connect();
  const std::string token = take(holder, "k");
  say(waiter, "l", "k", "10 30");
  end_turn();
  say(holder, "r", "k", token);
  harness_.host().drain();
  end_turn();
  sync();
  EXPECT_TRUE(heard(waiter).starts_with("ok "));
  EXPECT_FALSE(waiter.is_over);
  EXPECT_TRUE(holder.is_over);
}

// While the journal is behind.

TEST_F(SessionHostTest, WhoWaitsForAJournalThatIsBehindTakesNoMore) {
  HostedSession& client = connect();
  HostedSession& other = connect();
  journal_.set_behind(true);
  const std::string locks = "l\na\n0 30\nl\nb\n0 30\n";
  ASSERT_EQ(harness_.host().receive(client, locks), locks.size() / 2);
  end_turn();
  EXPECT_EQ(harness_.host().receive(client, "ping\n\n\n"), 0U);
  EXPECT_TRUE(client.is_held_back);
  say(other, "ping", "", "");
  end_turn();
  EXPECT_EQ(heard(other), "ok\n");
  sync();
  EXPECT_TRUE(heard(client).starts_with("ok "));
  say(client, "l", "b", "0 30");
  EXPECT_FALSE(client.is_held_back);
}

TEST_F(SessionHostTest, WhoWaitsForAJournalThatIsNotBehindGoesOn) {
  HostedSession& client = connect();
  const std::string locks = "l\na\n0 30\nl\nb\n0 30\n";
  ASSERT_EQ(harness_.host().receive(client, locks), locks.size());
  end_turn();
  say(client, "ping", "", "");
}

TEST_F(SessionHostTest, HealthIsToldWhileTheJournalIsBehind) {
  HostedSession& browser = browse();
  journal_.set_behind(true);
  const std::string get = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(harness_.host().receive(browser, get + get), get.size());
    end_turn();
  }
  EXPECT_FALSE(browser.is_held_back);
}

// Reports, piece by piece.

TEST_F(SessionHostTest, AReportGoesOnWhenItsPeerHasTakenWhatThereWas) {
  HostedSession& client = connect();
  harness_.set_room(client, false);
  say(client, "stats", "", "");
  end_turn();
  EXPECT_EQ(heard(client), "ok {");
  EXPECT_EQ(harness_.host().receive(client, "ping\n\n\n"), 0U);
  end_turn();
  EXPECT_EQ(heard(client), "ok {");
  harness_.set_room(client, true);
  harness_.host().continue_report(client);
  end_turn();
  EXPECT_EQ(heard(client), "ok {}\n");
  say(client, "ping", "", "");
  end_turn();
  EXPECT_EQ(heard(client), "ok {}\nok\n");
}

TEST_F(SessionHostTest, ASignalNeverComesInsideAReport) {
  HostedSession& client = connect();
  HostedSession& other = connect();
  say(client, "listen", "a", "");
  end_turn();
  harness_.set_room(client, false);
  say(client, "stats", "", "");
  end_turn();
  say(other, "signal", "a", "first");
  say(other, "signal", "a", "second");
  end_turn();
  EXPECT_EQ(heard(client), "ok\nok {");
  harness_.set_room(client, true);
  harness_.host().continue_report(client);
  end_turn();
  say(other, "signal", "a", "third");
  end_turn();
  EXPECT_EQ(heard(client), "ok\nok {}\nsig a first\nsig a second\nsig a third\n");
}

TEST_F(SessionHostTest, WhoDoesNotTakeAReportIsClosedBeforeSignalsPileUp) {
  HostedSession& client = connect();
  HostedSession& other = connect();
  say(client, "listen", "a", "");
  harness_.set_room(client, false);
  say(client, "stats", "", "");
  end_turn();
  int sent = 0;
  while (!client.is_over && sent < 100) {
    say(other, "signal", "a", std::string(60'000, 'x'));
    end_turn();
    ++sent;
  }
  EXPECT_GT(sent, 10);
  EXPECT_TRUE(client.is_over);
}

TEST_F(SessionHostTest, AReportOverHttpHasALengthOrChunks) {
  HostedSession& browser = browse();
  const std::string get = "GET /v1/stats HTTP/1.1\r\nHost: a\r\n\r\n";
  harness_.report = {"{}"};
  ASSERT_EQ(harness_.host().receive(browser, get), get.size());
  end_turn();
  EXPECT_TRUE(heard(browser).ends_with("Content-Length: 3\r\n\r\n{}\n")) << heard(browser);
  harness_.report = {"{", "", "}"};
  ASSERT_EQ(harness_.host().receive(browser, get), get.size());
  end_turn();
  EXPECT_TRUE(heard(browser).ends_with(
      "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n1\r\n\n\r\n0\r\n\r\n"))
      << heard(browser);
  const std::string head = "HEAD" + get.substr(3);
  ASSERT_EQ(harness_.host().receive(browser, head + get), head.size());
  end_turn();
  EXPECT_TRUE(heard(browser).ends_with("Transfer-Encoding: chunked\r\n\r\n"));
  EXPECT_FALSE(browser.session->is_blocked());
}

TEST_F(SessionHostTest, AServerThatStopsFinishesTheReport) {
  HostedSession& browser = browse();
  const std::string get = "GET /v1/stats HTTP/1.1\r\nHost: a\r\n\r\n";
  harness_.set_room(browser, false);
  ASSERT_EQ(harness_.host().receive(browser, get), get.size());
  end_turn();
  harness_.host().drain();
  end_turn();
  EXPECT_FALSE(browser.is_over);
  harness_.set_room(browser, true);
  harness_.host().continue_report(browser);
  end_turn();
  EXPECT_TRUE(heard(browser).ends_with("0\r\n\r\n"));
  EXPECT_TRUE(browser.is_over);
}

TEST_F(SessionHostTest, AReportOfAClientThatIsGoneIsForgotten) {
  HostedSession& client = connect();
  harness_.set_room(client, false);
  say(client, "stats", "", "");
  end_turn();
  harness_.host().on_broken(client);
  harness_.set_room(client, true);
  harness_.host().continue_report(client);
  end_turn();
  EXPECT_EQ(heard(client), "ok {");
}

// What a session leaves behind has a budget in each turn.
class LargeSessionTest : public SessionHostTest {
 protected:
  static constexpr int kHolds = 20'000;

  HostedSession& connect_one_with_much() {
    HostedSession& client = connect();
    std::string lines;
    for (int i = 0; i < kHolds; ++i) lines += "sl\nmany\n0 20000 1000\n";
    while (!lines.empty()) lines.erase(0, harness_.host().receive(client, lines));
    sync();
    return client;
  }
  std::size_t held() {
    const auto status = harness_.host().context().batch.status(Kind::semaphore, "many");
    return status ? status->holders : 0;
  }
};

TEST_F(LargeSessionTest, EndsOverManyTurns) {
  HostedSession& large = connect_one_with_much();
  HostedSession& small = connect();
  take(small, "k");
  ASSERT_EQ(held(), static_cast<std::size_t>(kHolds));
  harness_.host().on_broken(large);
  harness_.host().on_broken(small);
  EXPECT_EQ(harness_.host().context().batch.status(Kind::lock, "k")->holders, 0U)
      << "who has little ends at once";
  int turns = 0;
  for (; held() > 0; ++turns) {
    ASSERT_LT(turns, 100);
    end_turn();
  }
  EXPECT_GE(turns, 4);
}

TEST_F(LargeSessionTest, IsOverWhenTheServerCutsAll) {
  HostedSession& gone = connect_one_with_much();
  harness_.host().on_broken(gone);
  EXPECT_GT(held(), 0U);
  harness_.host().cut_all();
  EXPECT_EQ(held(), 0U);
}

TEST_F(LargeSessionTest, ItsSubscriptionsGoOverManyTurns) {
  HostedSession& listener = connect();
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += "listen\na." + std::to_string(i) + "\n\n";
  ASSERT_EQ(harness_.host().receive(listener, lines), lines.size());
  end_turn();
  harness_.host().on_broken(listener);
  HostedSession& publisher = connect();
  say(publisher, "signal", "a.19999", "x");
  end_turn();
  EXPECT_EQ(heard(publisher), "ok 1\n") << "to a name that is not found";
  for (int turn = 0; turn < 10; ++turn) end_turn();
  say(publisher, "signal", "a.19999", "x");
  end_turn();
  EXPECT_EQ(heard(publisher), "ok 1\nok 0\n");
}

// Its peer has closed its side, and reads on, or has gone: the queue knows.
TEST_F(SessionHostTest, AReportOfAClientThatHasHalfClosedIsMadeAfterAllOthers) {
  harness_.makes_reports = false;
  harness_.report = {"{}"};
  HostedSession& half_closed = connect();
  HostedSession& other = connect();
  HostedSession& gone = connect();
  for (HostedSession* client : {&half_closed, &other, &gone}) say(*client, "stats", "", "");
  harness_.leave(half_closed);
  harness_.host().on_broken(gone);
  end_turn();
  EXPECT_TRUE(harness_.reports().make_some(ReportQueue::Lane::walks));
  end_turn();
  EXPECT_EQ(heard(other), "ok {}\n");
  EXPECT_EQ(heard(half_closed), "");
  EXPECT_TRUE(harness_.reports().make_some(ReportQueue::Lane::walks));
  end_turn();
  EXPECT_EQ(heard(half_closed), "ok {}\n");
  EXPECT_FALSE(harness_.reports().make_some(ReportQueue::Lane::walks));
}

TEST_F(SessionHostTest, WhenTooManyListingsWaitOneMoreIsToldSo) {
  harness_.makes_reports = false;
  for (std::size_t i = 0; i < ReportQueue::kWaitingMax; ++i) get(browse(), "/v1/locks");
  HostedSession& late = browse();
  get(late, "/v1/locks");
  end_turn();
  EXPECT_TRUE(heard(late).starts_with("HTTP/1.1 503 ")) << heard(late);
  EXPECT_NE(heard(late).find("\r\nRetry-After: 1\r\n"), std::string::npos);
  EXPECT_NE(heard(late).find(R"({"error":"busy")"), std::string::npos);
  HostedSession& monitor = browse();
  get(monitor, "/v1/overview");
  while (harness_.reports().make_some(ReportQueue::Lane::summaries)) continue;
  end_turn();
  EXPECT_TRUE(heard(monitor).starts_with("HTTP/1.1 200 ")) << heard(monitor);
}

// What others publish has a budget in each turn; what leases depend on has none.
class SignalBudgetTest : public SessionHostTest {
 protected:
  static constexpr std::string_view kSignal = "signal\na\nx\n";

  SignalBudgetTest() {
    for (int i = 0; i < 1000; ++i) {
      say(connect(), "listen", "a", "");
    }
    end_turn();
  }

  // As its connection does with what was left unread.
  std::size_t feed(HostedSession& hosted, std::string_view unread) {
    return harness_.host().receive(hosted, unread);
  }
  static std::size_t lines(const HostedSession& hosted) {
    const std::string said = heard(hosted);
    return static_cast<std::size_t>(std::count(said.begin(), said.end(), '\n'));
  }
};

TEST_F(SignalBudgetTest, AFloodIsTakenInOverManyTurns) {
  constexpr std::size_t kFlood = 1000;
  HostedSession& publisher = connect();
  HostedSession& other = connect();
  std::string unread;
  for (std::size_t i = 0; i < kFlood; ++i) unread += kSignal;
  int turns = 0;
  for (; lines(publisher) < kFlood; ++turns) {
    ASSERT_LT(turns, 1000);
    unread.erase(0, feed(publisher, unread));
    say(other, "ping", "", "");
    end_turn();
  }
  EXPECT_GE(turns, 5);  // 1,000 signals for 1,000 listeners, at most some 64,000 in each
  EXPECT_EQ(lines(other), static_cast<std::size_t>(turns));
}

TEST_F(SignalBudgetTest, PublishersTakeTurns) {
  HostedSession& greedy = connect();
  HostedSession& modest = connect();
  std::string unread;
  for (int i = 0; i < 1000; ++i) unread += kSignal;
  unread.erase(0, feed(greedy, unread));
  EXPECT_TRUE(greedy.session->is_blocked());
  say(modest, "signal", "a", "y");
  for (int turn = 0; turn < 3; ++turn) {
    end_turn();
    unread.erase(0, feed(greedy, unread));
  }
  EXPECT_EQ(heard(modest), "ok 1000\n");
  EXPECT_FALSE(unread.empty());
}

TEST_F(SignalBudgetTest, AGrantGoesBeforeSignals) {
  HostedSession& publisher = connect();
  HostedSession& holder = connect();
  HostedSession& waiter = connect();
  const std::string token = take(holder, "k");
  say(waiter, "l", "k", "10 30");
  end_turn();
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += kSignal;
  feed(publisher, flood);
  say(holder, "r", "k", token);
  journal_.sync();
  end_turn();
  sync();
  EXPECT_TRUE(heard(waiter).starts_with("ok "));
  EXPECT_LT(lines(publisher), 1000U);
}

// One signal for more subscriptions than a turn looks at.
class LargeSignalTest : public SignalBudgetTest {
 protected:
  static constexpr int kGroups = 200'000;

  LargeSignalTest() {
    HostedSession& listener = connect();
    std::string lines;
    for (int i = 0; i < kGroups; ++i) lines += "listen\na\ngroup " + std::to_string(i) + "\n";
    EXPECT_EQ(feed(listener, lines), lines.size());
    end_turn();
  }
};

TEST_F(LargeSignalTest, OneSignalGoesOutOverManyTurns) {
  HostedSession& publisher = connect();
  HostedSession& next = connect();
  HostedSession& other = connect();
  say(publisher, "signal", "a", "x");
  say(next, "signal", "a", "y");
  std::size_t turns = 0;
  for (; heard(next).empty(); ++turns) {
    ASSERT_LT(turns, 100U);
    EXPECT_TRUE(next.session->is_blocked());
    say(other, "ping", "", "");
    end_turn();
  }
  EXPECT_GE(turns, 6U);  // twice 200,000 subscriptions, at most some 64,000 in each
  EXPECT_EQ(lines(other), turns);
  EXPECT_EQ(heard(publisher), "ok 1001\n");
  EXPECT_EQ(heard(next), "ok 1001\n");
}

TEST_F(LargeSignalTest, ASignalWhosePublisherLeavesGoesOutAllTheSame) {
  HostedSession& gone = connect();
  HostedSession& next = connect();
  HostedSession& last = connect();  // in the last of all groups, and in no other audience
  say(last, "listen", "a", "the last group");
  say(gone, "signal", "a", "x");
  say(next, "signal", "b", "y");
  harness_.host().on_broken(gone);
  for (int turn = 0; turn < 100 && heard(next).empty(); ++turn) end_turn();
  EXPECT_EQ(heard(next), "ok 0\n");
  EXPECT_EQ(heard(last), "ok\nsig a x\n");
}

TEST_F(LargeSignalTest, ASignalThatWaitsIsKeptByItsSession) {
  HostedSession& publisher = connect();
  HostedSession& next = connect();
  say(publisher, "signal", "a", "x");
  say(next, "signal", "a", std::string(1'000, 'y'));
  EXPECT_EQ(next.session->buffered(), 1'001U);
  for (int turn = 0; turn < 100 && heard(next).empty(); ++turn) end_turn();
  EXPECT_EQ(next.session->buffered(), 0U);
}

// One that left before its signal could go out.
TEST_F(SignalBudgetTest, APublisherThatBreaksOffIsForgotten) {
  HostedSession& greedy = connect();
  HostedSession& gone = connect();
  HostedSession& half_closed = connect();
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += kSignal;
  feed(greedy, flood);
  say(gone, "signal", "a", "y");
  say(half_closed, "signal", "a", "z");
  harness_.host().on_broken(gone);
  harness_.leave(half_closed);
  for (int turn = 0; turn < 3; ++turn) end_turn();
  EXPECT_EQ(heard(gone), "");
  EXPECT_EQ(heard(half_closed), "ok 1000\n");
  EXPECT_TRUE(half_closed.is_over);
}

// Who is not let in.

const std::string kWrong = "GET /v1/stats HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n";
const std::string kHealth = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(PauseTest, NothingIsTakenInMeanwhile) {
  SessionHarness harness({.secret = "s"});
  SessionHost& host = harness.host();
  HostedSession& hosted = harness.open<HttpSession>();
  EXPECT_EQ(host.receive(hosted, kWrong + kHealth), kWrong.size());
  host.end_turn();
  EXPECT_EQ(hosted.session->pause(), ServerSession::Pause::failed_attempt);
  EXPECT_EQ(host.receive(hosted, kHealth), 0U);
  host.end_turn();
  EXPECT_EQ(SessionHarness::said_by(hosted), "");
  host.on_event(hosted, PauseOver{});
  host.end_turn();
  EXPECT_TRUE(SessionHarness::said_by(hosted).starts_with("HTTP/1.1 401 "));
  EXPECT_EQ(host.receive(hosted, kHealth), kHealth.size());
  EXPECT_EQ(harness.stats().http_auth_failures.value(), 1U);
}

TEST(PauseTest, TheTenthRefusalIsTheLast) {
  SessionHarness harness({.secret = "s"});
  SessionHost& host = harness.host();
  HostedSession& hosted = harness.open<HttpSession>();
  for (int i = 1; i <= 10; ++i) {
    EXPECT_FALSE(hosted.is_over);
    ASSERT_EQ(host.receive(hosted, kWrong), kWrong.size()) << i;
    host.end_turn();
    host.on_event(hosted, PauseOver{});
    host.end_turn();
  }
  EXPECT_TRUE(hosted.is_over);
  EXPECT_TRUE(SessionHarness::said_by(hosted).find("Connection: close\r\n") != std::string::npos);
}

// What is sent ahead by one that will be closed is not kept.
TEST(PauseTest, ABodyBehindItIsDropped) {
  SessionHarness harness({.secret = "s"});
  SessionHost& host = harness.host();
  HostedSession& hosted = harness.open<HttpSession>();
  host.receive(hosted, "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
  host.end_turn();
  EXPECT_EQ(host.receive(hosted, "{}"), 2U);
  host.end_turn();
  EXPECT_FALSE(hosted.is_over);
  host.on_event(hosted, PauseOver{});
  host.end_turn();
  EXPECT_TRUE(SessionHarness::said_by(hosted).starts_with("HTTP/1.1 401 "));
  EXPECT_TRUE(hosted.is_over);
}

TEST(PauseTest, OnTheLinePortItComesBeforeTheClose) {
  SessionHarness harness({.secret = "s"});
  SessionHost& host = harness.host();
  HostedSession& hosted = harness.open<LineSession>();
  host.receive(hosted, "auth\n\nx\n");
  host.end_turn();
  EXPECT_EQ(SessionHarness::said_by(hosted), "error_auth\n");
  EXPECT_FALSE(hosted.is_over);
  host.on_event(hosted, PauseOver{});
  host.end_turn();
  EXPECT_TRUE(hosted.is_over);
  EXPECT_EQ(harness.stats().line_auth_failures.value(), 1U);
}

// A client that was forgotten when auth tokens came to be asked for. It speaks the protocol.
TEST(PauseTest, WhoShowsNoAuthTokenHasFailedToo) {
  for (const std::string first : {"ping\n\n\n", "l\nk\n0\n", "junk\n\n\n"}) {
    SessionHarness harness({.secret = "s"});
    HostedSession& hosted = harness.open<LineSession>();
    harness.host().receive(hosted, first);
    harness.host().end_turn();
    EXPECT_EQ(SessionHarness::said_by(hosted), "error_auth\n");
    EXPECT_EQ(hosted.session->pause(), ServerSession::Pause::failed_attempt);
    EXPECT_EQ(harness.stats().line_auth_failures.value(), 1U);
    EXPECT_EQ(hosted.session->violation(), Violation::none);
  }
}

TEST(PauseTest, WhoSaysNothingHasNotFailed) {
  SessionHarness harness({.secret = "s"});
  HostedSession& hosted = harness.open<LineSession>();
  harness.host().on_event(hosted, ClientTimedOut{false});
  harness.host().end_turn();
  EXPECT_EQ(SessionHarness::said_by(hosted), "error_auth\n");
  EXPECT_EQ(harness.stats().line_auth_failures.value(), 0U);
}

TEST(BuffersTest, ABodyCountsAsItComes) {
  SessionHarness harness(Options{});
  SessionHost& host = harness.host();
  HostedSession& hosted = harness.open<HttpSession>();
  const std::string head = "POST /v1/acquire HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
  host.receive(hosted, head);
  EXPECT_LT(hosted.session->buffered(), 100U);
  host.receive(hosted, std::string(50'000, ' '));
  EXPECT_GE(hosted.session->buffered(), 50'000U);
  host.receive(hosted, std::string(50'000, ' '));
  EXPECT_EQ(hosted.session->buffered(), 0U);
  host.end_turn();
  EXPECT_TRUE(SessionHarness::said_by(hosted).starts_with("HTTP/1.1 400 "));
}

}  // namespace
}  // namespace lockd
