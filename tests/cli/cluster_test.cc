// lockctl with the addresses of a cluster: servers that play one are killed under it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/fake_http.h"
#include "cli/lockctl.h"
#include "lockd/client/client.h"
#include "support/fake_cluster.h"

namespace lockd {
namespace {

using client::FakeCluster;
using Reply = std::optional<std::string>;

std::string list_of(const FakeCluster& cluster) {
  std::string list;
  for (const auto& address : cluster.addresses()) list += "," + address.to_string();
  return list.substr(1);
}

TEST(LockctlCluster, RunHoldsItsLockThroughTheDeathOfTheLeader) {
  FakeCluster cluster(3);
  cluster.lead(1);
  Lockctl process({"run", "--cluster", list_of(cluster), "--ttl", "10", "k", "-c",
                   "echo begun; read line; echo ended"},
                  {.terminal = true});
  process.await_output("begun");
  cluster.kill(1);
  ASSERT_TRUE(eventually([&] { return cluster.asked(0, "n") > 0 && cluster.asked(2, "n") > 0; }));
  cluster.lead(2);
  const int before = cluster.asked(2, "n");
  ASSERT_TRUE(eventually([&] { return cluster.asked(2, "n") > before; })) << "it was renewed there";
  EXPECT_TRUE(cluster.is_held("k"));
  process.type("go on\n");
  process.await_output("ended");
  EXPECT_EQ(process.await_exit(), 0) << process.output();
  EXPECT_FALSE(cluster.is_held("k"));
}

TEST(LockctlCluster, IsNamedByAVariableToo) {
  FakeCluster cluster(2);
  cluster.lead(1);
  const Finished run = lockctl({"run", "-v", "--ttl", "10", "k", "--", "echo", "done"},
                               {.environment = {"LOCKD_CLUSTER=" + list_of(cluster)}});
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(run.output, "done\n");
}

TEST(LockctlCluster, SaysThatNobodyLeads) {
  FakeCluster cluster(2);
  cluster.lead_none();
  cluster.name("10.0.0.7:6388");
  const Finished run = lockctl({"run", "-n", "--cluster", list_of(cluster), "--connect-timeout",
                                "2", "k", "--", "echo", "never"});
  EXPECT_EQ(run.status, 75);
  EXPECT_EQ(run.output, "");
  EXPECT_NE(run.errors.find("no leader was found among 127.0.0.1:"), std::string::npos);
  EXPECT_NE(run.errors.find("\"10.0.0.7:6388\" was named, and was not given"), std::string::npos)
      << run.errors;
}

TEST(LockctlCluster, AOneServerThatFollowsIsAClearError) {
  FakeCluster cluster(2);
  cluster.lead(1);
  const Finished run =
      lockctl({"run", "-s", cluster.addresses()[0].to_string(), "k", "--", "echo", "never"});
  EXPECT_EQ(run.status, 75);
  EXPECT_EQ(run.errors, "lockctl: the server does not lead its cluster\n");
}

TEST(LockctlCluster, PingTellsWhoFollows) {
  FakeCluster cluster(2);
  const Finished ping = lockctl({"ping", "--cluster", list_of(cluster)});
  EXPECT_EQ(ping.status, 0) << ping.output;
  EXPECT_NE(ping.output.find("  ok\n"), std::string::npos) << ping.output;
  EXPECT_NE(ping.output.find("  follows " + cluster.addresses()[0].to_string() + "\n"),
            std::string::npos)
      << ping.output;
  const Finished stats = lockctl({"stats", "--json", "--cluster", list_of(cluster)});
  EXPECT_EQ(stats.output, "{\"connections\":1}\n") << stats.errors;
  EXPECT_EQ(cluster.asked(1, "stats"), 0);
}

// As a server that forwards says of itself; the first leads.
Reply overview_of(std::size_t server, const client::Asked& asked) {
  if (asked.command == "barrier") return "ok";
  if (asked.command != "api") return {};
  const std::string role = server == 0 ? R"("leader","certain":true)" : R"("follower")";
  return R"(ok 200 {"version":"1.2","ready":true,"cluster":{"node_id":"n)" +
         std::to_string(server) + R"(","role":)" + role +
         R"(,"epoch":7,"leader_addr":"10.0.0.7:6388","behind":3,"etcd_silent_s":0.1,)" +
         R"("etcd_bytes":12456789,"etcd_quota_bytes":4294967296,"settings_differ":[)" +
         (server == 0 ? "" : R"("etcd-detect","max-locks")") + "]}}";
}

TEST(LockctlCluster, PingTellsWhoFollowsWhereServersForward) {
  FakeCluster cluster(2, overview_of);
  const Finished ping = lockctl({"ping", "--cluster", list_of(cluster)});
  EXPECT_EQ(ping.status, 0) << ping.errors;
  EXPECT_NE(ping.output.find("  ok\n"), std::string::npos) << ping.output;
  EXPECT_NE(ping.output.find("  follows 10.0.0.7:6388\n"), std::string::npos) << ping.output;
}

TEST(LockctlCluster, StatusSaysWhatEachServerIs) {
  FakeCluster cluster(2, overview_of);
  const Finished status = lockctl({"cluster", "status", "--cluster", list_of(cluster)});
  EXPECT_EQ(status.status, 0) << status.errors;
  EXPECT_NE(status.output.find("n0    leader        7       3  yes    12.5 MB of 4,295.0 MB  1.2"),
            std::string::npos)
      << status.output;
  EXPECT_NE(status.output.find("n1    follower      7       3  yes    12.5 MB of 4,295.0 MB  1.2"
                               "      other settings: etcd-detect, max-locks"),
            std::string::npos)
      << status.output;
  cluster.kill(0);
  const Finished without = lockctl({"cluster", "status", "--json", "--cluster", list_of(cluster)});
  EXPECT_EQ(without.status, 75);
  EXPECT_EQ(without.errors, "lockctl: 0 of 2 servers certainly lead, 1 are ready\n");
  EXPECT_NE(without.output.find(R"("error":"cannot connect to)"), std::string::npos);
  EXPECT_NE(without.output.find(R"("version":"1.2","ready":true,"cluster":{"node_id":"n1")"),
            std::string::npos)
      << without.output;
}

TEST(LockctlCluster, PingSaysWhoIsNotReady) {
  FakeCluster cluster(2, [](std::size_t server, const client::Asked& asked) -> Reply {
    if (asked.command != "api") return {};
    if (asked.key != "GET /readyz") return "ok 404 {}";
    return server == 0 ? R"(ok 200 {"status":"ok"})" : R"(ok 503 {"status":"no_etcd"})";
  });
  const Finished all = lockctl({"ping", "--ready", "--cluster", list_of(cluster)});
  EXPECT_EQ(all.status, 75) << all.errors;
  EXPECT_NE(all.output.find("  ok\n"), std::string::npos) << all.output;
  EXPECT_NE(all.output.find("  not ready: no_etcd\n"), std::string::npos) << all.output;
  const std::string first = cluster.addresses()[0].to_string();
  EXPECT_EQ(lockctl({"ping", "--ready", "--server", first}).status, 0);
  const std::string second = cluster.addresses()[1].to_string();
  const Finished json = lockctl({"ping", "--ready", "--json", "--server", second});
  EXPECT_EQ(json.status, 75);
  EXPECT_NE(json.output.find(R"("not_ready":"no_etcd"})"), std::string::npos) << json.output;
}

// As GET /v1/cluster says it.
std::string cluster_of(std::size_t server, std::size_t leader, const std::string& base,
                       const std::string& more = "") {
  const bool leads = server == leader;
  return R"(ok 200 {"node_id":"n)" + std::to_string(server) + R"(","role":)" +
         (leads ? R"("leader","certain":true)" : R"("follower","certain":false)") + R"(,"epoch":)" +
         std::to_string(7 + leader) + R"(,"leader":{"node_id":"n)" + std::to_string(leader) +
         R"(","addr":"h:1","writes_version":1},"base":")" + base +
         R"(","head":"05/09","settings":{"a":"1"},"own_settings":{"a":"1"})" + more + "}";
}

TEST(LockctlCluster, InspectSaysWhatCannotBeRead) {
  std::atomic<bool> is_damaged = false;
  FakeCluster cluster(2, [&](std::size_t server, const client::Asked& asked) -> Reply {
    if (asked.command != "api") return {};
    const bool stuck = is_damaged && server == 1;
    return cluster_of(
        server, 0, "05/01",
        stuck ? R"(,"unreadable":{"batch":"05/07","why":"batch 05/07 is damaged"})" : "");
  });
  const Finished well = lockctl({"cluster", "inspect", "--cluster", list_of(cluster)});
  EXPECT_EQ(well.status, 0) << well.errors;
  EXPECT_NE(well.output.find("  chain       05/01 to 05/09\n"), std::string::npos) << well.output;
  EXPECT_NE(well.output.find("  node        n1, follower"), std::string::npos) << well.output;
  EXPECT_NE(well.output.find("  settings    a=1\n"), std::string::npos) << well.output;
  is_damaged = true;
  const Finished ill = lockctl({"cluster", "inspect", "--cluster", list_of(cluster)});
  EXPECT_EQ(ill.status, 65);
  EXPECT_NE(ill.output.find("  unreadable  batch 05/07 is damaged\n"), std::string::npos)
      << ill.output;
  const std::string second = cluster.addresses()[1].to_string();
  const Finished json = lockctl({"cluster", "inspect", "--json", "--server", second});
  EXPECT_EQ(json.status, 65);
  EXPECT_TRUE(json.output.starts_with(R"({"server":")" + second + R"(","node_id":"n1")"))
      << json.output;
  cluster.kill(1);
  EXPECT_EQ(lockctl({"cluster", "inspect", "--cluster", list_of(cluster)}).status, 75);
}

TEST(LockctlCluster, SnapshotWaitsUntilTheBaseIsBehindTheHead) {
  std::atomic<int> looks = 0;
  FakeCluster cluster(1, [&](std::size_t server, const client::Asked& asked) -> Reply {
    if (asked.command == "barrier") return "ok";
    if (asked.command != "api") return {};
    const bool asks = asked.key.starts_with("POST /v1/cluster/snapshot");
    return asks ? R"(ok 202 {"base":"05/01","head":"05/09"})"
                : cluster_of(server, 0, ++looks < 3 ? "05/01" : "06/00");
  });
  const Words words{"cluster", "snapshot", "--cluster", list_of(cluster)};
  const Finished done = lockctl(words);
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_TRUE(done.output.starts_with("the chain begins with a snapshot at 06/00, after "))
      << done.output;
  EXPECT_EQ(looks, 3);
  looks = -1'000'000;
  const Finished late =
      lockctl({"cluster", "snapshot", "--timeout", "0.2", "--cluster", list_of(cluster)});
  EXPECT_EQ(late.status, 75);
  EXPECT_EQ(late.errors, "lockctl: the snapshot has begun, and is not there yet\n");
}

TEST(LockctlCluster, TransferWaitsUntilThatServerLeads) {
  std::atomic<int> looks = 0;
  std::atomic<int> asks = 0;
  FakeCluster cluster(2, [&](std::size_t server, const client::Asked& asked) -> Reply {
    if (asked.command == "barrier") return "ok";
    if (asked.command != "api") return {};
    if (asked.key.starts_with("GET ")) return cluster_of(server, ++looks < 5 ? 0 : 1, "05/01");
    const std::string node = asked.argument.substr(9, 2);  // of {"node":"n1"}
    const std::string began = R"({"node_id":")" + node + R"(","epoch":7})";
    if (node == "n0") return "ok 200 " + began;
    if (node == "n1" || (node == "n3" && ++asks == 1)) return "ok 202 " + began;
    return R"(ok 409 {"error":"not_ready","detail":"it was last heard of 7 s ago"})";
  });
  const std::string list = list_of(cluster);
  const Finished done = lockctl({"cluster", "transfer", "n1", "--json", "--cluster", list});
  EXPECT_EQ(done.status, 0) << done.errors;
  EXPECT_TRUE(done.output.starts_with(R"({"node_id":"n1","led_before":false,"took_ms":)"))
      << done.output;
  EXPECT_GE(looks, 5);
  const Finished already = lockctl({"cluster", "transfer", "n0", "--cluster", list});
  EXPECT_EQ(already.output, "'n0' leads already\n") << already.errors;
  const Finished refused = lockctl({"cluster", "transfer", "n2", "--cluster", list});
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.errors, "lockctl: 'n2': it was last heard of 7 s ago\n");
  const Finished later = lockctl({"cluster", "transfer", "n3", "--cluster", list});
  EXPECT_EQ(later.status, 1) << "the leader has thought better of it";
  EXPECT_EQ(later.errors, "lockctl: 'n3': it was last heard of 7 s ago\n");
  EXPECT_EQ(asks, 2);
}

TEST(LockctlCluster, TokensAreReleasedAtTheLeader) {
  FakeCluster cluster(3);
  cluster.lead(2);
  client::Client client({.cluster = cluster.addresses()});
  auto lock = client.acquire({.keys = "k", .lease = std::chrono::seconds(600)});
  ASSERT_TRUE(lock);
  const std::string list = list_of(cluster);
  EXPECT_EQ(lockctl({"renew", "k", lock->token(), "--ttl", "60", "--cluster", list}).status, 0);
  EXPECT_EQ(lockctl({"release", "k", lock->token(), "--cluster", list}).status, 0);
  EXPECT_FALSE(cluster.is_held("k"));
}

TEST(LockctlCluster, TokensAreRenewedAgainWhenTheAnswerIsLost) {
  std::atomic<int> asked = 0;
  FakeCluster cluster(2, [&](std::size_t, const client::Asked& request) -> Reply {
    if (request.command != "n" || asked++ > 0) return {};
    return "cut";
  });
  client::Client client({.cluster = cluster.addresses()});
  const auto lock = client.acquire({.keys = "k", .lease = std::chrono::seconds(600)});
  ASSERT_TRUE(lock);
  const Finished renewed =
      lockctl({"renew", "k", lock->token(), "--ttl", "60", "--cluster", list_of(cluster)});
  EXPECT_EQ(renewed.status, 0) << renewed.errors;
  EXPECT_EQ(asked, 2);
}

// --- the API over the line port ---

// The first that is asked leads no more by then: nothing was done, so the next is asked.
TEST(LockctlCluster, TheApiIsAskedOfTheServerThatLeads) {
  FakeCluster* members = nullptr;
  FakeCluster cluster(3, [&](std::size_t server, const client::Asked& asked) -> Reply {
    if (asked.command != "api") return {};
    if (server == 2) return R"(ok 200 {"key":"k","token":42})";
    members->lead(2);
    return R"(ok 503 {"error":"not_leader","detail":"follows"})";
  });
  members = &cluster;
  cluster.lead(1);
  const Finished acquired = lockctl(
      {"acquire", "k", "--holder", "me", "--cluster", list_of(cluster), "--connect-timeout", "60"});
  EXPECT_EQ(acquired.output, "42.me\n") << acquired.errors;
  EXPECT_EQ(cluster.asked(0, "api"), 0);
  EXPECT_EQ(cluster.asked(1, "api"), 1);
  EXPECT_EQ(cluster.asked(2, "api"), 1);
}

TEST(LockctlCluster, TheApiIsSentNothingTwiceThatMayHaveBeenDone) {
  FakeCluster cluster(2, [&](std::size_t, const client::Asked& asked) {
    return asked.command == "api" ? Reply("cut") : std::nullopt;
  });
  const Finished released = lockctl({"release", "k", "42.me", "--cluster", list_of(cluster)});
  EXPECT_EQ(released.status, 69) << released.errors;
  EXPECT_EQ(cluster.asked(0, "api") + cluster.asked(1, "api"), 1);
}

// --- over HTTP ---

std::string follower_says(const FakeRequest&) {
  return json_reply("503 Service Unavailable", R"({"error":"not_leader","detail":"follows"})");
}

TEST(LockctlCluster, HttpGoesToTheAddressThatLeads) {
  FakeHttp follower(follower_says);
  FakeHttp leader([](const FakeRequest& request) {
    if (request.line == "GET /leader HTTP/1.1") return json_reply("200 OK", "{}");
    return json_reply("200 OK", R"({"key":"k","holder":"h","token":42,"expires_at_unix_ms":1})");
  });
  const std::string list = follower.address() + ",127.0.0.1:1," + leader.address();
  const Finished acquired = lockctl({"acquire", "k", "--http", list, "--connect-timeout", "60"});
  EXPECT_TRUE(acquired.output.starts_with("42.")) << acquired.errors;
  ASSERT_EQ(follower.requests().size(), 1U);
  EXPECT_EQ(follower.requests()[0].line, "GET /leader HTTP/1.1");
  EXPECT_EQ(leader.requests().back().line, "POST /v1/acquire HTTP/1.1");
}

TEST(LockctlCluster, HttpSaysThatNobodyLeads) {
  FakeHttp one(follower_says);
  FakeHttp other(follower_says);
  const Finished listed =
      lockctl({"list", "--http", one.address() + "," + other.address(), "--connect-timeout", "2"});
  EXPECT_EQ(listed.status, 75);
  EXPECT_NE(listed.errors.find("no server leads: "), std::string::npos) << listed.errors;
}

// What was sent and not answered may have been done: it is not done again elsewhere.
TEST(LockctlCluster, HttpSendsNothingTwiceThatMayHaveBeenDone) {
  FakeHttp one([](const FakeRequest& request) {
    return request.line == "GET /leader HTTP/1.1" ? json_reply("200 OK", "{}") : std::string();
  });
  FakeHttp other([](const FakeRequest&) { return json_reply("200 OK", "{}"); });
  const Finished released =
      lockctl({"release", "k", "42", "--holder", "me", "--http",
               one.address() + "," + other.address(), "--connect-timeout", "60"});
  EXPECT_EQ(released.status, 69) << released.errors;
  EXPECT_EQ(other.requests().size(), 0U);
}

}  // namespace
}  // namespace lockd
