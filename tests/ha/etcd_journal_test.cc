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
  Server(const EtcdCluster& etcd, const std::string& name) : Server(options(etcd, name)) {}
  explicit Server(EtcdJournalOptions options)
      : journal(std::move(options)),
        engine({.shards = 4, .clock = &journal.clock(), .journal = &journal}) {}

  static EtcdJournalOptions options(const EtcdCluster& etcd, const std::string& name) {
    EtcdJournalOptions options;
    options.etcd.endpoints = etcd.endpoints();
    options.replication.cluster = "test";
    options.replication.self.node = name;
    options.replication.self.address = name + ":6388";
    options.replication.detect = 1s;
    options.replication.snapshots.revisions_max = 500;
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
  AcquireResult acquire(const std::string& key, const std::string& holder = "cart") {
    return engine.acquire({.keys = key, .holder = holder, .ttl = 60s});
  }

  EtcdJournal journal;
  Engine engine;
};

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
    EtcdJournalOptions options = Server::options(etcd, name);
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
  EXPECT_EQ(batch.acquire({.keys = "b", .holder = "cart", .ttl = 60s}).outcome, Outcome::ok);
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
