// Listings of many keys, each abandoned as soon as it was asked for.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

bool take_keys(Swarm& holder, std::size_t count) {
  return holder.connect(1) && holder.ask_all(0, count, "ok ", [](std::size_t i) {
    return request("l", "key/" + std::to_string(i), "0 600");
  }) == count;
}

std::string listing_of(std::size_t i) {
  const std::string order = i % 4 < 2 ? "" : "&order=waiters";
  return "GET /v1/locks?prefix=none" + std::to_string(i) + order +
         " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

// Half of them leave by RST, and half by FIN, as one does who reads on: those wait for all others,
// and no more of them than may.
TEST(Abuse, ListingsThatNobodyWaitsFor) {
  const ServerProcess server(
      {"--threads", "2", "--http-addr", "127.0.0.1:0", "--max-locks", "1000000"});
  Swarm holder(server.port());
  ASSERT_TRUE(take_keys(holder, scaled(200'000U)));
  const std::size_t count = connections_possible(scaled(1000U));
  const HonestClients honest(
      server, {.attack = "listings that nobody waits for", .token = {}, .reads_metrics = true});
  Swarm leavers(server.http_port());
  ASSERT_TRUE(leavers.connect(count));
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(leavers.send(i, listing_of(i)));
    i % 2 == 0 ? leavers.reset(i) : leavers.close(i);
  }
  const auto asked = SteadyClock::now();
  HttpClient client({.port = server.http_port()});
  const HttpReply reply = client.get("/v1/locks?prefix=key/1&limit=1000");
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find(R"("key":"key/1)"), std::string::npos);
  const HttpReply busiest = client.get("/v1/locks?order=waiters&limit=1");
  EXPECT_EQ(busiest.status, 200) << busiest.body;
  const std::chrono::duration<double, std::milli> took = SteadyClock::now() - asked;
  std::printf("two honest listings took %.1f ms\n", took.count());
}

// More than may wait, whose askers stay: those over the limit hear so, and the others are answered.
TEST(Abuse, ListingsByTheHundred) {
  const ServerProcess server(
      {"--threads", "2", "--http-addr", "127.0.0.1:0", "--max-locks", "1000000"});
  Swarm holder(server.port());
  ASSERT_TRUE(take_keys(holder, 20'000));
  constexpr std::size_t kAskers = 600;
  connections_possible(kAskers + 100);
  const HonestClients honest(
      server, {.attack = "listings by the hundred", .token = {}, .reads_metrics = true});
  Swarm askers(server.http_port());
  ASSERT_TRUE(askers.connect(kAskers));
  for (std::size_t i = 0; i < kAskers; ++i) ASSERT_TRUE(askers.send(i, listing_of(i)));
  std::size_t answered = 0;
  std::size_t refused = 0;
  while (answered + refused < kAskers) {
    const auto arrival = askers.next();
    ASSERT_TRUE(arrival.has_value()) << answered << " answered, " << refused << " refused";
    if (!arrival->line.starts_with("HTTP/1.1 ")) continue;
    arrival->line.starts_with("HTTP/1.1 503 ") ? ++refused : ++answered;
  }
  std::printf("%zu were answered, %zu refused\n", answered, refused);
  EXPECT_GE(answered, 256U);
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace lockd
