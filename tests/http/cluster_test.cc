// What operators ask of a cluster, over HTTP and by lines.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/http_client.h"
#include "support/server_cluster.h"

namespace lockd {
namespace {

class HttpCluster : public testing::Test {
 protected:
  HttpCluster() {
    cluster_.add_member({.node = "b", .address = "10.0.0.2:6388"});
    cluster_.add_member({.node = "c", .address = "10.0.0.3:6388", .not_ready = "catching_up"});
    cluster_.add_member({.node = "silent", .address = "10.0.0.4:6388"});
    cluster_.lead("a");
  }

  static std::string to(const std::string& node) { return R"({"node":")" + node + R"("})"; }

  ServerCluster cluster_{ServerCluster::forwarding()};
};

TEST_F(HttpCluster, AListOfAServerThatFollowsSaysSo) {
  EXPECT_FALSE(cluster_.browse("a").get("/v1/locks").json().as_object().contains("followed"));
  EXPECT_TRUE(cluster_.browse("b").get("/v1/locks").json().at("followed").as_bool());
}

TEST_F(HttpCluster, EachServerSaysWhatItKnowsItself) {
  const auto a = cluster_.browse("a").get("/v1/cluster");
  ASSERT_EQ(a.status, 200) << a.body;
  EXPECT_EQ(a.text("node_id"), "a");
  EXPECT_EQ(a.text("role"), "leader");
  EXPECT_EQ(a.text("head"), "0000000000000005/0000000000000009");
  HttpClient browser = cluster_.browse("b");
  const auto b = browser.get("/v1/cluster");
  EXPECT_EQ(b.text("node_id"), "b");
  EXPECT_EQ(b.text("role"), "follower");
  EXPECT_EQ(b.json().at("leader").at("node_id").as_string(), "a");
  EXPECT_EQ(b.json().at("nodes").at(1).at("not_ready").as_string(), "catching_up");
  LineClient line = cluster_.connect("b");
  const std::string said = line.ask(request("api", "GET /v1/cluster", ""));
  EXPECT_TRUE(said.starts_with(R"(ok 200 {"node_id":"b","role":"follower")")) << said;
  cluster_.kill("a");
  cluster_.lead_nobody();
  const auto alone = browser.get("/v1/cluster");
  EXPECT_EQ(alone.status, 200);
  EXPECT_FALSE(alone.json().as_object().contains("leader"));
  EXPECT_EQ(browser.get("/v1/cluster?node=b").status, 400);
}

TEST_F(HttpCluster, ASnapshotIsTheLeaders) {
  HttpClient client = cluster_.browse("b");
  EXPECT_EQ(shown(client.post("/v1/cluster/snapshot", "{}")),
            R"(202 {"base":"0000000000000005/0000000000000001",)"
            R"("head":"0000000000000005/0000000000000009"})");
  EXPECT_EQ(cluster_.snapshots(), 1);
  EXPECT_EQ(client.post("/v1/cluster/snapshot", R"({"now":true})").status, 400);
  EXPECT_EQ(cluster_.snapshots(), 1);
}

TEST_F(HttpCluster, OnlyWhoCouldTakeOverIsHandedOverTo) {
  HttpClient client = cluster_.browse("a");
  EXPECT_EQ(shown(client.post("/v1/cluster/transfer", to("nobody"))),
            R"(404 {"error":"not_found"})");
  const HttpReply lags = client.post("/v1/cluster/transfer", to("c"));
  EXPECT_EQ(shown(lags), R"(409 {"error":"not_ready"})");
  EXPECT_EQ(lags.text("detail"), "it could not take over now: catching_up");
  const HttpReply silent = client.post("/v1/cluster/transfer", to("silent"));
  EXPECT_EQ(shown(silent), R"(409 {"error":"not_ready"})");
  EXPECT_EQ(silent.text("detail"), "it was last heard of 7 s ago");
  EXPECT_EQ(client.post("/v1/cluster/transfer", "{}").status, 400);
  EXPECT_EQ(client.post("/v1/cluster/transfer", to("a")).status, 200) << "it leads already";
  EXPECT_EQ(cluster_.transferred_to(), "");
  EXPECT_EQ(client.post("/v1/cluster/transfer", to("b")).status, 202);
  EXPECT_EQ(cluster_.transferred_to(), "b");
}

TEST_F(HttpCluster, AFollowerPassesItOn) {
  LineClient line = cluster_.connect("c");
  const std::string said = line.ask(request("api", "POST /v1/cluster/transfer", to("b")));
  EXPECT_EQ(said, R"(ok 202 {"node_id":"b","epoch":1})");
  EXPECT_EQ(cluster_.transferred_to(), "b");
}

TEST(HttpClusterRights, AreReadAndAdmin) {
  TemporaryDirectory directory;
  const std::string path = directory.path() + "/access.toml";
  std::ofstream(path) << "[[token]]\nname = 'looker'\nrights = ['read']\n"
                      << "sha256 = '" << hex_of(sha256("looker-secret-01234")) << "'\n";
  Options options = ServerCluster::forwarding();
  options.access = path;
  ServerCluster cluster(options, {"a", "b"});
  cluster.lead("a");
  HttpClient client = cluster.browse("b");
  client.fields = "Authorization: Bearer looker-secret-01234\r\n";
  EXPECT_EQ(client.get("/v1/cluster").status, 200);
  EXPECT_EQ(client.post("/v1/cluster/snapshot", "{}").status, 403);
  client = cluster.browse("b");  // who is refused by its head is closed
  client.fields = "Authorization: Bearer looker-secret-01234\r\n";
  EXPECT_EQ(client.post("/v1/cluster/transfer", R"({"node":"b"})").status, 403);
  EXPECT_EQ(cluster.snapshots(), 0);
}

TEST(HttpClusterAlone, AServerOnItsOwnHasNone) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::string none = "this server is in no cluster";
  EXPECT_EQ(client.get("/v1/cluster").text("detail"), none);
  EXPECT_EQ(client.post("/v1/cluster/snapshot", "{}").text("detail"), none);
  EXPECT_EQ(client.post("/v1/cluster/transfer", R"({"node":"b"})").text("detail"), none);
}

}  // namespace
}  // namespace lockd
