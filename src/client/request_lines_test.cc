// What the client sends is what the server's own parser understands.
#include "client/request_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "protocol/line/line_framer.h"
#include "protocol/line/line_request.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;
using std::chrono::seconds;

constexpr const char* kAnyToken = "00031517a4824c9a0123456789abcdef";

// What the server makes of it; the text outlives the views.
struct Understood {
  explicit Understood(const Result<std::string>& sent, Phase phase = Phase::open)
      : text(sent.value) {
    EXPECT_TRUE(sent) << sent.detail;
    LineFramer framer;
    const auto framed = framer.next(text);
    EXPECT_EQ(framed.status, LineFramer::Status::complete);
    EXPECT_EQ(framed.size, text.size());
    const auto parsed = parse_request(framed.lines, phase);
    EXPECT_EQ(parsed.violation, Violation::none) << text;
    request = parsed.request;
  }
  const LineRequest* operator->() const { return &request; }

  const std::string text;
  LineRequest request;
};

TEST(RequestLines, AcquireNamesAll) {
  const Understood lock(acquire_lines({.key = "my job", .wait = 10s, .lease = 30s}));
  EXPECT_EQ(lock->command, Command::acquire);
  EXPECT_EQ(lock->kind, Kind::lock);
  EXPECT_EQ(lock->key, "my job");
  EXPECT_EQ(lock->wait, 10s);
  EXPECT_EQ(lock->ttl, 30s);

  const Understood slot(
      acquire_lines({.key = "pool", .wait = 0s, .kind = Kind::semaphore, .limit = 3}));
  EXPECT_EQ(slot->kind, Kind::semaphore);
  EXPECT_EQ(slot->limit, 3u);
  EXPECT_EQ(slot->ttl, std::nullopt);

  const Understood leased(
      acquire_lines({.key = "pool", .lease = 5s, .kind = Kind::semaphore, .limit = kLimitMax}));
  EXPECT_EQ(leased->limit, kLimitMax);
  EXPECT_EQ(leased->ttl, 5s);
}

TEST(RequestLines, TheSecretOfAnAcquisitionIsTheLastWord) {
  EXPECT_EQ(*acquire_lines({.key = "k", .wait = 5s, .secret = 0xff}),
            "l\nk\n5 as=00000000000000ff\n");
  EXPECT_EQ(*enqueue_lines({.key = "k", .secret = 0x0123456789abcdef}),
            "e\nk\nas=0123456789abcdef\n");
  const Understood shared(
      acquire_lines({.key = "k", .lease = 7s, .mode = Mode::shared, .secret = 1}));
  EXPECT_EQ(shared->ttl, 7s);
  const Understood permits(enqueue_lines({.key = "k",
                                          .lease = 7s,
                                          .kind = Kind::semaphore,
                                          .limit = 3,
                                          .permits = 2,
                                          .secret = ~std::uint64_t{0}}));
  EXPECT_TRUE(permits.text.ends_with(" as=ffffffffffffffff\n"));
}

TEST(RequestLines, ACallOfTheApiIsAMethodAPathAndJson) {
  const Understood call(
      api_lines({.method = "POST", .path = "/v1/acquire", .json = R"({"key":"a b"})"}));
  EXPECT_EQ(call->command, Command::api);
  EXPECT_EQ(call->key, "POST /v1/acquire");
  EXPECT_EQ(call->text, R"({"key":"a b"})");
  const Understood bare(api_lines({.method = "GET", .path = "/v1/locks"}));
  EXPECT_EQ(bare->text, "");
}

TEST(RequestLines, TheLongestThereIsFits) {
  const std::string key(256, 'k');
  const seconds longest{9'223'372'036};
  const Understood request(acquire_lines({.key = key, .wait = longest, .lease = longest}));
  EXPECT_EQ(request->wait, longest);
  EXPECT_EQ(request->ttl, longest);
}

TEST(RequestLines, ReleaseAndRenewNameTheToken) {
  const Understood release(release_lines({.key = "my-job", .token = kAnyToken}));
  EXPECT_EQ(release->command, Command::release);
  ASSERT_TRUE(release->token);
  EXPECT_EQ(release->token->fence, 0x00031517a4824c9a);

  const Understood renew(
      renew_lines({.key = "pool", .token = kAnyToken, .kind = Kind::semaphore}, 30s));
  EXPECT_EQ(renew->command, Command::renew);
  EXPECT_EQ(renew->kind, Kind::semaphore);
  EXPECT_EQ(renew->ttl, 30s);
  EXPECT_EQ(Understood(renew_lines({.key = "k", .token = kAnyToken}, {}))->ttl, std::nullopt);
}

TEST(RequestLines, TwoPhases) {
  const Understood plain(enqueue_lines({.key = "my-job"}));
  EXPECT_EQ(plain->command, Command::enqueue);
  EXPECT_EQ(plain->ttl, std::nullopt);
  EXPECT_EQ(Understood(enqueue_lines({.key = "my-job", .lease = 7s}))->ttl, 7s);
  const Understood slot(
      enqueue_lines({.key = "pool", .lease = 7s, .kind = Kind::semaphore, .limit = 2}));
  EXPECT_EQ(slot->limit, 2u);
  EXPECT_EQ(slot->ttl, 7s);
  const Understood turn(await_lines({.key = "pool", .wait = 9s, .kind = Kind::semaphore}));
  EXPECT_EQ(turn->command, Command::await_turn);
  EXPECT_EQ(turn->wait, 9s);
}

TEST(RequestLines, HowMuchOfItsKeyARequestTakes) {
  const Understood shared(acquire_lines({.key = "k", .lease = 7s, .mode = Mode::shared}));
  EXPECT_EQ(shared->mode, Mode::shared);
  EXPECT_EQ(shared->ttl, 7s);
  EXPECT_EQ(Understood(enqueue_lines({.key = "k", .mode = Mode::shared}))->mode, Mode::shared);
  EXPECT_EQ(Understood(enqueue_lines({.key = "k"}))->mode, Mode::exclusive);
  const LineEnqueue four{
      .key = "k", .lease = 7s, .kind = Kind::semaphore, .limit = 8, .permits = 4};
  EXPECT_EQ(Understood(enqueue_lines(four))->permits, 4u);
}

TEST(RequestLines, WordsThatNotEveryServerKnowsStandLast) {
  EXPECT_EQ(*acquire_lines({.key = "k", .wait = 9s, .mode = Mode::shared}), "l\nk\n9 shared\n");
  EXPECT_EQ(*acquire_lines({.key = "k", .lease = 7s, .mode = Mode::shared}), "l\nk\n0 7 shared\n");
  EXPECT_EQ(*enqueue_lines({.key = "k", .mode = Mode::shared}), "e\nk\nshared\n");
  EXPECT_EQ(*enqueue_lines({.key = "k", .lease = 7s, .mode = Mode::shared}), "e\nk\n7 shared\n");
  const LineAcquire most{
      .key = "k", .lease = 7s, .kind = Kind::semaphore, .limit = kLimitMax, .permits = kLimitMax};
  EXPECT_EQ(*acquire_lines(most), "sl\nk\n0 2147483647 7 2147483647\n");
  EXPECT_EQ(
      *enqueue_lines({.key = "k", .lease = 7s, .kind = Kind::semaphore, .limit = 8, .permits = 4}),
      "se\nk\n8 7 4\n");
}

TEST(RequestLines, SignalsAndTheRest) {
  const Understood listen(listen_lines("orders.>", "the packers"));
  EXPECT_EQ(listen->command, Command::listen);
  EXPECT_EQ(listen->key, "orders.>");
  EXPECT_EQ(listen->text, "the packers");
  EXPECT_EQ(Understood(unlisten_lines("orders.*", ""))->text, "");
  const Understood signal(publish_lines("orders.42", " ready,  with blanks "));
  EXPECT_EQ(signal->text, " ready,  with blanks ");
  EXPECT_EQ(Understood(auth_lines("s3cret"), Phase::before_auth)->text, "s3cret");
  EXPECT_EQ(Understood(client_lines("ann@build-7:4711", "a note"))->text, "a note");
  EXPECT_EQ(Understood(client_lines("ann@build-7:4711", ""))->key, "ann@build-7:4711");
  EXPECT_EQ(Understood(std::string(kStatsLines))->command, Command::stats);
  EXPECT_EQ(Understood(std::string(kPingLines))->command, Command::ping);
  EXPECT_EQ(Understood(std::string(kBarrierLines))->command, Command::barrier);
}

TEST(RequestLines, WhatNoServerTakesIsNotSent) {
  const std::string long_key(257, 'k');
  const Result<std::string> refused[] = {
      acquire_lines({.key = ""}),
      acquire_lines({.key = "two\nlines"}),
      acquire_lines({.key = "\xff"}),
      acquire_lines({.key = long_key}),
      acquire_lines({.key = "k", .wait = -1s}),
      acquire_lines({.key = "k", .wait = 9'223'372'037s}),
      acquire_lines({.key = "k", .lease = 0s}),
      acquire_lines({.key = "k", .lease = -5s}),
      acquire_lines({.key = "k", .lease = seconds::max()}),
      acquire_lines({.key = "k", .limit = 2}),
      acquire_lines({.key = "k", .kind = Kind::semaphore, .limit = 0}),
      acquire_lines({.key = "k", .kind = Kind::semaphore, .limit = kLimitMax + 1}),
      acquire_lines({.key = "k", .lease = 7s, .permits = 2}),
      acquire_lines({.key = "k", .permits = 0}),
      acquire_lines({.key = "k", .kind = Kind::semaphore, .mode = Mode::shared}),
      acquire_lines({.key = "k", .lease = 7s, .kind = Kind::semaphore, .limit = 2, .permits = 3}),
      acquire_lines({.key = "k", .lease = 7s, .kind = Kind::semaphore, .limit = 2, .permits = 0}),
      acquire_lines({.key = "k", .kind = Kind::semaphore, .limit = 2, .permits = 2}),
      release_lines({.key = "k", .token = ""}),
      release_lines({.key = "k", .token = "two words"}),
      release_lines({.key = "k", .token = "t\nping\n\n"}),
      release_lines({.key = "k", .token = long_key}),
      renew_lines({.key = "k", .token = "t"}, 0s),
      enqueue_lines({.key = "k", .lease = 0s}),
      enqueue_lines({.key = "k", .kind = Kind::semaphore, .limit = 0}),
      enqueue_lines({.key = "k", .kind = Kind::semaphore, .mode = Mode::shared}),
      enqueue_lines({.key = "k", .kind = Kind::semaphore, .limit = 2, .permits = 2}),
      await_lines({.key = "k", .wait = -1s}),
      listen_lines("a*", ""),
      listen_lines("", ""),
      listen_lines("a", "two\nlines"),
      listen_lines("a", " blanks "),
      unlisten_lines("a.>.b", ""),
      publish_lines("a.*", "p"),
      publish_lines("a", " "),
      publish_lines("a", "two\nlines"),
      publish_lines("a", std::string(70'000, 'p')),
      api_lines({.method = "GET", .path = "/v1/two\nlines"}),
      api_lines({.method = "GET", .path = long_key}),
      api_lines({.method = "POST", .path = "/v1/acquire", .json = "{\n}"}),
      api_lines({.method = "POST", .path = "/v1/acquire", .json = std::string(65'537, ' ')}),
      auth_lines("two\nlines"),
      auth_lines(std::string(65'537, 's')),
      client_lines("", "note"),
      client_lines("two\nlines", "note"),
      client_lines("name", std::string(257, 'n')),
  };
  for (const auto& lines : refused) {
    const auto at = &lines - std::begin(refused);
    EXPECT_EQ(lines.outcome, Outcome::invalid) << at;
    EXPECT_FALSE(lines.detail.empty()) << at;
  }
}

}  // namespace
}  // namespace lockd::client
