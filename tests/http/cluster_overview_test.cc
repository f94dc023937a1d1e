// What a server's overview says of its cluster.
#include <gtest/gtest.h>

#include <boost/json/value.hpp>
#include <chrono>
#include <string>

#include "lockd/clock.h"
#include "support/http_client.h"
#include "support/server_cluster.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

class ClusterOverview : public testing::Test {
 protected:
  ClusterOverview() { cluster_.lead("a"); }

  json::value overview_of(const std::string& node) {
    return cluster_.browse(node).get("/v1/overview?local=true").json();
  }
  json::object cluster_of(const std::string& node) {
    return overview_of(node).at("cluster").as_object();
  }

  ServerCluster cluster_{ServerCluster::forwarding()};
  SystemClock clock_;
};

TEST_F(ClusterOverview, SaysWhomAServerFollowsAndHowFar) {
  ClusterStatus status{.behind = 12, .caught_up = true};
  status.lags_since = clock_.now() - 3s;
  status.answered = clock_.now() - 40ms;
  status.not_ready = "catching_up";
  cluster_.await_link("b");
  cluster_.set_status("b", status);
  EXPECT_FALSE(overview_of("b").at("ready").as_bool());
  const json::object cluster = cluster_of("b");
  EXPECT_EQ(cluster.at("leader").as_string(), "a");
  EXPECT_EQ(cluster.at("behind").to_number<int>(), 12);
  EXPECT_GE(cluster.at("lag_s").to_number<double>(), 3.0);
  EXPECT_GE(cluster.at("etcd_silent_s").to_number<double>(), 0.04);
  EXPECT_EQ(cluster.at("not_ready").as_string(), "catching_up");
  EXPECT_TRUE(cluster.at("linked").as_bool());
  EXPECT_FALSE(cluster.contains("unreadable"));
}

TEST_F(ClusterOverview, LeavesOutWhatThereIsNothingToSayOf) {
  const json::object cluster = cluster_of("a");
  EXPECT_EQ(cluster.at("lag_s").to_number<double>(), 0.0);
  for (const char* name : {"etcd_silent_s", "not_ready", "unreadable", "linked"}) {
    EXPECT_FALSE(cluster.contains(name)) << name;  // it leads, and never had to ask etcd
  }
  cluster_.lead_nobody();
  EXPECT_EQ(cluster_of("b").at("leader").as_string(), "-");
}

TEST_F(ClusterOverview, NamesWhatCannotBeRead) {
  cluster_.set_status("c", {.unreadable = "batch 2a/7 is damaged", .not_ready = "unreadable"});
  const json::object cluster = cluster_of("c");
  EXPECT_EQ(cluster.at("unreadable").as_string(), "batch 2a/7 is damaged");
  EXPECT_EQ(cluster.at("not_ready").as_string(), "unreadable");
}

TEST_F(ClusterOverview, TellsOfEachServerWhatItIs) {
  ClusterStatus status{.caught_up = true};
  const NodeRecord a{.node = "a", .address = "a:1", .leads = true, .program = "9.1"};
  const NodeRecord b{.node = "b", .address = "b:1", .behind = 7, .not_ready = "catching_up"};
  status.members = {{a, clock_.now()}, {b, clock_.now() - 9s}};
  cluster_.set_status("c", status);
  const json::object cluster = cluster_of("c");
  const json::array& nodes = cluster.at("nodes").as_array();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].at("role").as_string(), "leader");
  EXPECT_EQ(nodes[0].at("version").as_string(), "9.1");
  EXPECT_TRUE(nodes[0].at("ready").as_bool());
  EXPECT_FALSE(nodes[1].as_object().contains("version"));  // an older server does not say it
  EXPECT_FALSE(nodes[1].at("ready").as_bool());
  EXPECT_GE(nodes[1].at("silent_s").to_number<double>(), 9.0);
}

}  // namespace
}  // namespace lockd
