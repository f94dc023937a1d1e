// What is held and waited for: stats, and the pages of the listing.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "support/http_client.h"

namespace lockd {
namespace {

Options roomy_options() {
  Options options = http_options();
  options.max_locks = 100'000;
  return options;
}

// Locks of `prefix` and a number, all of them held.
void take_many(HttpClient& client, const std::string& prefix, int count) {
  std::string requests;
  for (int i = 0; i < count; ++i) {
    requests += client.written("POST", "/v1/acquire",
                               hold_json(prefix + std::to_string(i), "a", R"("ttl_ms":600000)"));
  }
  ASSERT_TRUE(client.send(requests));
  for (int i = 0; i < count; ++i) ASSERT_EQ(client.read_reply().status, 200);
}

// How often each key is listed, over all pages.
std::map<std::string, int> walk(HttpClient& client, const std::string& query,
                                std::size_t page_max) {
  std::map<std::string, int> seen;
  std::string after;
  for (;;) {
    const HttpReply page = client.get("/v1/locks?" + query + after);
    EXPECT_EQ(page.status, 200) << page.body;
    if (page.status != 200) return seen;
    const boost::json::value json = page.json();
    const auto& locks = json.at("locks").as_array();
    EXPECT_LE(locks.size(), page_max);
    for (const auto& lock : locks) ++seen[std::string(lock.at("key").as_string())];
    const auto* next = json.as_object().if_contains("next");
    if (next == nullptr) return seen;
    after = "&after=" + std::string(next->as_string());
  }
}

// The keys of a page, in its order, each with a blank behind it.
std::string keys_of(const HttpReply& page) {
  std::string keys;
  const boost::json::value json = page.json();
  for (const auto& lock : json.at("locks").as_array()) {
    keys += std::string(lock.at("key").as_string()) + " ";
  }
  return keys;
}

TEST(HttpListing, AKeyIsShownWithItsHoldAndItsLine) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply grant = client.post("/v1/acquire", hold_json("k", "a", R"("ttl_ms":60000)"));
  HttpClient waiter = server.browse();
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("k", "b", R"("wait_ms":60000)")));
  ASSERT_TRUE(await_line(client, "k", 1));
  LineClient line = server.connect();
  line.send(request("l", "k", "60"));
  ASSERT_TRUE(await_line(client, "k", 2));
  const std::string key =
      R"({"kind":"lock","key":"k","limit":1,"holders":1,"waiters":2,"token":<token>,"holds":[)"
      R"({"holder":"a","token":<token>,"held_ms":<ms>,"ttl_ms":60000,"expires_in_ms":<ms>,)"
      R"("expires_at_unix_ms":<time>}],"queue":[{"holder":"b","waited_ms":<ms>},)"
      R"({"holder":"tcp:<id>","waited_ms":<ms>}]})";
  EXPECT_EQ(shown(client.get("/v1/locks")), R"(200 {"locks":[)" + key + "]}");
  const HttpReply one = client.get("/v1/locks?key=k");
  EXPECT_EQ(shown(one), R"(200 {"locks":[)" + key + "]}");
  const boost::json::value hold = one.json().at("locks").at(0).at("holds").at(0);
  EXPECT_EQ(hold.at("token").as_int64(), grant.number("token"));
  EXPECT_NEAR(static_cast<double>(hold.at("expires_at_unix_ms").as_int64()),
              static_cast<double>(grant.number("expires_at_unix_ms")), 10'000);
  EXPECT_LE(hold.at("expires_in_ms").as_int64(), 60'000);
}

TEST(HttpListing, ALockAndASemaphoreOfOneName) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  for (const char* holder : {"b", "c"}) {
    ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("k", holder, R"("limit":3)")).status,
              200);
  }
  const std::string listed = client.get("/v1/locks?key=k").body;
  EXPECT_NE(listed.find(R"("kind":"lock","key":"k","limit":1,"holders":1)"), std::string::npos);
  EXPECT_NE(listed.find(R"("kind":"semaphore","key":"k","limit":3,"holders":2)"),
            std::string::npos);
  EXPECT_EQ(client.get("/v1/locks?key=other").body, "{\"locks\":[]}\n");
  for (const char* no_name : {"key=%ff", "key=", "holder="}) {  // as by a variable that is not set
    EXPECT_EQ(client.get(std::string("/v1/locks?") + no_name).status, 400) << no_name;
  }
}

TEST(HttpListing, PagesVisitEveryKeyOnce) {
  HttpServer server(roomy_options());
  HttpClient client = server.browse();
  constexpr int kKeys = 2500;
  ASSERT_NO_FATAL_FAILURE(take_many(client, "k", kKeys));
  for (const std::size_t limit : {1000U, 100U, 7U}) {
    const auto seen = walk(client, "limit=" + std::to_string(limit), limit);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(kKeys));
    for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << key;
  }
  EXPECT_EQ(walk(client, "", 100).size(), static_cast<std::size_t>(kKeys));
}

TEST(HttpListing, APrefixChoosesKeys) {
  HttpServer server(roomy_options());
  HttpClient client = server.browse();
  ASSERT_NO_FATAL_FAILURE(take_many(client, "a/", 300));
  ASSERT_NO_FATAL_FAILURE(take_many(client, "b/", 300));
  ASSERT_NO_FATAL_FAILURE(take_many(client, "a", 3));
  EXPECT_EQ(walk(client, "prefix=a/&limit=50", 50).size(), 300U);
  EXPECT_EQ(walk(client, "prefix=a%2F1&limit=1000", 1000).size(), 111U);
  EXPECT_EQ(walk(client, "prefix=&limit=1000", 1000).size(), 603U);
  EXPECT_EQ(client.get("/v1/locks?prefix=nobody").body, "{\"locks\":[]}\n");
}

TEST(HttpListing, TheLongestLinesFirst) {
  HttpServer server(roomy_options());
  HttpClient client = server.browse();
  ASSERT_NO_FATAL_FAILURE(take_many(client, "k", 100));
  std::vector<HttpClient> waiters;
  for (const auto& [key, count] : std::map<std::string, int>{{"k3", 3}, {"k50", 1}, {"k77", 2}}) {
    for (int i = 1; i <= count; ++i) {
      waiters.push_back(server.browse());
      waiters.back().send(waiters.back().written(
          "POST", "/v1/acquire", hold_json(key, "w" + std::to_string(i), R"("wait_ms":600000)")));
      ASSERT_TRUE(await_line(client, key, i));
    }
  }
  const HttpReply busiest = client.get("/v1/locks?order=waiters&limit=3");
  EXPECT_EQ(keys_of(busiest), "k3 k77 k50 ");
  EXPECT_FALSE(busiest.json().as_object().contains("next"));
  EXPECT_EQ(client.get("/v1/locks?order=waiters&limit=1000").json().at("locks").as_array().size(),
            100U);
}

// Waits for `key` on a connection of its own.
HttpClient wait_for(HttpServer& server, HttpClient& observer, const std::string& key,
                    const std::string& holder, int waiters) {
  HttpClient waiter = server.browse();
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json(key, holder, R"("wait_ms":600000)")));
  EXPECT_TRUE(await_line(observer, key, waiters));
  return waiter;
}

TEST(HttpListing, TheLongestWaitFirstOfAllKeys) {
  HttpServer server(roomy_options());
  HttpClient client = server.browse();
  ASSERT_NO_FATAL_FAILURE(take_many(client, "k", 100));
  std::vector<HttpClient> waiters;
  for (const char* key : {"k77", "k3", "k50"}) {
    waiters.push_back(wait_for(server, client, key, "w", 1));
  }
  waiters.push_back(wait_for(server, client, "k50", "late", 2));
  const HttpReply page = client.get("/v1/locks?order=longest_wait&limit=3");
  EXPECT_EQ(keys_of(page), "k77 k3 k50 ");
  EXPECT_FALSE(page.json().as_object().contains("next"));
  EXPECT_EQ(keys_of(client.get("/v1/locks?order=longest_wait&limit=1")), "k77 ");
  EXPECT_EQ(keys_of(client.get("/v1/locks?order=longest_wait&limit=2&contains=0")).substr(0, 4),
            "k50 ");
}

// A renewal does not make a hold younger.
TEST(HttpListing, TheLongestHoldFirstOfAllKeys) {
  HttpServer server(roomy_options());
  HttpClient client = server.browse();
  const std::int64_t token = client.post("/v1/acquire", hold_json("old", "a")).number("token");
  ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("older", "a", R"("limit":2)")).status,
            200);
  ASSERT_NO_FATAL_FAILURE(take_many(client, "k", 100));
  ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("older", "b", R"("limit":2)")).status,
            200);
  ASSERT_EQ(client.post("/v1/renew", hold_json("old", "a", token)).status, 200);
  const HttpReply page = client.get("/v1/locks?order=longest_hold&limit=3");
  EXPECT_EQ(keys_of(page), "old older k0 ");
  EXPECT_EQ(client.get("/v1/locks?order=held").status, 400);
  EXPECT_EQ(client.get("/v1/locks?order=").status, 400);
}

TEST(HttpListing, WhatAKeyContainsChoosesIt) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* key : {"orders/42/print", "42", "orders/7"}) {
    ASSERT_EQ(client.post("/v1/acquire", hold_json(key, "a")).status, 200);
  }
  EXPECT_EQ(keys_of(client.get("/v1/locks?contains=/42/")), "orders/42/print ");
  EXPECT_EQ(client.get("/v1/locks?contains=42").json().at("locks").as_array().size(), 2U);
  EXPECT_EQ(keys_of(client.get("/v1/locks?contains=42&prefix=orders")), "orders/42/print ");
  EXPECT_EQ(keys_of(client.get("/v1/locks?contains=nothing")), "");
}

TEST(HttpListing, WhatOneHolderHasAndWaitsFor) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("own", "a")).status, 200);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("other", "b")).status, 200);
  ASSERT_EQ(client.post("/v1/acquire", hold_json("wanted", "b")).status, 200);
  HttpClient first = wait_for(server, client, "wanted", "c", 1);
  HttpClient second = wait_for(server, client, "wanted", "a", 2);
  const boost::json::value page =
      client.get("/v1/locks?holder=a&order=longest_hold").json().at("locks");
  ASSERT_EQ(page.as_array().size(), 2U);
  EXPECT_EQ(page.at(0).at("key").as_string(), "own");
  EXPECT_EQ(page.at(1).at("key").as_string(), "wanted");
  EXPECT_EQ(page.at(1).at("holders").as_int64(), 1);
  EXPECT_EQ(page.at(1).at("waiters").as_int64(), 2);
  EXPECT_TRUE(page.at(1).at("holds").as_array().empty());
  ASSERT_EQ(page.at(1).at("queue").as_array().size(), 1U);
  EXPECT_EQ(page.at(1).at("queue").at(0).at("holder").as_string(), "a");
  EXPECT_EQ(keys_of(client.get("/v1/locks?key=own&holder=b")), "");
  EXPECT_EQ(keys_of(client.get("/v1/locks?holder=nobody&idle=true")), "");
}

TEST(HttpListing, WhatOneClientHasAndWaitsFor) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  LineClient other = server.connect();
  ASSERT_TRUE(line.ask(request("l", "mine", "60")).starts_with("ok "));
  ASSERT_TRUE(other.ask(request("l", "theirs", "60")).starts_with("ok "));
  line.send(request("l", "theirs", "60"));
  ASSERT_TRUE(await_line(client, "theirs", 1));
  const boost::json::value mine = client.get("/v1/locks?key=mine").json();
  const std::string holder(mine.at("locks").at(0).at("holds").at(0).at("holder").as_string());
  ASSERT_TRUE(holder.starts_with("tcp:"));
  const HttpReply page = client.get("/v1/locks?order=longest_hold&client_id=" + holder.substr(4));
  EXPECT_EQ(keys_of(page), "mine theirs ");
  EXPECT_TRUE(page.json().at("locks").at(1).at("holds").as_array().empty());
  EXPECT_EQ(page.json().at("locks").at(1).at("queue").at(0).at("holder").as_string(), holder);
  EXPECT_EQ(client.get("/v1/locks?holder=" + holder).json().at("locks").as_array().size(), 2U);
  EXPECT_EQ(keys_of(client.get("/v1/locks?client_id=123456789")), "");
  EXPECT_EQ(client.get("/v1/locks?client_id=0").status, 400);
  EXPECT_EQ(client.get("/v1/locks?client_id=tcp:1").status, 400);
}

// Permits of "s", by h0 to h39.
void take_forty(HttpClient& client) {
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(client
                  .post("/v1/semaphores/acquire",
                        hold_json("s", "h" + std::to_string(i), R"("limit":100)"))
                  .status,
              200);
  }
}

// A list shows 16 holds of a key; who is behind them is found, and shown.
TEST(HttpListing, AHolderBehindManyOthersIsFound) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_NO_FATAL_FAILURE(take_forty(client));
  const boost::json::value found = client.get("/v1/locks?holder=h37").json().at("locks");
  ASSERT_EQ(found.as_array().size(), 1U);
  EXPECT_EQ(found.at(0).at("holders").as_int64(), 40);
  ASSERT_EQ(found.at(0).at("holds").as_array().size(), 1U);
  EXPECT_EQ(found.at(0).at("holds").at(0).at("holder").as_string(), "h37");
}

TEST(HttpListing, IdleKeysAreShownWhenAskedFor) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::int64_t token = client.post("/v1/acquire", hold_json("k", "a")).number("token");
  ASSERT_EQ(client.post("/v1/release", hold_json("k", "a", token)).status, 200);
  EXPECT_EQ(client.get("/v1/locks").body, "{\"locks\":[]}\n");
  EXPECT_EQ(client.get("/v1/locks?idle=false").body, "{\"locks\":[]}\n");
  EXPECT_EQ(shown(client.get("/v1/locks?idle=true")),
            R"(200 {"locks":[{"kind":"lock","key":"k","limit":1,"holders":0,"waiters":0,)"
            R"("token":<token>,"idle_ms":<ms>,"holds":[],"queue":[]}]})");
}

// In a list each key shows 16 of its holds; asked for by name it shows more.
TEST(HttpListing, OfAKeyWithManyHoldsSomeAreShown) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_NO_FATAL_FAILURE(take_forty(client));
  const boost::json::value listed = client.get("/v1/locks").json().at("locks").at(0);
  EXPECT_EQ(listed.at("holders").as_int64(), 40);
  EXPECT_EQ(listed.at("holds").as_array().size(), 16U);
  const boost::json::value named = client.get("/v1/locks?key=s").json().at("locks").at(0);
  EXPECT_EQ(named.at("holds").as_array().size(), 40U);
}

// The place tells nothing of where it is, and cannot be made up.
TEST(HttpListing, APlaceIsOpaqueAndOursOrRefused) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_EQ(client.post("/v1/acquire", hold_json(key, "a")).status, 200);
  }
  const boost::json::value page = client.get("/v1/locks?limit=1").json();
  const std::string next(page.at("next").as_string());
  EXPECT_EQ(next.size(), 32U);
  EXPECT_EQ(client.get("/v1/locks?after=" + next).json().at("locks").as_array().size(), 2U);
  std::vector<std::string> forged = {"0-0", "3f-ffffffffffffffff", std::string(32, '0'),
                                     next.substr(1), next + "0"};
  for (std::size_t i = 0; i < next.size(); ++i) {
    forged.push_back(next);
    forged.back()[i] = next[i] == 'a' ? 'b' : 'a';
  }
  for (const std::string& place : forged) {
    EXPECT_EQ(client.get("/v1/locks?after=" + place).status, 400) << place;
  }
}

TEST(HttpListing, TheStatsAreThoseOfTheLineProtocolAndWhoseALockIs) {
  HttpServer server;
  HttpClient client = server.browse();
  LineClient line = server.connect();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  ASSERT_EQ(client.post("/v1/semaphores/acquire", hold_json("s", "a", R"("limit":2)")).status, 200);
  ASSERT_EQ(line.ask(request("listen", "a.*", "g")), "ok");
  // Leases run down meanwhile.
  const auto without_times = [](std::string text) {
    const std::size_t at = text.find("\"lease_expires_in_s\":");
    return text.erase(at, text.find(',', at) - at);
  };
  const std::string by_line = line.ask(request("stats", "", ""));
  const HttpReply by_http = client.get("/v1/stats");
  const std::string whose = R"(,"holder":"a")";
  std::string alike = shown(by_http.body);
  ASSERT_NE(alike.find(whose), std::string::npos) << alike;
  alike.erase(alike.find(whose), whose.size());
  EXPECT_EQ("ok " + without_times(alike), without_times(by_line) + "\n");
  EXPECT_NE(by_http.body.find(R"("signal_channels":[{"pattern":"a.*","group":"g","listeners":1}])"),
            std::string::npos);
}

}  // namespace
}  // namespace lockd
