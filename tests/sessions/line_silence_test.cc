// The read timeout: who is closed for silence, and who never is.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "sessions/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using Clock = LineClient::Clock;

constexpr auto kReadTimeout = 600ms;

Options impatient_options() {
  Options options = line_options();
  options.read_timeout = kReadTimeout;
  return options;
}

void expect_closed_for_silence(LineClient& client, Clock::time_point silent_since) {
  EXPECT_EQ(client.read_line(), "error");
  EXPECT_GE(Clock::now(), silent_since + kReadTimeout);
  EXPECT_EQ(client.read_line(), kEnd);
}

TEST(LineSilence, WhoOwnsNothingIsClosed) {
  LineServer server(impatient_options());
  LineClient never = server.connect();
  LineClient client = server.connect();
  const auto asked = Clock::now();
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
  expect_closed_for_silence(client, asked);
  EXPECT_EQ(never.read_line(), "error");
  EXPECT_EQ(never.read_line(), kEnd);
}

TEST(LineSilence, WhoHasReleasedIsClosed) {
  LineServer server(impatient_options());
  LineClient client = server.connect();
  const std::string token = token_of(client.ask(request("l", "k", "0")));
  const auto asked = Clock::now();
  EXPECT_EQ(client.ask(request("r", "k", token)), "ok");
  expect_closed_for_silence(client, asked);
}

TEST(LineSilence, WhoListensNoMoreIsClosed) {
  LineServer server(impatient_options());
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("listen", "a", "")), "ok");
  const auto asked = Clock::now();
  EXPECT_EQ(client.ask(request("unlisten", "a", "")), "ok");
  EXPECT_EQ(client.read_line(10s), "error");
  EXPECT_GE(Clock::now(), asked + kReadTimeout);
}

TEST(LineSilence, HalfARequestIsClosedWhateverItOwns) {
  LineServer server(impatient_options());
  LineClient client = server.connect();
  EXPECT_EQ(masked(client.ask(request("l", "k", "0"))), "ok <token> 33");
  const auto asked = Clock::now();
  client.send("ping\n\n");
  expect_closed_for_silence(client, asked);
}

TEST(LineSilence, WhoHoldsWaitsOrListensIsNot) {
  LineServer server(impatient_options());
  LineClient holder = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  LineClient waiter = server.connect();
  waiter.send(request("l", "k", "60"));
  LineClient enqueued = server.connect();
  ASSERT_EQ(enqueued.ask(request("e", "k", "")), "queued");
  LineClient acquired = server.connect();
  ASSERT_EQ(masked(acquired.ask(request("e", "j", ""))), "acquired <token> 33");
  LineClient listener = server.connect();
  ASSERT_EQ(listener.ask(request("listen", "a", "")), "ok");
  LineClient semaphore = server.connect();
  ASSERT_EQ(masked(semaphore.ask(request("sl", "k", "0 1"))), "ok <token> 33");
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
  LineClient holder = server.connect();
  LineClient waiter = server.connect();
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  ASSERT_EQ(waiter.ask(request("l", "k", "3")), "timeout");
  const auto told = Clock::now();
  std::this_thread::sleep_for(300ms);
  waiter.send(request("ping", "", ""));
  if (Clock::now() - told > 1s) GTEST_SKIP() << "the machine is too slow to tell";
  EXPECT_EQ(waiter.read_line(), "ok");
}

}  // namespace
}  // namespace lockd
