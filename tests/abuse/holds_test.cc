// Clients that take whatever they can: holds without end, leases of centuries, and hints of where
// keys lie in the index.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/testing/eventually.h"
#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/http_client.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kAsManyAsThereAre = "0 2147483647 9223372036";

struct Heard {
  std::size_t granted = 0;
  std::size_t refused = 0;
  std::string else_heard;
};

// Everybody asks for a permit of one semaphore, so many times in all, and keeps what it gets.
Heard take_permits(Swarm& attackers, std::size_t times) {
  constexpr std::size_t kAtOnce = 200;
  std::string many;
  for (std::size_t i = 0; i < kAtOnce; ++i) many += request("sl", "hoard", kAsManyAsThereAre);
  Heard heard;
  for (std::size_t asked = 0; asked < times;) {
    for (std::size_t who = 0; who < attackers.size(); ++who, asked += kAtOnce) {
      if (!attackers.send(who, many)) return heard;
    }
    for (std::size_t i = 0; i < kAtOnce * attackers.size(); ++i) {
      const auto reply = attackers.next();
      const std::string line = reply ? reply->line : "nothing";
      if (line.starts_with("ok ")) {
        ++heard.granted;
      } else if (line == "error_max_holds") {
        ++heard.refused;
      } else {
        heard.else_heard = line;
        return heard;
      }
    }
  }
  return heard;
}

TEST(Abuse, HoldsWithoutEndOfOneClient) {
  const ServerProcess server({"--max-holds-per-client", "1000", "--http-addr", "127.0.0.1:0"});
  const std::size_t base_kib = server.memory_kib();
  const std::size_t times = scaled(400'000);
  Swarm attacker(server.port());
  ASSERT_TRUE(attacker.connect(1));
  {
    const HonestClients honest(server, {.attack = "holds without end", .reads_metrics = true});
    const Heard heard = take_permits(attacker, times);
    EXPECT_EQ(heard.else_heard, "");
    EXPECT_EQ(heard.granted, 1000U);
    EXPECT_GE(heard.refused, times - 1000);
  }
  expect_grown_at_most(server, base_kib, 16 * 1024);
}

// Asks for a permit of each of `keys` in turn, so many times in all; whether all were granted.
bool take_many(Swarm& attacker, std::size_t times, std::size_t keys, const std::string& lease) {
  return attacker.ask_all(0, times, "ok ", [&](std::size_t i) {
    return request("sl", "due" + std::to_string(i % keys), "0 100000000 " + lease);
  }) == times;
}

// Very many leases end together, and while they do, requests are about a key that has as many
// holds: what each of them costs must not grow with those.
TEST(Abuse, HoldsThatFallDueTogether) {
  const ServerProcess server({"--threads", "2", "--http-addr", "127.0.0.1:0"});
  const HonestClients honest(server, {.attack = "holds that end together", .reads_metrics = true});
  Swarm attacker(server.port());
  ASSERT_TRUE(attacker.connect(1));
  const std::size_t count = scaled(300'000);
  ASSERT_TRUE(take_many(attacker, count, 1, "1000"));
  const auto due = SteadyClock::now() + 3s;
  ASSERT_TRUE(take_many(attacker, count, 256, "3"));
  std::this_thread::sleep_until(due);
  Swarm askers(server.port());
  ASSERT_TRUE(askers.connect(4));
  constexpr std::size_t kAsks = 5000;
  const std::string asks = repeated(request("sl", "due0", "0 1"), kAsks);
  for (std::size_t i = 0; i < askers.size(); ++i) ASSERT_TRUE(askers.send(i, asks));
  for (std::size_t i = 0; i < kAsks * askers.size(); ++i) {
    const auto reply = askers.next();
    ASSERT_EQ(reply ? reply->line : "nothing", "error_limit_mismatch");
  }
}

// Together they have all there is. Who holds something keeps it; and all is free when they go.
TEST(Abuse, HoldsWithoutEndOfMany) {
  constexpr std::size_t kHoldsMax = 20'000;
  const ServerProcess server({"--max-holds", std::to_string(kHoldsMax)});
  const std::size_t base_kib = server.memory_kib();
  LineClient honest = server.connect();
  const std::string token = token_of(honest.ask(request("l", "honest", "0 5")));
  {
    Swarm attackers(server.port());
    ASSERT_TRUE(attackers.connect(8));
    for (int round = 0; round < 4; ++round) {
      const Heard heard = take_permits(attackers, scaled(100'000));
      EXPECT_EQ(heard.else_heard, "");
      if (round == 0) {
        EXPECT_EQ(heard.granted, kHoldsMax - 1);
      }
      EXPECT_EQ(honest.ask(request("n", "honest", token + " 5")), "ok 5");
    }
    EXPECT_EQ(attackers.ask(0, request("e", "honest", "")), "error_max_holds");
    EXPECT_EQ(honest.ask(request("l", "another", "0")), "error_max_holds");
  }
  expect_grown_at_most(server, base_kib, 32 * 1024);
  // They have gone when their sessions have.
  std::string granted;
  eventually([&] {
    granted = honest.ask(request("l", "another", "0"));
    return granted != "error_max_holds";
  });
  EXPECT_EQ(masked(granted), "ok <token> 33");
  EXPECT_EQ(honest.ask(request("r", "honest", token)), "ok");
}

// A lease is as long as the server says, and so is what is left of who has gone.
TEST(Abuse, LeasesOfCenturies) {
  const ServerProcess server(
      {"--max-lease-ttl", "5", "--auto-release-on-disconnect=false", "--max-locks", "100000"});
  const HonestClients honest(server, {.attack = "leases of centuries"});
  const std::size_t keys = scaled(8'000);
  {
    Swarm attacker(server.port());
    ASSERT_TRUE(attacker.connect(1));
    std::string many;
    for (std::size_t i = 0; i < keys; ++i) {
      many += request("l", "century-" + std::to_string(i), "0 9223372036");
    }
    ASSERT_TRUE(attacker.send(0, many));
    for (std::size_t i = 0; i < keys; ++i) {
      const auto reply = attacker.next();
      ASSERT_TRUE(reply.has_value());
      ASSERT_EQ(masked(reply->line), "ok <token> 5");
    }
  }
  LineClient client = server.connect();
  for (std::size_t i = 0; i < keys; i += keys / 10) {
    const std::string key = "century-" + std::to_string(i);
    EXPECT_EQ(masked(client.ask(request("l", key, "30"))), "ok <token> 5");
  }
}

// A cursor that told the hashes of keys would let an attacker choose keys that collide.
TEST(Abuse, ListingsTellNothingOfWhereKeysLie) {
  const ServerProcess server({"--http-addr", "127.0.0.1:0"});
  const HonestClients honest(server, {.attack = "listing for hashes", .reads_metrics = true});
  LineClient attacker = server.connect();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(masked(attacker.ask(request("l", "probe-" + std::to_string(i), "0"))),
              "ok <token> 33");
  }
  HttpClient reader({.port = server.http_port(), .tls = false});
  std::vector<std::string> cursors;
  for (std::string path = "/v1/locks?prefix=probe-&limit=1"; !path.empty();) {
    const boost::json::value page = reader.get(path).json();
    const auto* next = page.as_object().if_contains("next");
    if (next == nullptr) break;
    cursors.emplace_back(next->as_string());
    path = "/v1/locks?prefix=probe-&limit=1&after=" + cursors.back();
  }
  ASSERT_GE(cursors.size(), 99U);
  for (const std::string& cursor : cursors) {
    EXPECT_EQ(cursor.size(), 32U) << cursor;
    EXPECT_EQ(cursor.find_first_not_of("0123456789abcdef"), std::string::npos) << cursor;
  }
  EXPECT_FALSE(std::is_sorted(cursors.begin(), cursors.end())) << "they tell the order of hashes";
  EXPECT_EQ(reader.get("/v1/locks?after=0-0").status, 400);
}

}  // namespace
}  // namespace lockd
