// The leader's end of a link: another server's clients, in a real host, without sockets.
#include "cluster/link_session.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/session/line_session.h"
#include "server/session/testing/session_harness.h"

namespace lockd {
namespace {

constexpr SessionId kClient = 7;  // at the server that it is connected to
constexpr std::string_view kClusterSecret = "0123456789abcdef";

// This server leads a cluster.
class LeadingGate final : public LeaderGate {
 public:
  bool follows() const override { return false; }
  bool reaches_leader() const override { return false; }
  std::string leader_address() const override { return "-"; }
  std::string leader_http_address() const override { return "-"; }
  void confirm(Batch&) override {}
  std::unique_ptr<ServerSession> proxy(SessionContext&, ServerSession&, ProxyRequest) override {
    return nullptr;
  }
  std::unique_ptr<ServerSession> accept_link(SessionContext& context,
                                             ServerSession& client) override {
    return std::make_unique<LinkSession>(context, client, links_, on_loop_);
  }
  void tick() override {}
  void end_turn() override {}

 private:
  std::atomic<SessionId> last_{1000};
  ClusterLinks links_{last_};
  LinkSession::OnLoop on_loop_;
};

class LinkSessionTest : public testing::Test {
 protected:
  // One that has proved itself.
  HostedSession& link() {
    HostedSession& link = harness_.open<LineSession>(++last_link_, Peer{.address = "10.0.0.2:1"});
    const std::string nonce(64, '0');
    say(link, "peer\nn2/0\n" + nonce + "\n");
    end_turn();
    const std::string challenge = SessionHarness::said_by(link).substr(3, 64);
    say(link, "peer\nn2/0\n" +
                  prove(HashedSecret(kClusterSecret),
                        {.node = "n2/0", .asker_nonce = nonce, .answerer_nonce = challenge},
                        LinkEnd::asker) +
                  "\n");
    end_turn();
    frames_from_ = SessionHarness::said_by(link).find('\n', 68) + 1;
    return link;
  }
  void say(HostedSession& link, std::string_view text) {
    ASSERT_EQ(harness_.host().receive(link, text), text.size());
  }
  void say(HostedSession& link, FrameType type, std::string_view payload,
           SessionId client = kClient) {
    std::string frame;
    write_frame(frame, type, client, payload);
    say(link, frame);
  }
  void say_number(HostedSession& link, FrameType type, std::uint64_t number) {
    std::string frame;
    write_frame(frame, type, kClient, number_bytes(number));
    say(link, frame);
  }
  void come(HostedSession& link, const Opening& opening = {.peer = "10.0.0.7:1"},
            SessionId client = kClient) {
    say(link, FrameType::open, to_bytes(opening), client);
  }
  // All that a client was sent by this link.
  std::string heard(const HostedSession& link, SessionId client = kClient) const {
    std::string text;
    each_frame(link, [&](const Frame& frame) {
      if (frame.type == FrameType::bytes && frame.client == client) text += frame.payload;
    });
    return text;
  }
  int closed(const HostedSession& link) const {
    int count = 0;
    each_frame(link, [&](const Frame& frame) { count += frame.type == FrameType::close; });
    return count;
  }
  void end_turn() { harness_.host().end_turn(); }
  bool is_held(std::string_view key) {
    HostedSession& other = harness_.open<LineSession>(++last_link_);
    say(other, "l\n" + std::string(key) + "\n0 60\n");
    end_turn();
    const bool held = SessionHarness::said_by(other).starts_with("timeout");
    harness_.host().cut(other);
    end_turn();
    return held;
  }

  LeadingGate gate_;
  SessionHarness harness_{Options{.cluster_secret = kClusterSecret}, nullptr, gate_};
  SessionId last_link_ = 0;

 private:
  template <typename Visit>
  void each_frame(const HostedSession& link, Visit visit) const {
    std::string_view rest = SessionHarness::said_by(link);
    rest.remove_prefix(frames_from_);
    Frame frame;
    while (take_frame(rest, &frame) == FrameStatus::complete) visit(frame);
  }

  std::size_t frames_from_ = 0;
};

TEST_F(LinkSessionTest, FramesOfAChannelAreExecutedInOrder) {
  HostedSession& link = this->link();
  come(link);
  say(link, FrameType::bytes, "l\nk\n0 60\nl\nk");
  say(link, FrameType::bytes, "\n0 60\nping\n\n\n");
  end_turn();
  const std::string text = heard(link);
  EXPECT_TRUE(text.starts_with("ok ")) << text;
  EXPECT_TRUE(text.ends_with("\ntimeout\nok\n")) << text;
}

TEST_F(LinkSessionTest, CloseReleasesAndDetachKeeps) {
  for (const FrameType how : {FrameType::close, FrameType::detach}) {
    HostedSession& link = this->link();
    come(link);
    say(link, FrameType::bytes, "l\nk\n0 60\n");
    end_turn();
    EXPECT_TRUE(is_held("k"));
    say(link, how, {});
    end_turn();
    EXPECT_EQ(is_held("k"), how == FrameType::detach);
    harness_.host().on_broken(link);
    end_turn();
  }
}

TEST_F(LinkSessionTest, BrokenLinkKeepsWhatIsHeldAndEndsWhatWaits) {
  HostedSession& link = this->link();
  come(link);
  say(link, FrameType::bytes, "l\nk\n0 60\n");
  come(link, {.peer = "10.0.0.7:2"}, kClient + 1);
  say(link, FrameType::bytes, "l\nk\n60 60\n", kClient + 1);
  end_turn();
  EXPECT_EQ(harness_.engine().stats().lock_waiters, 1U);
  harness_.host().on_broken(link);
  end_turn();
  EXPECT_EQ(harness_.engine().stats().lock_waiters, 0U);
  EXPECT_TRUE(is_held("k"));
}

TEST_F(LinkSessionTest, EndOfInputEndsAWaitEvenWithLinesBehindIt) {
  HostedSession& link = this->link();
  come(link);
  say(link, FrameType::bytes, "l\nk\n0 60\nl\nk\n60 60\nping\n\n\n");
  end_turn();
  EXPECT_EQ(harness_.engine().stats().lock_waiters, 1U);
  say_number(link, FrameType::end, 5);  // bytes that have yet to come
  end_turn();
  EXPECT_EQ(harness_.engine().stats().lock_waiters, 0U);
  EXPECT_EQ(closed(link), 1);
}

TEST_F(LinkSessionTest, WhatIsStillToComeBehindTheEndIsAnswered) {
  HostedSession& link = this->link();
  come(link);
  say(link, FrameType::bytes, "ping\n\n");
  say_number(link, FrameType::end, 7 + 1);
  end_turn();
  EXPECT_EQ(closed(link), 0);
  say(link, FrameType::bytes, "\nping\n\n\n");
  end_turn();
  EXPECT_EQ(heard(link), "ok\nok\n");
  EXPECT_EQ(closed(link), 1);
}

TEST_F(LinkSessionTest, SendsNoMoreThanTheWindow) {
  HostedSession& link = this->link();
  come(link);
  std::string pings;
  while (pings.size() < 2 * kChannelWindow) pings += "ping\n\n\n";
  const std::size_t replies = pings.size() / 7 * 3;
  std::string_view rest = pings;
  while (!rest.empty()) {
    say(link, FrameType::bytes, rest.substr(0, 30'000));
    rest.remove_prefix(std::min<std::size_t>(rest.size(), 30'000));
    end_turn();
  }
  ASSERT_LT(replies, kChannelWindow);
  EXPECT_EQ(heard(link).size(), replies);
  for (int i = 0; i < 2; ++i) {
    say(link, FrameType::bytes, pings.substr(0, 70'000));
    end_turn();
  }
  EXPECT_EQ(heard(link).size(), kChannelWindow);
  say_number(link, FrameType::taken, 1000);
  end_turn();
  EXPECT_EQ(heard(link).size(), kChannelWindow + 1000);
}

TEST_F(LinkSessionTest, ClientIsTheOneThatItSaidItWasAndHasTheRightsOfItsName) {
  HostedSession& link = this->link();
  come(link, {.names_itself = true, .peer = "10.0.0.7:1", .name = "ann", .principal = "unknown"});
  say(link, FrameType::bytes, "l\nk\n0 60\nping\n\n\n");
  end_turn();
  EXPECT_EQ(heard(link), "error_denied\nok\n");
  bool found = false;
  for (const ClientStatus& one : harness_.clients().list_some(0, 100)) {
    if (one.forwarded_as != "n2/7") continue;
    found = true;
    EXPECT_EQ(one.client->name, "ann");
    EXPECT_EQ(one.token_name, "unknown");
    EXPECT_EQ(one.peer, "10.0.0.7:1");
  }
  EXPECT_TRUE(found);
}

TEST_F(LinkSessionTest, HttpChannelIsOneRequestAndClosesWithItsReply) {
  HostedSession& link = this->link();
  come(link, {.is_http = true, .is_loopback = true, .peer = "127.0.0.1:1"});
  say(link, FrameType::bytes,
      "POST /v1/acquire HTTP/1.1\r\nHost: evil.example\r\nConnection: keep-alive\r\n"
      "Content-Length: 26\r\n\r\n{\"key\":\"k\",\"holder\":\"ann\"}");
  end_turn();
  const std::string reply = heard(link);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
  EXPECT_EQ(reply.find("Connection: close"), std::string::npos) << reply;
  EXPECT_EQ(closed(link), 1);
}

TEST_F(LinkSessionTest, SecondOpenOfOneClientBreaksTheLink) {
  HostedSession& link = this->link();
  come(link);
  std::string frame;
  write_frame(frame, FrameType::open, kClient, to_bytes({.peer = "10.0.0.7:1"}));
  harness_.host().receive(link, frame);
  end_turn();
  EXPECT_TRUE(link.is_over);
}

TEST_F(LinkSessionTest, WrongProofIsAFailedAuthentication) {
  HostedSession& link = harness_.open<LineSession>(++last_link_);
  say(link, "peer\nn2/0\n" + std::string(64, '0') + "\npeer\nn2/0\n" + std::string(64, '1') + "\n");
  end_turn();
  EXPECT_TRUE(SessionHarness::said_by(link).ends_with("\nerror_auth\n"));
  EXPECT_EQ(harness_.stats().line_auth_failures.value(), 1U);
}

}  // namespace
}  // namespace lockd
