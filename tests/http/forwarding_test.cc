// Followers pass on to the leader what they are asked, over HTTP.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "support/http_client.h"
#include "support/server_cluster.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class HttpForwarding : public testing::Test {
 protected:
  HttpForwarding() { cluster_.lead("a"); }

  // Until so many wait, as the leader says.
  void await_waiters(int waiters) {
    LineClient look = cluster_.connect("a");
    await_stats(look, R"("waiters":)" + std::to_string(waiters));
  }

  ServerCluster cluster_{ServerCluster::forwarding()};
};

// Else it would be its own client for a moment, and what it holds as such not be released with it.
TEST(HttpForwardingAlone, WhoIsElectedAsksNobodyUntilItLeads) {
  ServerCluster cluster(ServerCluster::forwarding(), {"a", "b"});
  cluster.lead("a");
  cluster.await_link("b");
  HttpClient at_b = cluster.browse("b");
  const auto accepted = [&] {
    const std::string metrics = at_b.get("/metrics").body;
    const std::size_t at = metrics.find("\nlockd_connections_accepted_total ");
    return metrics.substr(at, metrics.find('\n', at + 1) - at);
  };
  const std::string before = accepted();
  cluster.elect("b");
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(accepted(), before);
  EXPECT_NE(before, "");
}

TEST_F(HttpForwarding, AnyServerTakesAnyCall) {
  HttpClient by_b = cluster_.browse("b");
  HttpClient by_c = cluster_.browse("c");
  const HttpReply granted =
      by_b.post("/v1/acquire", "{\n  \"key\": \"k\",\n  \"holder\": \"ann\", \"ttl_ms\": 60000\n}");
  EXPECT_EQ(shown(granted),
            R"(200 {"key":"k","holder":"ann","token":<token>,"ttl_ms":60000,"expires_in_ms":<ms>,)"
            R"("expires_at_unix_ms":<time>})");
  const HttpReply refused = by_c.post("/v1/acquire", hold_json("k", "bob"));
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.json().at("held_by").at("holder").as_string(), "ann");
  EXPECT_EQ(by_c.get("/v1/fence?key=k").number("token"), granted.number("token"));
  const std::int64_t token = granted.number("token");
  EXPECT_EQ(by_c.post("/v1/renew", hold_json("k", "ann", token)).status, 200);
  EXPECT_EQ(shown(by_c.post("/v1/release", hold_json("k", "ann", token))),
            R"(200 {"key":"k","released":true})");
  EXPECT_EQ(by_b.post("/v1/semaphores/acquire", hold_json("s", "ann", R"("limit":2)")).status, 200);
  EXPECT_EQ(by_b.post("/v1/acquire", R"({"keys":["x","y"],"holder":"ann"})").status, 200);
  EXPECT_EQ(by_c.post("/v1/acquire", R"({"items":[{"key":"y"}],"holder":"bob"})").status, 409);
  EXPECT_EQ(by_b.post("/v1/acquire", R"({"key":"k"})").status, 400);  // refused where it is asked
  const std::string metrics = by_b.get("/metrics").body;
  EXPECT_NE(metrics.find("lockd_cluster_link_up 1"), std::string::npos);
  EXPECT_NE(metrics.find("lockd_cluster_forwarded_total 3"), std::string::npos) << metrics;
  EXPECT_EQ(by_b.get("/leader").status, 503);
  EXPECT_EQ(cluster_.browse("a").get("/leader").status, 200);
}

TEST_F(HttpForwarding, WaitsAreWaitedAtTheLeader) {
  HttpClient holder = cluster_.browse("b");
  HttpClient waiter = cluster_.browse("c");
  const std::int64_t token =
      holder.post("/v1/acquire", hold_json("k", "ann", R"("ttl_ms":60000)")).number("token");
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "bob", R"("wait_ms":60000)")));
  await_waiters(1);
  EXPECT_EQ(holder.post("/v1/release", hold_json("k", "ann", token)).status, 200);
  EXPECT_EQ(waiter.read_reply().text("holder"), "bob");
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(holder.post("/v1/acquire", hold_json("k", "ann", R"("wait_ms":300)")).text("error"),
            "wait_timeout");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 300ms);
}

TEST_F(HttpForwarding, WhoLeavesGivesItsPlaceUp) {
  HttpClient holder = cluster_.browse("b");
  EXPECT_EQ(holder.post("/v1/acquire", hold_json("k", "ann")).status, 200);
  HttpClient waiter = cluster_.browse("c");
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "bob", R"("wait_ms":60000)")));
  await_waiters(1);
  waiter.close();
  await_waiters(0);
}

TEST_F(HttpForwarding, SignalsReachStreamsOnEveryServer) {
  HttpClient at_b = cluster_.browse("b");
  HttpClient at_a = cluster_.browse("a");
  LineClient by_lines = cluster_.connect("c");
  EXPECT_EQ(at_b.open_stream("/v1/signals?pattern=s.*").status, 200);
  EXPECT_EQ(at_a.open_stream("/v1/signals?pattern=s.*").status, 200);
  EXPECT_EQ(by_lines.ask(request("listen", "s.x", "")), "ok");
  HttpClient publisher = cluster_.browse("c");
  EXPECT_EQ(shown(publisher.post("/v1/signals/s.x", R"({"payload":"a \"b\""})")),
            R"(200 {"delivered":3})");
  EXPECT_EQ(at_b.read_event(), R"(sig {"channel":"s.x","payload":"a \"b\""})");
  EXPECT_EQ(at_a.read_event(), R"(sig {"channel":"s.x","payload":"a \"b\""})");
  EXPECT_EQ(by_lines.read_line(), R"(sig s.x a "b")");
}

TEST_F(HttpForwarding, PipelinedRepliesLeaveInOrder) {
  HttpClient client = cluster_.browse("b");
  client.send(client.written("POST", "/v1/acquire", hold_json("k", "ann")) +
              client.written("GET", "/v1/whoami", "") +
              client.written("POST", "/v1/acquire", hold_json("k", "bob")) +
              client.written("GET", "/livez", ""));
  EXPECT_EQ(client.read_reply().text("holder"), "ann");
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().status, 409);
  EXPECT_EQ(client.read_reply().text("status"), "ok");
}

TEST_F(HttpForwarding, LargeBodyPassesTheWindow) {
  HttpClient client = cluster_.browse("b");
  const std::string body = hold_json("k", "ann") + std::string(400'000, ' ');
  EXPECT_EQ(client.post("/v1/acquire", body).text("holder"), "ann");
  EXPECT_EQ(client.post("/v1/acquire", body).text("holder"), "ann");
}

TEST_F(HttpForwarding, RequestWhoseLeaderIsLostIs502) {
  HttpClient holder = cluster_.browse("c");
  HttpClient waiter = cluster_.browse("c");
  HttpClient stream = cluster_.browse("c");
  EXPECT_EQ(holder.post("/v1/acquire", hold_json("k", "ann", R"("ttl_ms":60000)")).status, 200);
  EXPECT_EQ(stream.open_stream("/v1/signals?pattern=s").status, 200);
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "bob", R"("wait_ms":60000)")));
  await_waiters(1);
  cluster_.lead("b");
  const HttpReply lost = waiter.read_reply();
  EXPECT_EQ(lost.status, 502);
  EXPECT_EQ(lost.text("error"), "leader_lost");
  EXPECT_EQ(stream.read_event(), "<cut off>");
  // The connection stands, and the next request goes to the next leader.
  const HttpReply refused = waiter.post("/v1/acquire", hold_json("k", "bob"));
  EXPECT_EQ(refused.status, 409) << refused.body;
}

TEST_F(HttpForwarding, ListsAreTheLeadersUnlessTheyAreAskedOfThisServer) {
  HttpClient at_a = cluster_.browse("a");
  HttpClient at_b = cluster_.browse("b");
  EXPECT_EQ(at_b.post("/v1/acquire", hold_json("k", "ann")).status, 200);
  const auto listed = [](HttpClient& client, const char* target) {
    return client.get(target).body;
  };
  EXPECT_NE(listed(at_b, "/v1/clients").find("forwarded_as"), std::string::npos);
  EXPECT_EQ(listed(at_b, "/v1/clients?local=true").find("forwarded_as"), std::string::npos);
  EXPECT_NE(listed(at_b, "/v1/locks?local=true").find(R"("key":"k")"), std::string::npos);
  EXPECT_NE(listed(at_a, "/v1/locks?local=true").find(R"("key":"k")"), std::string::npos);
}

TEST_F(HttpForwarding, AServerDisconnectsItsOwnClients) {
  LineClient client = cluster_.connect("b");
  EXPECT_EQ(masked(client.ask(request("l", "k", "0 60"))), "ok <token> 60");
  HttpClient admin = cluster_.browse("b");
  const auto listed = admin.get("/v1/clients?local=true").json();
  for (const auto& one : listed.at("clients").as_array()) {
    if (one.at("protocol").as_string() != "line") continue;
    const auto id = std::to_string(one.at("client_id").to_number<std::uint64_t>());
    const std::string body = R"({"client_id":)" + id + R"(,"reason":"test"})";
    EXPECT_EQ(admin.post("/v1/admin/disconnect", body).status, 200);
  }
  EXPECT_EQ(client.read_line(), kEnd);
  LineClient other = cluster_.connect("c");
  EXPECT_EQ(masked(other.ask(request("l", "k", "20 60"))), "ok <token> 60");  // it was released
}

TEST_F(HttpForwarding, AdminsActsAreTheLeaders) {
  HttpClient holder = cluster_.browse("b");
  EXPECT_EQ(holder.post("/v1/acquire", hold_json("k", "ann")).status, 200);
  const HttpReply ended =
      holder.post("/v1/admin/release", R"({"key":"k","all":true,"reason":"stuck"})");
  EXPECT_EQ(ended.status, 200);
  EXPECT_EQ(cluster_.browse("c").post("/v1/acquire", hold_json("k", "bob")).status, 200);
}

TEST_F(HttpForwarding, WhenNobodyLeadsItSaysSo) {
  cluster_.await_link("b");
  cluster_.kill("a");
  cluster_.lead_nobody();
  HttpClient client = cluster_.browse("b");
  const HttpReply reply = client.post("/v1/acquire", hold_json("k", "ann"));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.text("error"), "not_leader");
  EXPECT_EQ(reply.field("X-Lockd-Leader"), "-");
  EXPECT_EQ(reply.field("X-Lockd-Leader-Http"), "-");
}

// A file of --access that gives the token of this name these rights.
std::string access_text(const std::string& name, const std::string& rights) {
  return "[[token]]\nname = '" + name + "'\n" + rights + "\nsha256 = '" +
         hex_of(sha256("secret-of-" + name + "-0123")) + "'\n";
}

// The follower lets the client in; the leader decides by its own file what its principal may do.
TEST(HttpForwardingRights, AreThoseOfThePrincipalAtTheLeader) {
  TemporaryDirectory directory;
  const auto path = [&](const std::string& node) { return directory.path() + "/" + node; };
  const std::string both = access_text("all", "rights = ['lock', 'signal']");
  std::ofstream(path("a")) << both
                           << access_text("billing", "rights = ['lock']\nkeys = ['billing/']");
  std::ofstream(path("b")) << both << access_text("billing", "rights = ['lock', 'signal']")
                           << access_text("unknown", "rights = ['lock']");
  ServerCluster cluster(ServerCluster::forwarding(), {"a", "b"},
                        [&](Options& options) { options.access = path(options.node_id); });
  cluster.lead("a");
  HttpClient client = cluster.browse("b");
  client.fields = "Authorization: Bearer secret-of-billing-0123\r\n";
  EXPECT_EQ(client.post("/v1/acquire", hold_json("billing/x", "ann")).status, 200);
  EXPECT_EQ(client.post("/v1/acquire", hold_json("other", "ann")).status, 403);
  EXPECT_EQ(client.post("/v1/signals/billing/x", R"({"payload":"x"})").status, 403);
  LineClient line = cluster.connect("b");
  line.send(request("auth", "", "secret-of-billing-0123") + request("l", "other", "0") +
            request("l", "billing/y", "0 9"));
  EXPECT_EQ(line.read_line(), "ok");
  EXPECT_EQ(line.read_line(), "error_denied");
  EXPECT_EQ(masked(line.read_line()), "ok <token> 9");
  LineClient unknown = cluster.connect("b");
  EXPECT_EQ(unknown.ask(request("auth", "", "secret-of-unknown-0123")), "ok");
  EXPECT_EQ(unknown.ask(request("l", "k", "0")), "error_denied");
  LineClient all = cluster.connect("b");
  EXPECT_EQ(all.ask(request("auth", "", "secret-of-all-0123")), "ok");
  EXPECT_EQ(masked(all.ask(request("l", "k", "0 9"))), "ok <token> 9");
  // What the leader's file says now.
  std::ofstream(path("a")) << access_text("all", "rights = ['lock']\nkeys = ['x/']");
  EXPECT_EQ(cluster.server("a").reload(), "");
  EXPECT_EQ(all.ask(request("l", "k2", "0")), "error_denied");
  // And what the follower's does: its principal is gone there.
  std::ofstream(path("b")) << access_text("billing", "rights = ['lock']");
  EXPECT_EQ(cluster.server("b").reload(), "");
  EXPECT_EQ(all.read_line(), kEnd);
}

TEST(HttpForwardingRights, OnlyReadersSeeTheAddressAndNoteOfAHolder) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/access.toml";
  std::ofstream(path) << "[[token]]\nname = 'locker'\nrights = ['lock']\n"
                      << "sha256 = '" << hex_of(sha256("secret-of-locker-0123")) << "'\n"
                      << "[[token]]\nname = 'reader'\nrights = ['lock', 'read']\n"
                      << "sha256 = '" << hex_of(sha256("secret-of-reader-0123")) << "'\n";
  Options options = ServerCluster::forwarding();
  options.access = path;
  ServerCluster cluster(options, {"a", "b"});
  cluster.lead("a");
  HttpClient locker = cluster.browse("b");
  locker.fields = "Authorization: Bearer secret-of-locker-0123\r\n";
  HttpClient reader = cluster.browse("b");
  reader.fields = "Authorization: Bearer secret-of-reader-0123\r\n";
  ASSERT_EQ(locker.post("/v1/acquire", hold_json("k", "a", R"("note":"deploy")")).status, 200);
  for (const std::string& body :
       {hold_json("k", "b"), std::string(R"({"keys":["j","k"],"holder":"b"})")}) {
    const std::string seen = reader.post("/v1/acquire", body).body;
    EXPECT_NE(seen.find(R"("peer":")"), std::string::npos) << seen;
    EXPECT_NE(seen.find(R"("note":"deploy")"), std::string::npos) << seen;
    const HttpReply refused = locker.post("/v1/acquire", body);
    EXPECT_EQ(refused.body.find(R"("peer":")"), std::string::npos) << refused.body;
    EXPECT_NE(shown(refused).find(held_by("a", "exclusive")), std::string::npos) << refused.body;
  }
}

// The leader tells of every key; what the client may hear of is known where it is connected.
TEST(HttpForwardingRights, ConfineTheEventsOfTheLeader) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/access.toml";
  std::ofstream(path) << "[[token]]\nname = 'billing'\nrights = ['lock', 'read']\n"
                      << "keys = ['billing/']\n"
                      << "sha256 = '" << hex_of(sha256("billing-secret-0123")) << "'\n"
                      << "[[token]]\nname = 'all'\nrights = ['lock', 'read']\n"
                      << "sha256 = '" << hex_of(sha256("secret-of-all-0123")) << "'\n";
  Options options = ServerCluster::forwarding();
  options.access = path;
  ServerCluster cluster(options, {"a", "b"});
  cluster.lead("a");
  HttpClient stream = cluster.browse("b");
  stream.fields = "Authorization: Bearer billing-secret-0123\r\n";
  ASSERT_EQ(stream.open_stream("/v1/events").status, 200);
  LineClient line = cluster.connect("b");
  ASSERT_EQ(line.ask(request("auth", "", "billing-secret-0123")), "ok");
  ASSERT_EQ(line.ask(request("api", "GET /v1/events", "{}")), "ok 200 {}");

  HttpClient everybody = cluster.browse("b");
  everybody.fields = "Authorization: Bearer secret-of-all-0123\r\n";
  EXPECT_EQ(everybody.post("/v1/acquire", hold_json("other", "ann")).status, 200);
  EXPECT_EQ(everybody.post("/v1/acquire", hold_json("billing/x", "ann")).status, 200);
  for (const std::string& told : {stream.read_event(), line.read_line()}) {
    EXPECT_NE(told.find("granted"), std::string::npos) << told;
    EXPECT_NE(told.find(R"("key":"billing/x")"), std::string::npos) << told;
  }
}

}  // namespace
}  // namespace lockd
