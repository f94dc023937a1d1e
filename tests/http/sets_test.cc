// Several keys in one step over HTTP: all of them or none.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "server/server.h"
#include "support/http_client.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// {"keys":["a","b"],"holder":"cart"} and what else there is.
std::string keys_json(std::string_view keys, std::string_view holder, std::string_view more = {}) {
  std::string json = R"({"keys":)" + std::string(keys) + R"(,"holder":")" + std::string(holder);
  json += '"';
  if (!more.empty()) (json += ',') += more;
  return json + '}';
}

std::string items_json(std::string_view items, std::string_view holder,
                       std::string_view more = {}) {
  std::string json = keys_json(items, holder, more);
  return json.replace(2, 4, "items");
}

std::string with_token(std::int64_t token) { return R"("token":)" + std::to_string(token); }

class HttpSets : public testing::Test {
 protected:
  HttpReply take(std::string_view keys, std::string_view holder, std::string_view more = {}) {
    return client_.post("/v1/acquire", keys_json(keys, holder, more));
  }
  HttpReply take_one(std::string_view key, std::string_view holder, std::string_view more = {}) {
    return client_.post("/v1/acquire", hold_json(key, holder, more));
  }
  void give_back(std::string_view key, std::string_view holder, std::int64_t token) {
    EXPECT_EQ(client_.post("/v1/release", hold_json(key, holder, token)).status, 200);
  }
  static void begin(HttpClient& waiter, std::string_view body) {
    waiter.send(waiter.written("POST", "/v1/acquire", body));
  }
  std::int64_t holders(std::string_view key) {
    const HttpReply reply = client_.get("/v1/locks?key=" + std::string(key));
    const boost::json::value json = reply.json();
    const auto& locks = json.at("locks").as_array();
    return locks.empty() ? 0 : locks[0].at("holders").as_int64();
  }

  HttpServer server_;
  HttpClient client_ = server_.browse();
};

TEST_F(HttpSets, AllAreGrantedUnderOneFenceAndLiveOnTheirOwn) {
  const HttpReply set = take(R"(["a","b"])", "cart", R"("ttl_ms":60000)");
  EXPECT_EQ(shown(set), R"(200 {"keys":["a","b"],"holder":"cart","token":<token>,)"
                        R"("ttl_ms":60000,"expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  const std::int64_t token = set.number("token");
  EXPECT_EQ(client_.get("/v1/fence?key=a").number("token"), token);
  EXPECT_EQ(client_.get("/v1/fence?key=b").number("token"), token);
  EXPECT_EQ(client_.post("/v1/renew", hold_json("a", "cart", token)).status, 200);
  give_back("b", "cart", token);
  EXPECT_EQ(take_one("b", "other").status, 200);
  EXPECT_EQ(take_one("a", "other").status, 409);
}

TEST_F(HttpSets, ARefusalNamesEachKeyThatIsInTheWay) {
  ASSERT_EQ(take_one("b", "ann").status, 200);
  ASSERT_EQ(take_one("c", "bob").status, 200);
  EXPECT_EQ(shown(take(R"(["a","b","c"])", "cart")),
            R"(409 {"error":"held","conflicts":[)"
            R"({"key":"b","kind":"lock",)" +
                held_by("ann", "exclusive") + R"(,"waiters":0},{"key":"c","kind":"lock",)" +
                held_by("bob", "exclusive") + R"(,"waiters":0}]})");
  EXPECT_EQ(holders("a"), 0);
  EXPECT_EQ(shown(take(R"(["a","b"])", "cart", R"("wait_ms":1)")),
            R"(409 {"error":"wait_timeout","conflicts":[)"
            R"({"key":"b","kind":"lock",)" +
                held_by("ann", "exclusive") + R"(,"waiters":0}]})");
  EXPECT_EQ(take_one("a", "other").status, 200);
}

TEST_F(HttpSets, ARetryGetsTheGrantBackAndAPartIsRefusedAtOnce) {
  const HttpReply first = take(R"(["a","b"])", "cart", R"("ttl_ms":60000)");
  const HttpReply again = take(R"(["b","a"])", "cart", R"("ttl_ms":900000)");
  EXPECT_EQ(again.number("token"), first.number("token"));
  EXPECT_EQ(again.number("ttl_ms"), 900'000);
  const auto begun = SteadyClock::now();
  for (const char* wait : {"", R"("wait_ms":60000)"}) {
    EXPECT_EQ(shown(take(R"(["b","c"])", "cart", wait)),
              R"(409 {"error":"held","conflicts":[{"key":"b","kind":"lock",)" +
                  held_by("cart", "exclusive") + R"(,"waiters":0,"own":true}]})");
  }
  EXPECT_LT(SteadyClock::now() - begun, 50s);
  // Fences of different keys may be equal, but not after one more grant.
  give_back("c", "cart", take_one("c", "cart").number("token"));
  ASSERT_NE(take_one("c", "cart").number("token"), first.number("token"));
  EXPECT_EQ(take(R"(["a","b","c"])", "cart").status, 409);
}

TEST_F(HttpSets, AWaitingSetIsGrantedWhenTheLastOfItsKeysIsFree) {
  HttpClient waiter = server_.browse();
  const std::int64_t a = take_one("a", "ann").number("token");
  const std::int64_t b = take_one("b", "bob").number("token");
  begin(waiter, keys_json(R"(["a","b"])", "cart", R"("wait_ms":60000)"));
  ASSERT_TRUE(await_line(client_, "a", 1));
  ASSERT_TRUE(await_line(client_, "b", 1));
  give_back("a", "ann", a);
  EXPECT_EQ(waiter.read_end(50ms), kSilence);
  give_back("b", "bob", b);
  const HttpReply set = waiter.read_reply();
  EXPECT_EQ(shown(set), R"(200 {"keys":["a","b"],"holder":"cart","token":<token>,)"
                        R"("ttl_ms":33000,"expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  EXPECT_GT(set.number("token"), a);
  EXPECT_GT(set.number("token"), b);
}

// The first of its queue waits for another key: nobody overtakes it, and nobody holds it.
TEST_F(HttpSets, AFreeKeyWhoseFirstWaitsForOthersIsInNoArrayOfStats) {
  HttpClient waiter = server_.browse();
  LineClient line = server_.connect();
  ASSERT_EQ(take_one("b", "bob").status, 200);
  const HttpReply earlier = take_one("a", "ann");  // so that it has had a fence
  give_back("a", "ann", earlier.number("token"));
  begin(waiter, keys_json(R"(["a","b"])", "cart", R"("wait_ms":60000)"));
  ASSERT_TRUE(await_line(client_, "a", 1));
  EXPECT_EQ(shown(take_one("a", "late")), R"(409 {"error":"held","waiters":1})");
  EXPECT_EQ(line.ask(request("l", "a", "0")), "timeout");
  EXPECT_EQ(shown(take(R"(["a"])", "late")),
            R"(409 {"error":"held","conflicts":[{"key":"a","kind":"lock","waiters":1}]})");
  const std::string free = "free, but the first of its queue waits for other keys too";
  EXPECT_EQ(take_one("a", "late").text("detail"), free);
  EXPECT_EQ(take(R"(["a","c"])", "late").text("detail"), free);
  EXPECT_EQ(take(R"(["a","b"])", "late").text("detail"), "held by someone else");
  const std::string stats = line.ask(request("stats", "", ""));
  EXPECT_EQ(stats.find(R"({"key":"a")"), std::string::npos) << stats;
  EXPECT_NE(stats.find(R"({"key":"b")"), std::string::npos) << stats;
  EXPECT_EQ(shown(client_.get("/v1/locks?key=a")),
            R"(200 {"locks":[{"kind":"lock","key":"a","limit":1,"holders":0,"waiters":1,)"
            R"("token":<token>,"holds":[],"queue":[{"holder":"cart","keys":2,)"
            R"("waited_ms":<ms>}]}]})");
}

// The server may hear of the release before it hears that the set's client has left.
TEST_F(HttpSets, ASetGrantedToOneThatHasLeftIsTakenBackWhole) {
  constexpr std::string_view kLong = R"("ttl_ms":600000,"wait_ms":600000)";
  std::int64_t token = take(R"(["a","b","c"])", "first").number("token");
  std::string holder = "first";
  for (int round = 0; round < 50; ++round) {
    HttpClient leaver = server_.browse();
    HttpClient next = server_.browse();
    const std::string successor = "next" + std::to_string(round);
    begin(leaver, keys_json(R"(["c","a"])", "leaver", kLong));
    ASSERT_TRUE(await_line(client_, "c", 1));
    begin(next, keys_json(R"(["a","b","c"])", successor, kLong));
    ASSERT_TRUE(await_line(client_, "c", 2));
    round % 2 == 0 ? leaver.reset() : leaver.close();
    ASSERT_EQ(client_.post("/v1/release", keys_json(R"(["a","b","c"])", holder, with_token(token)))
                  .status,
              200);
    const HttpReply grant = next.read_reply();
    ASSERT_EQ(grant.status, 200) << "round " << round << ": " << grant.body;
    ASSERT_GT(grant.number("token"), token);
    token = grant.number("token");
    holder = successor;
  }
}

TEST_F(HttpSets, ItemsMixLocksAndSemaphores) {
  constexpr std::string_view kItems =
      R"([{"key":"page","mode":"shared"},{"key":"pool","kind":"semaphore","limit":5,"permits":3},)"
      R"({"key":"seat","kind":"lock"}])";
  const auto ask = [&](std::string_view holder) {
    return client_.post("/v1/acquire", items_json(kItems, holder));
  };
  const HttpReply set = ask("job");
  EXPECT_EQ(shown(set),
            R"(200 {"items":[{"key":"page","kind":"lock","mode":"shared"},)"
            R"({"key":"pool","kind":"semaphore","limit":5,"permits":3},)"
            R"({"key":"seat","kind":"lock"}],"holder":"job","token":<token>,"ttl_ms":33000,)"
            R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  EXPECT_EQ(shown(ask("late")), R"(409 {"error":"held","conflicts":[)"
                                R"({"key":"pool","kind":"semaphore",)" +
                                    held_by("job") +
                                    R"(,"waiters":0},{"key":"seat","kind":"lock",)" +
                                    held_by("job", "exclusive") + R"(,"waiters":0}]})");
  const std::string token = with_token(set.number("token"));
  EXPECT_EQ(shown(client_.post("/v1/renew", items_json(kItems, "job", token))),
            R"(200 {"items":[{"key":"page","kind":"lock"},{"key":"pool","kind":"semaphore"},)"
            R"({"key":"seat","kind":"lock"}],"holder":"job","token":<token>,"ttl_ms":33000,)"
            R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  EXPECT_EQ(shown(client_.post("/v1/release",
                               items_json(R"([{"key":"seat"},{"key":"pool"},{"key":"page"},)"
                                          R"({"key":"pool","kind":"semaphore"}])",
                                          "job", token))),
            R"(200 {"released":[{"key":"seat","kind":"lock"},{"key":"page","kind":"lock"},)"
            R"({"key":"pool","kind":"semaphore"}],"not_held":[{"key":"pool","kind":"lock"}]})");
}

TEST_F(HttpSets, ASemaphoreWithAnotherLimitAndAHoldInAnotherModeAreMismatches) {
  ASSERT_EQ(client_.post("/v1/semaphores/acquire", hold_json("pool", "ann", R"("limit":2)")).status,
            200);
  const HttpReply limit = client_.post(
      "/v1/acquire", items_json(R"([{"key":"pool","kind":"semaphore","limit":3}])", "job"));
  EXPECT_EQ(shown(limit), R"(409 {"error":"limit_mismatch","conflicts":[{"key":"pool",)"
                          R"("kind":"semaphore",)" +
                              held_by("ann") + R"(,"waiters":0,"limit":2}]})");
  ASSERT_EQ(take(R"(["a","b"])", "cart", R"("mode":"shared")").status, 200);
  EXPECT_EQ(take(R"(["a","b"])", "other", R"("mode":"shared")").status, 200);
  EXPECT_EQ(take(R"(["a","b"])", "cart").text("error"), "mode_mismatch");
}

TEST_F(HttpSets, ARenewalIsOfAllOrOfNone) {
  const std::int64_t token = take(R"(["a","b","c"])", "cart", R"("ttl_ms":60000)").number("token");
  EXPECT_EQ(shown(client_.post("/v1/renew", keys_json(R"(["a","b","c"])", "cart",
                                                      with_token(token) + R"(,"ttl_ms":900000)"))),
            R"(200 {"keys":["a","b","c"],"holder":"cart","token":<token>,"ttl_ms":900000,)"
            R"("expires_in_ms":<ms>,"expires_at_unix_ms":<time>})");
  give_back("b", "cart", token);
  EXPECT_EQ(shown(client_.post("/v1/renew", keys_json(R"(["a","b","c"])", "cart",
                                                      with_token(token) + R"(,"ttl_ms":1)"))),
            R"(409 {"error":"expired","key":"b"})");
  EXPECT_EQ(shown(client_.post("/v1/renew", keys_json(R"(["a"])", "other", with_token(token)))),
            R"(409 {"error":"not_holder","key":"a"})");
  std::this_thread::sleep_for(20ms);  // none was renewed: nothing has run out
  EXPECT_EQ(
      shown(client_.post("/v1/release", keys_json(R"(["a","b","c"])", "cart", with_token(token)))),
      R"(200 {"released":["a","c"],"not_held":["b"]})");
  EXPECT_EQ(
      shown(client_.post("/v1/release", keys_json(R"(["a","b","c"])", "cart", with_token(token)))),
      R"(200 {"released":[],"not_held":["a","b","c"]})");
}

TEST_F(HttpSets, WhatIsNoSetIsRefused) {
  std::string many = "[";
  for (int i = 0; i < 65; ++i) many += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\"";
  many += "]";
  const std::string pool = R"([{"key":"pool","kind":"semaphore")";
  const struct {
    std::string body, detail;
  } cases[] = {
      {keys_json("[]", "a"), "keys must be an array of 1 to 64 names"},
      {keys_json(many, "a"), "keys must be an array of 1 to 64 names"},
      {keys_json(R"("k")", "a"), "keys must be an array of 1 to 64 names"},
      {keys_json(R"(["k",""])", "a"), "keys must be names"},
      {keys_json(R"(["k","j","k"])", "a"), R"(keys must be different: "k" is there twice)"},
      {keys_json(R"(["k"])", "a", R"("key":"k")"), "key cannot be given together"},
      {keys_json(R"(["k"])", "a", R"("items":[{"key":"k"}])"), "keys cannot be given together"},
      {keys_json(R"(["k"])", "a", R"("limit":1)"), "unknown member: limit"},
      {keys_json(R"(["k"])", "a", R"("mode":"x")"), "mode must be exclusive or shared"},
      {keys_json(R"(["k"])", ""), "holder must be"},
      {R"({"keys":["k"]})", "holder is missing"},
      {items_json("[]", "a"), "items must be an array of 1 to 64 objects"},
      {items_json(R"(["k"])", "a"), "items must be an array of 1 to 64 objects"},
      {items_json("[{}]", "a"), "items[0].key is missing"},
      {items_json(R"([{"key":"k"},{"key":"k","mode":"shared"}])", "a"),
       R"(items must be different: "k" is there twice)"},
      {items_json(R"([{"key":"k","kind":"door"}])", "a"), "items[0].kind must be lock or"},
      {items_json(R"([{"key":"k","limit":1}])", "a"), "unknown member: items[0].limit"},
      {items_json(R"([{"key":"k"}])", "a", R"("mode":"shared")"), "unknown member: mode"},
      {items_json(pool + "}]", "a"), "items[0].limit is missing"},
      {items_json(pool + R"(,"limit":2,"permits":3}])", "a"), "items[0].permits must be"},
      {items_json(pool + R"(,"limit":2,"mode":"shared"}])", "a"), "unknown member: items[0].mode"},
  };
  for (const auto& c : cases) {
    const HttpReply reply = client_.post("/v1/acquire", c.body);
    EXPECT_EQ(reply.status, 400) << c.body;
    EXPECT_NE(reply.text("detail").find(c.detail), std::string::npos) << reply.body;
  }
  for (const char* call : {"/v1/renew", "/v1/release"}) {
    for (const char* keys : {"[]", R"(["k","k"])", R"([1])"}) {
      EXPECT_EQ(client_.post(call, keys_json(keys, "a", with_token(1))).status, 400) << keys;
    }
    EXPECT_EQ(client_.post(call, keys_json(R"(["k"])", "a")).status, 400) << "no token";
    EXPECT_EQ(client_.post(call, keys_json(R"(["k"])", "a", R"("token":1,"key":"k")")).status, 400);
  }
  EXPECT_EQ(
      client_.post("/v1/semaphores/acquire", keys_json(R"(["k"])", "a", R"("limit":1)")).status,
      400);
  EXPECT_EQ(client_.get("/v1/locks?idle=true").body, "{\"locks\":[]}\n");
}

TEST_F(HttpSets, OverTheLinePortTheyAreTheSame) {
  LineClient line = server_.connect();
  const std::string taken =
      line.ask(request("api", "POST /v1/acquire", keys_json(R"(["a","b"])", "cart")));
  EXPECT_TRUE(taken.starts_with(R"(ok 200 {"keys":["a","b"],"holder":"cart","token":)")) << taken;
  EXPECT_EQ(take(R"(["b"])", "other").status, 409);
}

TEST(HttpSetLimits, ACapRefusesTheWholeSet) {
  Options options = http_options();
  options.max_locks = 3;
  options.max_waiters = 1;
  HttpServer server(options);
  HttpClient client = server.browse();
  HttpClient waiter = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", keys_json(R"(["a","b"])", "ann")).status, 200);
  EXPECT_EQ(shown(client.post("/v1/acquire", keys_json(R"(["c","d"])", "cart"))),
            R"(429 {"error":"max_locks"})");
  EXPECT_EQ(client.get("/v1/locks?key=c").body, "{\"locks\":[]}\n");
  waiter.send(waiter.written("POST", "/v1/acquire", hold_json("a", "bob", R"("wait_ms":60000)")));
  ASSERT_TRUE(await_line(client, "a", 1));
  const HttpReply full =
      client.post("/v1/acquire", keys_json(R"(["b","a"])", "cart", R"("wait_ms":60000)"));
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.text("error"), "max_waiters");
  EXPECT_EQ(client.get("/v1/locks?key=b").json().at("locks").at(0).at("waiters").as_int64(), 0);
}

}  // namespace
}  // namespace lockd
