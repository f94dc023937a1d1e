#include "protocol/line/line_reply.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr Command kAcquire = Command::acquire;
constexpr Command kRelease = Command::release;
constexpr Command kRenew = Command::renew;
constexpr Command kEnqueue = Command::enqueue;
constexpr Command kAwait = Command::await_turn;

constexpr Command kCommands[] = {kAcquire, kRelease, kRenew, kEnqueue, kAwait};

constexpr LineToken kGrantToken{0x1a3f217b3c4d8, 0x7f3c1f2b3e9a8d6e};

// One line, as the function appends it to what is there already.
template <typename Write, typename... Args>
std::string line(Write write, const Args&... args) {
  std::string out = "before\n";
  write(out, args...);
  EXPECT_TRUE(out.starts_with("before\n"));
  return out.substr(7);
}

TEST(LineReply, AGrantHasThreeFields) {
  const std::string_view digits = "0001a3f217b3c4d87f3c1f2b3e9a8d6e";
  const struct {
    Command command;
    Duration ttl;
    const char* status;
    const char* seconds;
  } cases[] = {
      {kAcquire, 33s, "ok", "33"},
      {kAwait, 1s, "ok", "1"},
      {kEnqueue, 60s, "acquired", "60"},
      {kAcquire, 9'223'372'036s, "ok", "9223372036"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(line(write_grant, c.command, kGrantToken, c.ttl),
              std::string(c.status) + ' ' + std::string(digits) + ' ' + c.seconds + '\n');
  }
}

TEST(LineReply, RemainingSecondsAreRoundedUp) {
  const struct {
    Duration remaining;
    const char* text;
  } cases[] = {
      {-1s, "ok 0\n"},
      {0s, "ok 0\n"},
      {1ns, "ok 1\n"},
      {999'999'999ns, "ok 1\n"},
      {1s, "ok 1\n"},
      {1s + 1ns, "ok 2\n"},
      {33s - 1ns, "ok 33\n"},
      {33s, "ok 33\n"},
      {9'223'372'036s, "ok 9223372036\n"},
      {kDurationMax, "ok 9223372037\n"},
  };
  for (const auto& c : cases) EXPECT_EQ(line(write_remaining, c.remaining), c.text);
}

TEST(LineReply, OtherLines) {
  EXPECT_EQ(line(write_status, kStatusOk), "ok\n");
  EXPECT_EQ(line(write_status, kStatusError), "error\n");
  EXPECT_EQ(line(write_status, kStatusErrorAuth), "error_auth\n");
  EXPECT_EQ(line(write_status, kStatusErrorDraining), "error_draining\n");
  EXPECT_EQ(line(write_count, 0u), "ok 0\n");
  EXPECT_EQ(line(write_count, 42u), "ok 42\n");
  EXPECT_EQ(line(write_count, UINT64_MAX), "ok 18446744073709551615\n");
  EXPECT_EQ(line(write_stats, R"({"connections":2})", true, true), "ok {\"connections\":2}\n");
}

TEST(LineReply, WritesIntoTheRoomThereIs) {
  std::string out;
  out.reserve(1'000);
  const char* const place = out.data();
  write_status(out, kStatusOk);
  write_grant(out, kEnqueue, kGrantToken, kDurationMax);
  write_remaining(out, kDurationMax);
  write_count(out, UINT64_MAX);
  write_stats(out, "{}", true, true);
  EXPECT_EQ(out.data(), place);
}

// The statuses of the five commands in the order of kCommands; the same word for all when only the
// first is given.
struct StatusCase {
  Outcome outcome;
  std::string_view status;
  std::string_view release{}, renew{}, enqueue{}, await{};

  std::string_view of(Command command) const {
    if (release.empty()) return status;
    switch (command) {
      case kRelease: return release;
      case kRenew: return renew;
      case kEnqueue: return enqueue;
      case kAwait: return await;
      default: return status;
    }
  }
};

constexpr StatusCase kPlain[] = {
    {Outcome::ok, "ok", "ok", "ok", "acquired", "ok"},
    {Outcome::held, "timeout"},
    {Outcome::timeout, "timeout"},
    {Outcome::cancelled, "error"},
    {Outcome::closed, "error"},
    {Outcome::not_holder, "error"},
    {Outcome::stale, "error"},
    {Outcome::expired, "error"},
    {Outcome::max_keys, "error_max_locks"},
    {Outcome::max_waiters, "error_max_waiters"},
    {Outcome::max_holds, "error_max_holds"},
    {Outcome::max_client_holds, "error_max_holds"},
    {Outcome::limit_mismatch, "error_limit_mismatch"},
    {Outcome::mode_mismatch, "error_mode_mismatch"},
    {Outcome::permits_mismatch, "error_permits_mismatch"},
    {Outcome::already_enqueued, "error"},
    {Outcome::not_enqueued, "error"},
    {Outcome::storage, "error_storage"},
    {Outcome::not_leader, "error_not_leader -"},
    {Outcome::fences_exhausted, "error"},
    {Outcome::invalid_key, "error"},
    {Outcome::invalid_holder, "error"},
    {Outcome::invalid_ttl, "error"},
    {Outcome::invalid_wait, "error"},
    {Outcome::invalid_limit, "error"},
    {Outcome::invalid_mode, "error"},
    {Outcome::invalid_permits, "error"},
    {Outcome::invalid_set, "error"},
    {Outcome::invalid_note, "error"},
};

constexpr StatusCase kDetailed[] = {
    {Outcome::already_enqueued, "error_already_enqueued"},
    {Outcome::not_enqueued, "error_not_enqueued"},
    {Outcome::expired, "error", "error", "error", "error", "error_lease_expired"},
};

const StatusCase& detailed_case(const StatusCase& plain) {
  for (const StatusCase& c : kDetailed) {
    if (c.outcome == plain.outcome) return c;
  }
  return plain;
}

TEST(LineReply, ALossNamesItsKeyLast) {
  std::string out = "ok\n";
  write_lost(out, {.fence = 7, .secret = 0xab}, "revoked", "my job  of today");
  EXPECT_EQ(out, "ok\nlost 000000000000000700000000000000ab revoked my job  of today\n");
}

TEST(LineReply, EveryOutcomeHasItsStatus) {
  for (const StatusCase& c : kPlain) {
    for (const Command command : kCommands) {
      const auto what = [&] {
        return "outcome " + std::to_string(static_cast<int>(c.outcome)) + " of command " +
               std::to_string(static_cast<int>(command));
      };
      EXPECT_EQ(status_of(command, c.outcome, false), c.of(command)) << what();
      EXPECT_EQ(status_of(command, c.outcome, true), detailed_case(c).of(command)) << what();
    }
  }
  EXPECT_EQ(status_of(kEnqueue, Outcome::queued, false), "queued");
  EXPECT_EQ(status_of(kEnqueue, Outcome::queued, true), "queued");
}

}  // namespace
}  // namespace lockd
