// Clients of another server, whose link breaks and comes back.
#include "server/forward/peer_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "engine/testing/forgetful_journal.h"
#include "server/session/testing/session_harness.h"

namespace lockd {
namespace {

constexpr SessionId kClient = 7;  // at the server that it is connected to

class PeerSessionTest : public testing::Test {
 protected:
  Transport& link() {
    return harness_.open(std::make_unique<PeerSession>(harness_.host().context(), ++last_link_,
                                                       Peer{.address = "10.0.0.2:1"}, "n2"));
  }
  void say(Transport& link, FrameType type, std::string_view payload) {
    std::string frame;
    write_frame(frame, type, kClient, payload);
    ASSERT_EQ(harness_.host().receive(link, frame), frame.size());
  }
  // The session that the client is here.
  SessionId come(Transport& link, SessionId before = 0, const std::string& token_name = {}) {
    say(link, FrameType::open,
        to_bytes({.session = before, .peer = "10.0.0.7:1", .token_name = token_name}));
    end_turn();
    SessionId session = 0;
    each_frame(link, [&](const Frame& frame) {
      if (frame.type == FrameType::opened) session = number_in(frame.payload).value_or(0);
    });
    return session;
  }
  // All that the client was told by this link.
  static std::string heard(const Transport& link) {
    std::string text;
    each_frame(link, [&](const Frame& frame) {
      if (frame.type == FrameType::bytes) text += frame.payload;
    });
    return text;
  }
  void end_turn() { harness_.host().end_turn(); }
  void break_off(Transport& link) { harness_.host().broken(link); }

  ForgetfulJournal journal_{ForgetfulJournal::Sync::by_hand};
  SessionHarness harness_{Options{.cluster_secret = "0123456789abcdef"}, &journal_};

 private:
  template <typename Visit>
  static void each_frame(const Transport& link, Visit visit) {
    std::string_view rest = SessionHarness::said_by(link);
    Frame frame;
    while (take_frame(rest, &frame) == FrameStatus::complete) visit(frame);
  }

  SessionId last_link_ = 0;
};

TEST_F(PeerSessionTest, AClientThatIsBackIsWhoItWas) {
  Transport& first = link();
  const SessionId session = come(first);
  break_off(first);
  end_turn();
  EXPECT_EQ(come(link(), session), session);
}

// What it was to be told before must not open the gate for what it asks now.
TEST_F(PeerSessionTest, AClientThatIsBackHearsNothingBeforeItIsDurable) {
  Transport& first = link();
  const SessionId session = come(first);
  say(first, FrameType::bytes, "l\na\n0 30\n");
  end_turn();
  break_off(first);
  end_turn();
  Transport& second = link();
  ASSERT_EQ(come(second, session), session);
  journal_.sync();
  say(second, FrameType::bytes, "l\nb\n0 30\n");
  end_turn();
  EXPECT_EQ(heard(second), "");
  journal_.sync();
  end_turn();
  EXPECT_TRUE(heard(second).starts_with("ok "));
}

// Else two sessions would be one to the host, and what the first had would end what the second has.
TEST_F(PeerSessionTest, AClientThatIsBackWhileItStillEndsIsSomebodyElse) {
  Transport& first = link();
  const SessionId session = come(first);
  for (int i = 0; i < 6000; ++i) {
    say(first, FrameType::bytes, "listen\na." + std::to_string(i) + "\n\n");
  }
  end_turn();
  break_off(first);
  Transport& second = link();
  const SessionId now = come(second, session);
  EXPECT_NE(now, session);
  for (int i = 0; i < 4; ++i) end_turn();
  say(second, FrameType::bytes, "ping\n\n\n");
  end_turn();
  EXPECT_EQ(heard(second), "ok\n");
}

TEST_F(PeerSessionTest, AnAdminIsNamedAfterWhatTheClientHasShownLast) {
  Transport& first = link();
  const SessionId session = come(first, 0, "ops");
  come(first, session, "alice");
  EXPECT_EQ(harness_.host().find(session)->session().permit()->name, "alice");
}

}  // namespace
}  // namespace lockd
