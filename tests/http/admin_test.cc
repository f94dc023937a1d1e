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

}  // namespace
}  // namespace lockd
