// What an admin takes from others: a connection, a hold, a semaphore's limit.
#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <string>

#include "base/testing/eventually.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using boost::json::value;

std::int64_t id_of(HttpClient& admin, const std::string& name) {
  const value page = admin.get("/v1/clients?prefix=" + name).json();
  return page.at("clients").at(0).at("client_id").as_int64();
}

// How many hold the lock.
std::int64_t holders_of(HttpClient& admin, const std::string& key) {
  const value locks = admin.get("/v1/locks?idle=true&key=" + key).json().at("locks");
  return locks.as_array().empty() ? 0 : locks.at(0).at("holders").as_int64();
}

LineClient line_as(HttpServer& server, std::string_view name) {
  LineClient line = server.connect();
  EXPECT_EQ(line.ask(request("client", name, "deploy")), "ok");
  return line;
}

HttpReply disconnect(HttpClient& admin, std::int64_t id) {
  return admin.post("/v1/admin/disconnect",
                    R"({"client_id":)" + std::to_string(id) + R"(,"reason":"it hangs"})");
}

TEST(HttpAdmin, ALineClientIsDisconnected) {
  HttpServer server;
  HttpClient admin = server.browse();
  LineClient ann = line_as(server, "ann");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0 600"))), "ok <token> 600");
  HttpClient watcher = server.browse();
  watcher.open_stream("/v1/events");

  const std::int64_t id = id_of(admin, "ann");
  const HttpReply reply = disconnect(admin, id);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.number("client_id"), id);
  EXPECT_EQ(reply.text("client"), "ann");
  EXPECT_EQ(reply.text("note"), "deploy");
  EXPECT_EQ(reply.text("protocol"), "line");
  EXPECT_TRUE(reply.text("peer").starts_with("127.0.0.1:"));
  EXPECT_EQ(holders_of(admin, "k"), 0) << "its holds have gone when the admin hears";
  EXPECT_TRUE(watcher.read_event().starts_with("disconnected "));
  EXPECT_NE(ann.read_line(), kSilence);
  EXPECT_EQ(disconnect(admin, id).status, 404) << "it is gone";
}

TEST(HttpAdmin, WhoWaitsIsGrantedWhenTheHolderIsDisconnected) {
  HttpServer server;
  HttpClient admin = server.browse();
  LineClient ann = line_as(server, "ann");
  LineClient bob = line_as(server, "bob");
  ASSERT_EQ(masked(ann.ask(request("l", "k", "0 600"))), "ok <token> 600");
  bob.send(request("l", "k", "60"));
  ASSERT_TRUE(await_line(admin, "k", 1));
  ASSERT_EQ(disconnect(admin, id_of(admin, "ann")).status, 200);
  EXPECT_EQ(masked(bob.read_line()), "ok <token> 33");
}

TEST(HttpAdmin, AnHttpClientIsDisconnectedAndKeepsItsHolds) {
  HttpServer server;
  HttpClient admin = server.browse();
  ASSERT_EQ(admin.get("/livez").status, 200) << "it has come first";
  HttpClient other = server.browse();
  ASSERT_EQ(other.post("/v1/acquire", hold_json("k", "a")).status, 200);
  const value clients = admin.get("/v1/clients").json().at("clients");
  ASSERT_EQ(clients.as_array().size(), 2u);
  ASSERT_EQ(disconnect(admin, clients.at(1).at("client_id").as_int64()).status, 200);
  EXPECT_NE(other.read_end(), kSilence);
  EXPECT_EQ(holders_of(admin, "k"), 1) << "they live by their leases";
}

TEST(HttpAdmin, BadDisconnectsAreRefused) {
  HttpServer server;
  HttpClient admin = server.browse();
  EXPECT_EQ(disconnect(admin, 12345).status, 404);
  for (const char* body :
       {R"({"client_id":1})", R"({"reason":"x"})", R"({"client_id":0,"reason":"x"})",
        R"({"client_id":"1","reason":"x"})", R"({"client_id":1,"reason":""})",
        R"({"client_id":1,"reason":"a\nb"})", R"({"client_id":1,"reason":"x","force":true})"}) {
    EXPECT_EQ(admin.post("/v1/admin/disconnect", body).status, 400) << body;
  }
  EXPECT_EQ(admin.get("/v1/clients").status, 200) << "who asks is still there";
}

// Releases.

HttpReply revoke(HttpClient& admin, const std::string& key, const std::string& what) {
  return admin.post("/v1/admin/release",
                    R"({"key":")" + key + R"(","reason":"the host is gone",)" + what + "}");
}

TEST(HttpAdmin, AHoldIsReleasedByItsFence) {
  HttpServer server;
  HttpClient admin = server.browse();
  HttpClient watcher = server.browse();
  watcher.open_stream("/v1/events");
  LineClient ann = line_as(server, "ann");
  const std::string grant = ann.ask(request("l", "k", "0 600"));
  ASSERT_TRUE(watcher.read_event().starts_with("granted "));
  const std::string fence =
      std::to_string(admin.get("/v1/locks?key=k").json().at("locks").at(0).at("token").as_int64());

  const HttpReply reply = revoke(admin, "k", R"("token":)" + fence);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(shown(reply), R"(200 {"key":"k","released":[{"holder":"tcp:<id>","token":<token>,)"
                          R"("held_ms":<ms>,"client":"ann","note":"deploy"}]})");
  EXPECT_EQ(ann.read_line(), "lost " + token_of(grant) + " revoked k");
  const std::string event = watcher.read_event();
  EXPECT_TRUE(event.starts_with("revoked ")) << event;
  EXPECT_NE(event.find(R"("reason":"the host is gone","by":"127.0.0.1:)"), std::string::npos)
      << event;
  EXPECT_EQ(ann.ask(request("n", "k", token_of(grant))), "error") << "it holds nothing any more";
  EXPECT_EQ(shown(revoke(admin, "k", R"("token":)" + fence)), R"(409 {"error":"expired"})");
}

TEST(HttpAdmin, AnotherFenceReleasesNothing) {
  HttpServer server;
  HttpClient admin = server.browse();
  const std::int64_t token =
      admin.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":600000)")).number("token");
  for (const std::int64_t other : {token + 1, token + 1000}) {
    EXPECT_EQ(shown(revoke(admin, "k", R"("token":)" + std::to_string(other))),
              R"(409 {"error":"stale_token"})");
  }
  EXPECT_EQ(holders_of(admin, "k"), 1);
  EXPECT_EQ(shown(revoke(admin, "nobody's", R"("token":1)")), R"(409 {"error":"expired"})");
}

TEST(HttpAdmin, AllHoldsOfASemaphoreAreReleased) {
  HttpServer server;
  HttpClient admin = server.browse();
  for (const char* holder : {"a", "b", "c"}) {
    ASSERT_EQ(admin.post("/v1/semaphores/acquire", hold_json("s", holder, R"("limit":3)")).status,
              200);
  }
  EXPECT_EQ(shown(revoke(admin, "s", R"("all":true)")), R"(409 {"error":"expired"})")
      << "there is no lock of that name";
  const HttpReply reply = revoke(admin, "s", R"("kind":"semaphore","all":true)");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json().at("released").as_array().size(), 3u);
}

TEST(HttpAdmin, BadReleasesAreRefused) {
  HttpServer server;
  HttpClient admin = server.browse();
  ASSERT_EQ(admin.post("/v1/acquire", hold_json("k", "a")).status, 200);
  for (const char* body :
       {R"({"key":"k","all":true})", R"({"key":"k","reason":"x"})",
        R"({"key":"k","token":1,"all":true,"reason":"x"})",
        R"({"key":"k","all":false,"reason":"x"})", R"({"all":true,"reason":"x"})",
        R"({"key":"k","kind":"mutex","all":true,"reason":"x"})",
        R"({"key":"k","token":0,"reason":"x"})", R"({"key":"k","all":true,"reason":""})"}) {
    EXPECT_EQ(admin.post("/v1/admin/release", body).status, 400) << body;
  }
  EXPECT_EQ(holders_of(admin, "k"), 1);
}

// Resizes.

HttpReply resize(HttpClient& admin, const std::string& key, int limit) {
  return admin.post("/v1/admin/resize", R"({"key":")" + key + R"(","limit":)" +
                                            std::to_string(limit) + R"(,"reason":"more of it"})");
}

TEST(HttpAdmin, GrowthGrantsToThoseWhoWait) {
  HttpServer server;
  HttpClient admin = server.browse();
  LineClient ann = server.connect();
  LineClient bob = server.connect();
  ASSERT_EQ(masked(ann.ask(request("sl", "s", "0 1 600"))), "ok <token> 600");
  bob.send(request("sl", "s", "60 1"));
  ASSERT_TRUE(await_line(admin, "s", 1));
  EXPECT_EQ(shown(resize(admin, "s", 2)), R"(200 {"key":"s","limit":2})");
  EXPECT_EQ(masked(bob.read_line()), "ok <token> 33");
  EXPECT_EQ(masked(ann.ask(request("sl", "s", "0 2"))), "timeout") << "either limit matches";
  EXPECT_EQ(masked(ann.ask(request("sl", "s", "0 1"))), "timeout");
  EXPECT_EQ(ann.ask(request("sl", "s", "0 5")), "error_limit_mismatch");
}

TEST(HttpAdmin, BadResizesAreRefused) {
  HttpServer server;
  HttpClient admin = server.browse();
  EXPECT_EQ(shown(resize(admin, "idle", 3)), R"(409 {"error":"expired"})");
  for (const char* body : {R"({"key":"s"})", R"({"key":"s","limit":0})", R"({"limit":1})",
                           R"({"key":"s","limit":2147483648})", R"({"key":"s","limit":1,"x":1})",
                           R"({"key":"s","limit":1,"reason":"a\nb"})"}) {
    EXPECT_EQ(admin.post("/v1/admin/resize", body).status, 400) << body;
  }
}

}  // namespace
}  // namespace lockd
