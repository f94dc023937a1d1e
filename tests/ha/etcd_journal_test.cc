// Engines on a real etcd, of one member and of three.
#include "etcd/etcd_journal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "etcd/grpc_etcd.h"
#include "ha/distant_port.h"
#include "ha/etcd_cluster.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd::ha_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

bool await(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

struct Server {
  Server(const EtcdCluster& etcd, const std::string& name, std::uint64_t snapshot_after = 64 << 20)
      : Server(options(etcd, name, snapshot_after)) {}
  explicit Server(EtcdJournalOptions options)
      : journal(std::move(options)),
        engine({.shards = 4, .clock = &journal.clock(), .journal = &journal}) {}

  static EtcdJournalOptions options(const EtcdCluster& etcd, const std::string& name,
                                    std::uint64_t snapshot_after) {
    EtcdJournalOptions options;
    options.etcd.endpoints = etcd.endpoints();
    options.replication.cluster = "test";
    options.replication.self.node = name;
    options.replication.self.address = name + ":6388";
    options.replication.detect = 1s;
    options.replication.snapshot_after = snapshot_after;
    options.replication.revisions_max = 500;
    options.replication.log = [name](Severity, std::string_view line) {
      std::cout << name << ": " << line << std::endl;
    };
    return options;
  }
  bool leads() { return journal.state() == Journal::State::accepting; }
  bool follows(const std::string& leader) {
    return journal.state() == Journal::State::following &&
           journal.status().leader.record.node == leader;
  }
  GrantResult acquire(const std::string& key, const std::string& holder = "cart") {
    return engine.acquire({.key = key, .holder = holder, .ttl = 60s});
  }
  bool knows(const std::string& key, Fence fence) {
    const auto status = engine.status(Kind::lock, key);
    return status && !status->holds.empty() && status->holds[0].fence == fence;
  }

  EtcdJournal journal;
  Engine engine;
};

TEST(EtcdJournal, OneLeadsAndTheOtherFollows) {
  EtcdCluster etcd(1);
  Server first(etcd, "first");
  ASSERT_TRUE(await([&] { return first.leads(); }));
  const GrantResult grant = first.acquire("k");
  ASSERT_EQ(grant.outcome, Outcome::ok);

  Server second(etcd, "second");
  ASSERT_TRUE(await([&] { return second.follows("first") && second.knows("k", grant->fence); }));
  EXPECT_EQ(second.acquire("x").outcome, Outcome::not_leader);
  const GrantResult later = first.acquire("later");
  EXPECT_TRUE(await([&] { return second.knows("later", later->fence); }));
  EXPECT_EQ(first.acquire("k", "other").outcome, Outcome::held);
}

TEST(EtcdJournal, WhatWasHeldIsHeldAtTheNextLeader) {
  EtcdCluster etcd(1);
  auto first = std::make_unique<Server>(etcd, "first");
  ASSERT_TRUE(await([&] { return first->leads(); }));
  Server second(etcd, "second");
  ASSERT_TRUE(await([&] { return second.follows("first"); }));
  const GrantResult grant = first->acquire("k");
  ASSERT_EQ(grant.outcome, Outcome::ok);

  const auto began = std::chrono::steady_clock::now();
  first.reset();  // hands over
  ASSERT_TRUE(await([&] { return second.leads(); }));
  std::cout << "handed over in "
            << std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::steady_clock::now() - began)
            << std::endl;
  EXPECT_EQ(second.acquire("k", "other").outcome, Outcome::held);
  const HoldId hold{.key = "k", .holder = "cart", .fence = grant->fence};
  EXPECT_EQ(second.engine.renew(hold).outcome, Outcome::ok);
  EXPECT_EQ(second.engine.release(hold), Outcome::ok);
  const GrantResult next = second.acquire("k", "other");
  ASSERT_EQ(next.outcome, Outcome::ok);
  EXPECT_GT(next->fence, grant->fence);
}

TEST(EtcdJournal, WhoeverComesLateKnowsEverything) {
  EtcdCluster etcd(1);
  auto first = std::make_unique<Server>(etcd, "first", 20'000);
  ASSERT_TRUE(await([&] { return first->leads(); }));
  std::vector<Fence> fences(100);
  for (int round = 0; round < 20; ++round) {
    Batch batch(first->engine);
    for (std::size_t i = 0; i < fences.size(); ++i) {
      const std::string key = "k-" + std::to_string(i);
      if (round > 0) batch.release({.key = key, .holder = "cart", .fence = fences[i]});
      const Answer got = batch.acquire({.key = key, .holder = "cart", .ttl = 60s});
      ASSERT_EQ(got.outcome, Outcome::ok);
      fences[i] = got.grant.fence;
    }
    ASSERT_TRUE(first->engine.wait_durable(batch.commit()));
  }
  ASSERT_TRUE(await([&] { return first->journal.stats().snapshots.value() > 0; }));
  ASSERT_TRUE(await([&] { return first->journal.stats().compactions.value() > 0; }));
  Server late(etcd, "late", 20'000);
  ASSERT_TRUE(await([&] { return late.follows("first"); }));
  for (std::size_t i = 0; i < fences.size(); ++i) {
    EXPECT_TRUE(await([&] { return late.knows("k-" + std::to_string(i), fences[i]); })) << i;
  }
}

TEST(EtcdJournal, TroubleInEtcdDeposesNobody) {
  EtcdCluster etcd(3);
  Server server(etcd, "server");
  Server standby(etcd, "standby");
  ASSERT_TRUE(await([&] { return server.leads() || standby.leads(); }));
  Server& leader = server.leads() ? server : standby;
  int key = 0;
  const auto grants = [&] { return leader.acquire("k-" + std::to_string(++key)).outcome; };
  EXPECT_EQ(grants(), Outcome::ok);
  for (std::size_t member = 0; member < 3; ++member) {
    etcd.kill(member);
    EXPECT_EQ(grants(), Outcome::ok) << "without " << member;
    etcd.start(member);
    // Another may be missed only when this one is back.
    ASSERT_TRUE(etcd.await_healthy(member));
    etcd.stop(member);
    EXPECT_EQ(grants(), Outcome::ok) << "with " << member << " frozen";
    etcd.go_on(member);
    EXPECT_EQ(grants(), Outcome::ok);
  }
  EXPECT_EQ(server.journal.stats().terms.value() + standby.journal.stats().terms.value(), 1u);
}

// 400 ms from the servers to etcd and back, with the detect that is the default.
TEST(EtcdJournal, GrantsThoughEtcdIsFarAway) {
  EtcdCluster etcd(1);
  DistantPort distant(etcd.port(0), 200ms);
  const auto options = [&](const std::string& name) {
    EtcdJournalOptions options = Server::options(etcd, name, 64 << 20);
    options.etcd.endpoints = {"127.0.0.1:" + std::to_string(distant.port())};
    options.replication.detect = ReplicatedJournalOptions{}.detect;
    return options;
  };
  auto first = std::make_unique<Server>(options("first"));
  ASSERT_TRUE(await([&] { return first->leads(); }));
  Server second(options("second"));
  ASSERT_TRUE(await([&] { return second.follows("first"); }));
  for (int i = 0; i < 10; ++i) {
    const auto asked = std::chrono::steady_clock::now();
    EXPECT_EQ(first->acquire("k-" + std::to_string(i)).outcome, Outcome::ok);
    EXPECT_GE(std::chrono::steady_clock::now() - asked, 400ms);
  }
  EXPECT_EQ(first->journal.stats().lapses.value(), 0u);
  first.reset();
  ASSERT_TRUE(await([&] { return second.leads(); }));
  EXPECT_EQ(second.acquire("k-0", "other").outcome, Outcome::held);
  EXPECT_EQ(second.acquire("another").outcome, Outcome::ok);
}

// A server that is deposed ends its client, and makes another.
TEST(GrpcEtcd, EndsInGoodOrderWhateverIsOnItsWay) {
  EtcdCluster etcd(3);
  for (int i = 0; i < 300; ++i) {
    GrpcEtcd client({.endpoints = etcd.endpoints()});
    bool answered = false;
    client.execute({.then = {etcd::put("k", "v")}}, 500ms,
                   [&](const etcd::Answer&) { answered = true; });
    ASSERT_TRUE(await([&] { return client.run(1ms), answered; }));
    client.run(std::chrono::microseconds(i * 37 % 1500));
  }
}

TEST(EtcdJournal, NothingIsAcknowledgedWithoutAQuorum) {
  EtcdCluster etcd(3);
  Server server(etcd, "server");
  ASSERT_TRUE(await([&] { return server.leads(); }));
  EXPECT_EQ(server.acquire("a").outcome, Outcome::ok);
  etcd.stop(0);
  etcd.stop(1);
  Batch batch(server.engine);
  EXPECT_EQ(batch.acquire({.key = "b", .holder = "cart", .ttl = 60s}).outcome, Outcome::ok);
  const Position position = batch.commit();
  // It is not certain to lead any more, and so even what it had acknowledged rests.
  EXPECT_TRUE(await([&] { return server.journal.durable() == 0; }));
  EXPECT_FALSE(server.engine.is_durable(position));
  etcd.go_on(0);
  etcd.go_on(1);
  EXPECT_TRUE(server.engine.wait_durable(position));
}

}  // namespace
}  // namespace lockd::ha_test
