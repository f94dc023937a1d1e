// The read timeout: who is closed for silence, and who never is.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr auto kReadTimeout = 600ms;

Options impatient_options() {
  Options options = line_options();
  options.read_timeout = kReadTimeout;
  return options;
}

// A client and the reply to its first request. A machine that stalls may be too late with it: then
// another tries.
std::pair<LineClient, std::string> ask_in_time(LineServer& server, std::string_view request) {
  const auto deadline = SteadyClock::now() + LineClient::kPatience;
  for (;;) {
    const auto began = SteadyClock::now();
    LineClient client = server.connect();
    std::string reply = client.ask(request);
    const auto now = SteadyClock::now();
    const bool closed = reply == "error" || reply.starts_with('<');
    if (!closed || now - began < kReadTimeout / 2 || now > deadline) {
      return {std::move(client), std::move(reply)};
    }
  }
}

void expect_closed_for_silence(LineClient& client, SteadyClock::time_point silent_since) {
  EXPECT_EQ(client.read_line(), "error");
  EXPECT_GE(SteadyClock::now(), silent_since + kReadTimeout);
  EXPECT_EQ(client.read_line(), kEnd);
}

TEST(LineSilence, WhoOwnsNothingIsClosed) {
  LineServer server(impatient_options());
  LineClient never = server.connect();
  const auto asked = SteadyClock::now();
  auto [client, reply] = ask_in_time(server, request("ping", "", ""));
  EXPECT_EQ(reply, "ok");
  expect_closed_for_silence(client, asked);
  EXPECT_EQ(never.read_line(), "error");
  EXPECT_EQ(never.read_line(), kEnd);
}

TEST(LineSilence, WhoHasReleasedIsClosed) {
  LineServer server(impatient_options());
  auto [client, grant] = ask_in_time(server, request("l", "k", "0"));
  const std::string token = token_of(grant);
  const auto asked = SteadyClock::now();
  EXPECT_EQ(client.ask(request("r", "k", token)), "ok");
  expect_closed_for_silence(client, asked);
}

// Or it would be closed the moment that its lease ends, and never hear why.
TEST(LineSilence, WhoseLeaseHasEndedIsSilentFromThenOn) {
  LineServer server(impatient_options());
  const auto asked = SteadyClock::now();
  auto [client, grant] = ask_in_time(server, request("l", "k", "0 2"));
  EXPECT_EQ(masked(grant), "ok <token> 2");
  expect_closed_for_silence(client, asked + 2s);
}

TEST(LineSilence, WhoListensNoMoreIsClosed) {
  LineServer server(impatient_options());
  auto [client, reply] = ask_in_time(server, request("listen", "a", ""));
  EXPECT_EQ(reply, "ok");
  const auto asked = SteadyClock::now();
  EXPECT_EQ(client.ask(request("unlisten", "a", "")), "ok");
  EXPECT_EQ(client.read_line(), "error");
  EXPECT_GE(SteadyClock::now(), asked + kReadTimeout);
}

TEST(LineSilence, HalfARequestIsClosedWhateverItOwns) {
  LineServer server(impatient_options());
  auto [client, grant] = ask_in_time(server, request("l", "k", "0"));
  EXPECT_EQ(masked(grant), "ok <token> 33");
  const auto asked = SteadyClock::now();
  client.send("ping\n\n");
  expect_closed_for_silence(client, asked);
}

// Sends a byte now and then until the server ends it; the request is never whole.
void expect_trickle_to_end(LineClient& client, SteadyClock::time_point began) {
  std::atomic<bool> over{false};
  std::thread trickle([&] {
    while (!over && client.send("x")) std::this_thread::sleep_for(20ms);
  });
  const std::string reply = client.read_line();
  const auto now = SteadyClock::now();
  over = true;
  trickle.join();
  EXPECT_EQ(reply, "error");
  EXPECT_GE(now, began + kReadTimeout);
}

TEST(LineSilence, AByteNowAndThenDoesNotProlongARequest) {
  LineServer server(impatient_options());
  auto [nobody, pong] = ask_in_time(server, request("ping", "", ""));
  ASSERT_EQ(pong, "ok");
  auto began = SteadyClock::now();
  nobody.send("signal\na\n");
  expect_trickle_to_end(nobody, began);

  auto [holder, grant] = ask_in_time(server, request("l", "k", "0"));
  ASSERT_EQ(masked(grant), "ok <token> 33");
  began = SteadyClock::now();
  holder.send("signal\na\n");
  expect_trickle_to_end(holder, began);
}

// The time of each request begins with its own first byte, also when that came with the last byte
// of the one before.
TEST(LineSilence, RequestsThatOverlapHaveTheirTimeEach) {
  LineServer server(impatient_options());
  auto [client, grant] = ask_in_time(server, request("l", "k", "0"));
  ASSERT_EQ(masked(grant), "ok <token> 33");
  auto last = SteadyClock::now();
  client.send("pi");
  for (const auto began = last; last < began + 3 * kReadTimeout;) {
    std::this_thread::sleep_for(50ms);
    client.send("ng\n\n\npi");
    const std::string reply = client.read_line();
    const auto now = SteadyClock::now();
    if (now - last > kReadTimeout / 2) GTEST_SKIP() << "the machine is too slow to tell";
    ASSERT_EQ(reply, "ok");
    last = now;
  }
}

// Half a request behind one that blocks begins when that has its reply.
TEST(LineSilence, TimeBehindARequestThatBlocksDoesNotCount) {
  LineServer server(impatient_options());
  auto [holder, grant] = ask_in_time(server, request("l", "k", "0"));
  ASSERT_EQ(masked(grant), "ok <token> 33");
  const auto asked = SteadyClock::now();
  auto [waiter, reply] = ask_in_time(server, request("l", "k", "2") + "signal\na\n");
  ASSERT_EQ(reply, "timeout");
  EXPECT_GE(SteadyClock::now(), asked + 2s);
  expect_trickle_to_end(waiter, asked + 2s);
}

TEST(LineSilence, WhoHoldsWaitsOrListensIsNot) {
  LineServer server(impatient_options());
  auto [holder, grant] = ask_in_time(server, request("l", "k", "0"));
  ASSERT_EQ(masked(grant), "ok <token> 33");
  // In one segment: when the first has its reply, the second has begun.
  auto [waiter, pong] = ask_in_time(server, request("ping", "", "") + request("l", "k", "60"));
  ASSERT_EQ(pong, "ok");
  auto [enqueued, place] = ask_in_time(server, request("e", "k", ""));
  ASSERT_EQ(place, "queued");
  auto [acquired, turn] = ask_in_time(server, request("e", "j", ""));
  ASSERT_EQ(masked(turn), "acquired <token> 33");
  auto [listener, listens] = ask_in_time(server, request("listen", "a", ""));
  ASSERT_EQ(listens, "ok");
  auto [semaphore, permit] = ask_in_time(server, request("sl", "k", "0 1"));
  ASSERT_EQ(masked(permit), "ok <token> 33");
  std::this_thread::sleep_for(2s);
  EXPECT_EQ(waiter.read_line(1ms), kSilence);
  for (LineClient* client : {&holder, &enqueued, &acquired, &listener, &semaphore}) {
    EXPECT_EQ(client->ask(request("ping", "", "")), "ok");
  }
}

// The time between two requests does not begin before the first has its reply.
TEST(LineSilence, ALongWaitIsNoSilence) {
  Options options = line_options();
  options.read_timeout = 2s;
  LineServer server(options);
  auto [holder, grant] = ask_in_time(server, request("l", "k", "0"));
  ASSERT_EQ(masked(grant), "ok <token> 33");
  const auto asked = SteadyClock::now();
  auto [waiter, reply] = ask_in_time(server, request("l", "k", "3"));
  ASSERT_EQ(reply, "timeout");
  std::this_thread::sleep_for(300ms);
  waiter.send(request("ping", "", ""));
  // When the reply was sent is not known, but that it was not before the 3 s were over.
  if (SteadyClock::now() - asked > 3s + 1s) GTEST_SKIP() << "the machine is too slow to tell";
  EXPECT_EQ(waiter.read_line(), "ok");
}

}  // namespace
}  // namespace lockd
