// Who a client is: in the list of clients, and beside whatever somebody holds or waits for.
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/eventually.h"
#include "journal/testing/temporary_directory.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using boost::json::value;

// The text of a member; empty when it is not there.
std::string text_in(const value& json, std::string_view member) {
  const value* found = json.as_object().if_contains(member);
  return found == nullptr ? "" : std::string(found->as_string());
}

std::int64_t number_in(const value& json, std::string_view member) {
  const value* found = json.as_object().if_contains(member);
  return found == nullptr ? -1 : found->as_int64();
}

// The clients on a page, by their names.
std::map<std::string, value> clients_of(HttpClient& client, const std::string& query = "") {
  const HttpReply page = client.get("/v1/clients?" + query);
  EXPECT_EQ(page.status, 200) << page.body;
  std::map<std::string, value> found;
  const value json = page.json();
  for (const value& one : json.at("clients").as_array()) found[text_in(one, "client")] = one;
  return found;
}

LineClient connect_as(HttpServer& server, std::string_view name, std::string_view note) {
  LineClient line = server.connect();
  EXPECT_EQ(line.ask(request("client", name, note)), "ok");
  return line;
}

bool is_here(const std::string& peer) { return peer.starts_with("127.0.0.1:"); }

TEST(HttpClients, EveryConnectionIsListed) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(client.get("/livez").status, 200) << "it has come first";
  LineClient ann = connect_as(server, "ann@build-7:4711", "deploy");
  LineClient unnamed = server.connect();
  ASSERT_EQ(unnamed.ask(request("ping", "", "")), "ok");

  const HttpReply page = client.get("/v1/clients");
  ASSERT_EQ(page.status, 200);
  const value json = page.json();
  ASSERT_EQ(json.at("clients").as_array().size(), 3u) << page.body;
  EXPECT_FALSE(json.as_object().contains("next"));
  for (const value& one : json.at("clients").as_array()) {
    EXPECT_GT(number_in(one, "client_id"), 0);
    EXPECT_TRUE(is_here(text_in(one, "peer"))) << page.body;
    EXPECT_GE(number_in(one, "connected_ms"), number_in(one, "idle_ms"));
    EXPECT_EQ(number_in(one, "subscriptions"), 0);
  }
  const value browser = json.at("clients").at(0);
  EXPECT_EQ(text_in(browser, "protocol"), "http");
  EXPECT_FALSE(browser.as_object().contains("client"));
  EXPECT_FALSE(browser.as_object().contains("note"));
  EXPECT_FALSE(browser.as_object().contains("token_name"));
  const value named = json.at("clients").at(1);
  EXPECT_EQ(text_in(named, "protocol"), "line");
  EXPECT_EQ(text_in(named, "client"), "ann@build-7:4711");
  EXPECT_EQ(text_in(named, "note"), "deploy");
}

TEST(HttpClients, AClientIsListedWithWhatItHas) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient ann = connect_as(server, "ann", "");
  LineClient bob = connect_as(server, "bob", "");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0"))), "ok <token> 33");
  ASSERT_EQ(masked(ann.ask(request("sl", "s", "0 3"))), "ok <token> 33");
  ASSERT_EQ(bob.ask(request("e", "k", "")), "queued");
  ASSERT_EQ(bob.ask(request("listen", "a.*", "")), "ok");
  ASSERT_EQ(bob.ask(request("listen", "b.>", "g")), "ok");
  ASSERT_EQ(bob.ask(request("listen", "b.>", "g")), "ok");

  auto clients = clients_of(client);
  EXPECT_EQ(number_in(clients["ann"], "holds"), 2);
  EXPECT_EQ(number_in(clients["ann"], "places"), 0);
  EXPECT_EQ(number_in(clients["bob"], "holds"), 0);
  EXPECT_EQ(number_in(clients["bob"], "places"), 1);
  EXPECT_EQ(number_in(clients["bob"], "subscriptions"), 2);
  ASSERT_EQ(bob.ask(request("unlisten", "a.*", "")), "ok");
  EXPECT_EQ(number_in(clients_of(client)["bob"], "subscriptions"), 1);
}

TEST(HttpClients, WhoHasLeftIsNotListed) {
  HttpServer server;
  HttpClient client = server.browse();
  { LineClient ann = connect_as(server, "ann", ""); }
  EXPECT_TRUE(eventually([&] { return !clients_of(client).contains("ann"); }));
}

TEST(HttpClients, PagesListEveryClientOnce) {
  HttpServer server;
  HttpClient client = server.browse();
  std::vector<LineClient> lines;
  for (int i = 0; i < 7; ++i) lines.push_back(connect_as(server, "c" + std::to_string(i), ""));
  std::map<std::string, int> seen;
  std::string after;
  int pages = 0;
  for (bool more = true; more; ++pages) {
    const value page = client.get("/v1/clients?limit=3" + after).json();
    const auto& clients = page.at("clients").as_array();
    EXPECT_LE(clients.size(), 3u);
    for (const value& one : clients) ++seen[text_in(one, "client")];
    more = page.as_object().contains("next");
    if (more) after = "&after=" + text_in(page, "next");
  }
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(seen.size(), 8u) << "seven, and who asks";
  for (const auto& [name, times] : seen) EXPECT_EQ(times, 1) << name;
}

TEST(HttpClients, BadQuestionsAreRefused) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* query : {"limit=0", "limit=1001", "after=x", "after=0", "after=-1", "sort=id"}) {
    EXPECT_EQ(client.get(std::string("/v1/clients?") + query).status, 400) << query;
  }
}

// Beside holders.

TEST(HttpClients, AHoldAndAPlaceSayWhoseTheyAre) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient ann = connect_as(server, "ann", "deploy");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0"))), "ok <token> 33");
  LineClient bob = connect_as(server, "bob", "");
  ASSERT_EQ(bob.ask(request("e", "k", "")), "queued");
  LineClient unnamed = server.connect();
  ASSERT_EQ(unnamed.ask(request("e", "k", "")), "queued");

  const value key = client.get("/v1/locks?key=k").json().at("locks").at(0);
  const value hold = key.at("holds").at(0);
  EXPECT_EQ(text_in(hold, "holder"), "tcp:" + std::to_string(number_in(hold, "client_id")));
  EXPECT_EQ(text_in(hold, "client"), "ann");
  EXPECT_EQ(text_in(hold, "note"), "deploy");
  EXPECT_TRUE(is_here(text_in(hold, "peer")));
  const value place = key.at("queue").at(0);
  EXPECT_EQ(text_in(place, "client"), "bob");
  EXPECT_FALSE(place.as_object().contains("note"));
  const value strangers = key.at("queue").at(1);
  EXPECT_FALSE(strangers.as_object().contains("client"));
  EXPECT_TRUE(is_here(text_in(strangers, "peer"))) << "as its connection has it";
  EXPECT_NE(text_in(strangers, "peer"), text_in(place, "peer"));
}

TEST(HttpClients, ANameAppliesToWhatIsAskedForAfterIt) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = connect_as(server, "ann", "first");
  ASSERT_EQ(masked(line.ask(request("l", "a", "0"))), "ok <token> 33");
  ASSERT_EQ(line.ask(request("client", "ann", "second")), "ok");
  ASSERT_EQ(masked(line.ask(request("l", "b", "0"))), "ok <token> 33");
  const auto note_of = [&](const std::string& key) {
    return text_in(client.get("/v1/locks?key=" + key).json().at("locks").at(0).at("holds").at(0),
                   "note");
  };
  EXPECT_EQ(note_of("a"), "first");
  EXPECT_EQ(note_of("b"), "second");
}

TEST(HttpClients, ARefusalSaysWhoIsInTheWay) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient ann = connect_as(server, "ann", "deploy");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0"))), "ok <token> 33");
  for (const char* wait : {R"("wait_ms":0)", R"("wait_ms":1)"}) {
    const HttpReply refused = client.post("/v1/acquire", hold_json("k", "b", wait));
    ASSERT_EQ(refused.status, 409);
    const value holder = refused.json().at("held_by");
    EXPECT_EQ(text_in(holder, "client"), "ann");
    EXPECT_EQ(text_in(holder, "note"), "deploy");
    EXPECT_TRUE(is_here(text_in(holder, "peer")));
  }
}

TEST(HttpClients, AnAcquireHasANote) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a", R"("note":"nightly")")).status, 200);
  ASSERT_EQ(
      client.post("/v1/semaphores/acquire", hold_json("k", "b", R"("limit":2,"note":"x")")).status,
      200);
  const value locks = client.get("/v1/locks?key=k").json().at("locks");
  const value hold = locks.at(0).at("holds").at(0);
  EXPECT_EQ(text_in(hold, "note"), "nightly");
  EXPECT_TRUE(is_here(text_in(hold, "peer")));
  EXPECT_FALSE(hold.as_object().contains("client")) << "the holder is the name";
  EXPECT_FALSE(hold.as_object().contains("client_id"));
  EXPECT_EQ(text_in(locks.at(1).at("holds").at(0), "note"), "x");
  const std::string too_long = R"("note":")" + std::string(257, 'n') + "\"";
  for (const std::string& note :
       {too_long, std::string(R"("note":"a\tb")"), std::string(R"("note":5)")}) {
    EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "c", note)).status, 400) << note;
  }
}

TEST(HttpClients, EventsSayWhoItWas) {
  HttpServer server;
  HttpClient watcher = server.browse();
  watcher.open_stream("/v1/events");
  LineClient ann = connect_as(server, "ann", "deploy");
  const std::string grant = ann.ask(request("l", "k", "0"));
  EXPECT_NE(watcher.read_event().find(R"("client":"ann","peer":"127.0.0.1:)"), std::string::npos);
  ASSERT_EQ(ann.ask(request("r", "k", token_of(grant))), "ok");
  const std::string released = watcher.read_event();
  EXPECT_TRUE(released.starts_with("released "));
  EXPECT_TRUE(released.ends_with(R"(,"note":"deploy"})")) << released;
}

TEST(HttpClients, OverHttpStatsSayWhoseALockIs) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient ann = connect_as(server, "ann", "");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0"))), "ok <token> 33");
  const value lock = client.get("/v1/stats").json().at("locks").at(0);
  EXPECT_EQ(text_in(lock, "client"), "ann");
  EXPECT_EQ(text_in(lock, "holder"), "tcp:" + std::to_string(number_in(lock, "owner_conn_id")));
  EXPECT_EQ(ann.ask(request("stats", "", "")).find("\"client\""), std::string::npos);
}

TEST(HttpClients, AfterARestartAHoldStillSaysWhoseItWas) {
  const TemporaryDirectory directory;
  Options options = http_options();
  options.wal = directory.path();
  std::optional<HttpServer> server(std::in_place, options);
  LineClient ann = connect_as(*server, "ann", "deploy");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0 600"))), "ok <token> 600");
  HttpClient client = server->browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("h", "a", R"("note":"nightly")")).status, 200);
  const std::string peer =
      text_in(client.get("/v1/locks?key=k").json().at("locks").at(0).at("holds").at(0), "peer");

  server.reset();
  server.emplace(options);
  HttpClient again = server->browse();
  const value hold = again.get("/v1/locks?key=k").json().at("locks").at(0).at("holds").at(0);
  EXPECT_EQ(text_in(hold, "holder"), "tcp:0");
  EXPECT_FALSE(hold.as_object().contains("client_id"));
  EXPECT_EQ(text_in(hold, "client"), "ann");
  EXPECT_EQ(text_in(hold, "peer"), peer);
  EXPECT_EQ(text_in(hold, "note"), "deploy");
  const value named = again.get("/v1/locks?key=h").json().at("locks").at(0).at("holds").at(0);
  EXPECT_EQ(text_in(named, "holder"), "a");
  EXPECT_EQ(text_in(named, "note"), "nightly");
}

}  // namespace
}  // namespace lockd
