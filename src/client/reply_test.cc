#include "client/reply.h"

#include <gtest/gtest.h>

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

constexpr const char* kToken = "00031517a4824c9a0123456789abcdef";

TEST(Reply, WordsHaveOutcomes) {
  const struct {
    const char* reply;
    Outcome outcome;
  } cases[] = {
      {"ok", Outcome::ok},
      {"ok 12", Outcome::ok},
      {"acquired t 30", Outcome::ok},
      {"queued", Outcome::queued},
      {"timeout", Outcome::timeout},
      {"error", Outcome::refused},
      {"error_already_enqueued", Outcome::already_enqueued},
      {"error_not_enqueued", Outcome::not_enqueued},
      {"error_lease_expired", Outcome::lease_expired},
      {"error_max_locks", Outcome::max_locks},
      {"error_max_waiters", Outcome::max_waiters},
      {"error_max_holds", Outcome::max_holds},
      {"error_limit_mismatch", Outcome::limit_mismatch},
      {"error_mode_mismatch", Outcome::mode_mismatch},
      {"error_permits_mismatch", Outcome::permits_mismatch},
      {"error_storage", Outcome::storage},
      {"error_not_leader 10.0.0.1:6388", Outcome::not_leader},
      {"error_denied", Outcome::denied},
      {"error_draining", Outcome::draining},
      {"error_auth", Outcome::unauthorized},
      {"error_of_a_later_version", Outcome::refused},
      {"errors", Outcome::refused},
      {"", Outcome::garbled},
      {"OK", Outcome::garbled},
      {"okay", Outcome::garbled},
      {" ok", Outcome::garbled},
      {"HTTP/1.1 400 Bad Request", Outcome::garbled},
  };
  for (const auto& [reply, outcome] : cases) EXPECT_EQ(status_of(reply).outcome, outcome) << reply;
}

TEST(Reply, NamesTheLeader) {
  EXPECT_EQ(status_of("error_not_leader 10.0.0.1:6388").leader, "10.0.0.1:6388");
  EXPECT_EQ(status_of("error_not_leader -").leader, "");
  EXPECT_EQ(status_of("error_not_leader").leader, "");
}

TEST(Reply, WhatMakesNoSenseIsShownSafely) {
  EXPECT_EQ(status_of("\x1b[31mred").detail, "the server's answer makes no sense: \"?[31mred\"");
  EXPECT_LT(status_of(std::string(100'000, 'x')).detail.size(), 200u);
  EXPECT_EQ(status_of("HTTP/1.1 400 Bad Request").detail, kIsHttpPort);
}

TEST(Reply, AGrantHasATokenItsFenceAndALease) {
  const auto grant = grant_of(std::string("ok ") + kToken + " 30", {});
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->token, kToken);
  EXPECT_EQ(grant->fence, 867616218565786u);
  EXPECT_EQ(grant->lease, 30s);
  EXPECT_TRUE(grant_of(std::string("acquired ") + kToken + " 30 and what comes later", {}));
}

TEST(Reply, ALeaseIsNeverLongerThanWhatWasAskedFor) {
  EXPECT_EQ(grant_of("ok t 30", 20s)->lease, 20s);
  EXPECT_EQ(grant_of("ok t 10", 20s)->lease, 10s);
  EXPECT_EQ(renewal_of("ok 30", 20s)->remaining, 20s);
  EXPECT_EQ(renewal_of("ok 10", 20s)->remaining, 10s);
  EXPECT_EQ(renewal_of("ok 10", {})->remaining, 10s);
}

TEST(Reply, ARenewalThatWasRoundedDownToNothingIsOneSecond) {
  EXPECT_EQ(renewal_of("ok 0", 1s)->remaining, 1s);
}

TEST(Reply, AGrantThatLacksSomethingIsNone) {
  for (const char* reply : {"ok", "ok ", "ok t", "ok t ", "ok  30", "ok t 0", "ok t -1", "ok t 3O",
                            "ok t 99999999999999999999"}) {
    EXPECT_EQ(grant_of(reply, {}).outcome, Outcome::garbled) << reply;
  }
  EXPECT_EQ(grant_of("ok " + std::string(300, 'a') + " 30", {}).outcome, Outcome::garbled);
  EXPECT_EQ(grant_of("timeout", {}).outcome, Outcome::timeout);
  EXPECT_EQ(grant_of("queued", {}).outcome, Outcome::queued);
}

TEST(Reply, ARenewalThatLacksItsSecondsIsNone) {
  for (const char* reply : {"ok", "ok x", "ok -1", "ok 1.5"}) {
    EXPECT_EQ(renewal_of(reply, {}).outcome, Outcome::garbled) << reply;
  }
  EXPECT_EQ(renewal_of("error", {}).outcome, Outcome::refused);
}

TEST(Reply, TheFenceIsTheTokensFirstHalf) {
  EXPECT_EQ(fence_of("ffffffffffffffff0000000000000000"), UINT64_MAX);
  EXPECT_EQ(fence_of("000000000000000Aanything"), 10u);
  for (const char* token : {"", "123", "0123456789abcde", "0x23456789abcdef0", "-123456789abcdef0",
                            "token-of-another-server-entirely"}) {
    EXPECT_EQ(fence_of(token), 0u) << token;
  }
}

TEST(Reply, CountsAndStatistics) {
  EXPECT_EQ(*count_of("ok 17"), 17u);
  EXPECT_EQ(count_of("ok").outcome, Outcome::garbled);
  EXPECT_EQ(count_of("ok -1").outcome, Outcome::garbled);
  EXPECT_EQ(*stats_of("ok {\"connections\": 1}"), "{\"connections\": 1}");
  EXPECT_EQ(stats_of("ok").outcome, Outcome::garbled);
  EXPECT_EQ(stats_of("ok 17").outcome, Outcome::garbled);
}

TEST(Reply, APushIsNoReply) {
  EXPECT_TRUE(is_signal("sig orders.42 ready"));
  EXPECT_FALSE(is_signal("sigh"));
  const Signal signal = signal_of("sig orders.42 ready,  with blanks ");
  EXPECT_EQ(signal.channel, "orders.42");
  EXPECT_EQ(signal.payload, "ready,  with blanks ");
  EXPECT_TRUE(is_event("event {\"event\":\"granted\"}"));
  EXPECT_FALSE(is_event("events"));
  EXPECT_EQ(event_of("event {\"key\":\"a b\"}"), "{\"key\":\"a b\"}");
}

TEST(Reply, ALossNamesTheTokenAndTheCause) {
  EXPECT_TRUE(is_loss("lost "));
  EXPECT_FALSE(is_loss("lost"));
  EXPECT_FALSE(is_loss("losts t expired k"));
  const Loss expired = loss_of("lost t expired revoked k");
  EXPECT_EQ(expired.token, "t");
  EXPECT_EQ(expired.cause, Loss::Cause::expired);
  EXPECT_EQ(loss_of("lost t revoked k").cause, Loss::Cause::revoked);
  EXPECT_EQ(loss_of("lost t REVOKED k").cause, Loss::Cause::unknown);
  EXPECT_EQ(loss_of("lost t").token, "t");
  EXPECT_EQ(loss_of("lost ").token, "");
  EXPECT_EQ(status_of(expired).outcome, Outcome::lost);
}

TEST(Reply, AnAnswerOfTheApiHasAStatusAndJson) {
  const auto answer = api_answer_of("ok 409 {\"error\":\"held\", \"holder\":\"a b\"}");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 409u);
  EXPECT_EQ(answer->json, "{\"error\":\"held\", \"holder\":\"a b\"}");
  EXPECT_EQ(api_answer_of("error").outcome, Outcome::refused);
  EXPECT_EQ(api_answer_of("error_auth").outcome, Outcome::unauthorized);
  for (const char* reply :
       {"ok", "ok 200", "ok 200 ", "ok {}", "ok 99 {}", "ok 600 {}", "200 {}"}) {
    EXPECT_EQ(api_answer_of(reply).outcome, Outcome::garbled) << reply;
  }
}

}  // namespace
}  // namespace lockd::client
