// What happened, as GET /v1/history tells it.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// "granted k a", the latest first; what is about no key by its name alone.
std::vector<std::string> told(HttpClient& client, const std::string& query = "") {
  const HttpReply reply = client.get("/v1/history" + query);
  EXPECT_EQ(reply.status, 200) << reply.body;
  std::vector<std::string> events;
  const boost::json::value document = reply.json();
  for (const auto& event : document.at("events").as_array()) {
    const auto& members = event.as_object();
    std::string text(members.at("event").as_string());
    for (const char* name : {"key", "holder"}) {
      if (members.contains(name)) text += ' ' + std::string(members.at(name).as_string());
    }
    events.push_back(text);
  }
  return events;
}
using ToldEvents = std::vector<std::string>;

TEST(HttpHistory, BeginsWithTheStart) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply reply = client.get("/v1/history");
  const auto started = reply.json().at("events").at(0);
  EXPECT_EQ(started.at("event").as_string(), "started");
  EXPECT_EQ(started.at("recovered_holds").as_int64(), 0);
  EXPECT_FALSE(started.at("version").as_string().empty());
}

TEST(HttpHistory, TellsTheLatestFirst) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::int64_t token = client.post("/v1/acquire", hold_json("k", "a")).number("token");
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "b", R"("wait_ms":1)")).status, 409);
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", token)).status, 200);
  EXPECT_EQ(told(client),
            (ToldEvents{"released k a", "gave_up k b", "queued k b", "granted k a", "started"}));
  EXPECT_EQ(told(client, "?limit=2"), (ToldEvents{"released k a", "gave_up k b"}));
}

// A member of /v1/events is one here, too.
TEST(HttpHistory, HasTheMembersOfEvents) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::int64_t token =
      client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":60000)")).number("token");
  const auto granted = client.get("/v1/history?key=k").json().at("events").at(0);
  EXPECT_EQ(granted.at("kind").as_string(), "lock");
  EXPECT_EQ(granted.at("token").as_int64(), token);
  EXPECT_EQ(granted.at("ttl_ms").as_int64(), 60'000);
  EXPECT_EQ(granted.at("waited_ms").as_int64(), 0);
  EXPECT_EQ(granted.at("limit").as_int64(), 1);
  EXPECT_EQ(granted.at("holders").as_int64(), 1);
  EXPECT_GT(granted.at("at_unix_ms").as_int64(), 0);
}

TEST(HttpHistory, AnswersWhatIsAskedFor) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  ASSERT_TRUE(line.ask(request("l", "line", "5")).starts_with("ok "));
  for (const char* key : {"k", "l"}) {
    ASSERT_EQ(client.post("/v1/acquire", hold_json(key, "a")).status, 200);
  }
  const auto of_line = client.get("/v1/history?key=line").json().at("events").at(0);
  const std::string holder(of_line.at("holder").as_string());
  const std::string id = std::to_string(of_line.at("client_id").as_int64());
  EXPECT_EQ(holder, "tcp:" + id);
  EXPECT_EQ(told(client, "?key=k"), ToldEvents{"granted k a"});
  EXPECT_EQ(told(client, "?holder=a"), (ToldEvents{"granted l a", "granted k a"}));
  EXPECT_EQ(told(client, "?holder=" + holder), ToldEvents{"granted line " + holder});
  EXPECT_EQ(told(client, "?client_id=" + id), ToldEvents{"granted line " + holder});
  EXPECT_EQ(told(client, "?client=nobody"), ToldEvents{});
  EXPECT_EQ(told(client, "?event=released"), ToldEvents{});
  EXPECT_EQ(told(client, "?event=started"), ToldEvents{"started"});
  EXPECT_EQ(told(client, "?since_unix_ms=9000000000000"), ToldEvents{});
  EXPECT_EQ(told(client, "?since_unix_ms=1").size(), 4u);
}

TEST(HttpHistory, RefusesWhatItDoesNotKnow) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* query :
       {"?event=nothing", "?event=", "?limit=0", "?limit=1001", "?client_id=x", "?k=v"}) {
    EXPECT_EQ(client.get(std::string("/v1/history") + query).status, 400) << query;
  }
}

TEST(HttpHistory, IsOffOnDemand) {
  Options options = http_options();
  options.history = 0;
  HttpServer server(options);
  HttpClient client = server.browse();
  EXPECT_EQ(client.get("/v1/history").status, 404);
}

TEST(HttpHistory, HasLeasesThatRanOutAndRefusals) {
  Options options = http_options();
  options.max_waiters = 1;
  HttpServer server(options);
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":600000)")).status, 200);
  HttpClient waiter = server.browse();
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "b", R"("wait_ms":600000)")));
  ASSERT_TRUE(await_line(client, "k", 1));
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "c", R"("wait_ms":600000)")).status, 429);
  const auto refused = client.get("/v1/history?event=refused").json().at("events").at(0);
  EXPECT_EQ(refused.at("holder").as_string(), "c");
  EXPECT_EQ(refused.at("reason").as_string(), "max_waiters");
  ASSERT_EQ(client.post("/v1/acquire", hold_json("short", "a", R"("ttl_ms":1)")).status, 200);
  while (told(client, "?event=expired") != ToldEvents{"expired short a"}) {
    std::this_thread::sleep_for(1ms);
  }
}

TEST(HttpHistory, HasFailedAuthentication) {
  Options options = http_options();
  options.secret = options.auth_token = "open sesame";
  HttpServer server(options);
  LineClient stranger = server.connect();
  stranger.ask(request("auth", "_", "wrong"));
  HttpClient client = server.browse();
  client.fields = "Authorization: Bearer open sesame\r\n";
  while (told(client, "?event=auth_failed") != ToldEvents{"auth_failed"}) {
    std::this_thread::sleep_for(1ms);
  }
  const HttpReply reply = client.get("/v1/history?event=auth_failed");
  const auto failed = reply.json().at("events").at(0);
  EXPECT_EQ(failed.at("protocol").as_string(), "line");
  EXPECT_TRUE(failed.at("peer").as_string().starts_with("127.0.0.1:"));
}

TEST(HttpHistory, HasConnectionsThatWereTooMany) {
  Options options = http_options();
  options.max_connections = 1;
  HttpServer server(options);
  HttpClient client = server.browse();
  ASSERT_EQ(told(client), ToldEvents{"started"});
  LineClient other = server.connect();
  while (told(client, "?event=refused") != ToldEvents{"refused"}) {
    std::this_thread::sleep_for(1ms);
  }
  const auto refused = client.get("/v1/history").json().at("events").at(0);
  EXPECT_EQ(refused.at("reason").as_string(), "max_connections");
  EXPECT_EQ(refused.at("protocol").as_string(), "line");
}

// At most a second or so late, and never early.
TEST(HttpHistory, HasSlowWaitsAndHolds) {
  Options options = http_options();
  options.slow_wait = 100ms;
  options.slow_hold = 200ms;
  HttpServer server(options);
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":600000)")).status, 200);
  HttpClient waiter = server.browse();
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "b", R"("wait_ms":600000)")));
  while (told(client, "?event=slow_wait").empty() || told(client, "?event=slow_hold").empty()) {
    std::this_thread::sleep_for(10ms);
  }
  const auto wait = client.get("/v1/history?event=slow_wait").json().at("events").at(0);
  const auto hold = client.get("/v1/history?event=slow_hold").json().at("events").at(0);
  EXPECT_GE(wait.at("waited_ms").as_int64(), 100);
  EXPECT_GE(hold.at("held_ms").as_int64(), 200);
  EXPECT_EQ(wait.at("holder").as_string(), "b");
  EXPECT_EQ(hold.at("holder").as_string(), "a");
}

}  // namespace
}  // namespace lockd
