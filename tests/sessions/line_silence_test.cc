// The deadlines of a peer, once each over a socket: PeerDeadlinesTest has the rules.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/line_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// Over TLS the handshake has to be done in time, too.
const std::chrono::milliseconds kReadTimeout = tests_use_tls() ? 3s : 600ms;

TEST(LineSilence, AnIdleClientAndHalfARequestAreClosedAndAHolderIsNot) {
  Options options = line_options();
  options.read_timeout = kReadTimeout;
  LineServer server(options);
  const auto began = SteadyClock::now();
  LineClient idle = server.connect();
  LineClient half = server.connect();
  LineClient holder = server.connect();
  half.send("ping\n\n");
  ASSERT_EQ(masked(holder.ask(request("l", "k", "0"))), "ok <token> 33");
  for (LineClient* client : {&idle, &half}) {
    EXPECT_EQ(client->read_line(), "error");
    EXPECT_GE(SteadyClock::now(), began + kReadTimeout);
    EXPECT_EQ(client->read_line(), kEnd);
  }
  EXPECT_EQ(holder.read_line(kReadTimeout), kSilence);
  EXPECT_EQ(holder.ask(request("ping", "", "")), "ok");
}

}  // namespace
}  // namespace lockd
