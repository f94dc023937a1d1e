// What is wrong with a request is told by name, and the connection goes on.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_client.h"

namespace lockd {
namespace {

struct BadRequest {
  std::string body;
  std::string detail;  // a part of it
};

const std::string kLongName(257, 'x');

void expect_refusals(HttpClient& client, std::string_view call,
                     const std::vector<BadRequest>& all) {
  for (const BadRequest& refused : all) {
    SCOPED_TRACE(std::string(call) + " " + refused.body.substr(0, 100));
    const HttpReply reply = client.post(call, refused.body);
    EXPECT_EQ(shown(reply), R"(400 {"error":"bad_request"})");
    EXPECT_NE(reply.text("detail").find(refused.detail), std::string::npos) << reply.body;
    EXPECT_EQ(reply.field("Connection"), "");
  }
}

TEST(HttpBadRequests, ABodyThatIsNoObject) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* call : {"/v1/acquire", "/v1/renew", "/v1/release", "/v1/semaphores/acquire",
                           "/v1/semaphores/renew", "/v1/semaphores/release", "/v1/signals/c"}) {
    expect_refusals(client, call,
                    {{"", "not JSON"},
                     {R"({"key":"k","holder":"a"}{"key":"k"})", "not JSON"},
                     {"{\"key\":\"\xff\",\"holder\":\"a\"}", "not JSON"},
                     {repeated(R"({"a":)", 1000), "not JSON"},
                     {"[]", "must be a JSON object"},
                     {R"({"key":"k","key":"k","holder":"a"})", "twice"}});
  }
}

TEST(HttpBadRequests, AMemberThatIsMissingUnknownOrOfTheWrongType) {
  HttpServer server;
  HttpClient client = server.browse();
  expect_refusals(client, "/v1/acquire",
                  {{"{}", "key is missing"},
                   {R"({"key":"k"})", "holder is missing"},
                   {R"({"holder":"a"})", "key is missing"},
                   {hold_json("k", "a", R"("ttl":5)"), "unknown member: ttl"},
                   {hold_json("k", "a", R"("Key":"k")"), "unknown member: Key"},
                   {hold_json("k", "a", R"("token":5)"), "unknown member: token"},
                   {hold_json("k", "a", R"("limit":5)"), "unknown member: limit"},
                   {hold_json("k", "a", R"("<b>\"":1)"), "unknown member: <b>\""},
                   {R"({"key":5,"holder":"a"})", "key must be a text"},
                   {R"({"key":null,"holder":"a"})", "key must be a text"},
                   {R"({"key":["k"],"holder":"a"})", "key must be a text"},
                   {R"({"key":"k","holder":{"a":1}})", "holder must be a text"},
                   {R"({"key":"k","holder":true})", "holder must be a text"}});
  for (const char* value : {"\"5\"", "1.5", "-1", "9223372036001", "18446744073709551616"}) {
    expect_refusals(
        client, "/v1/acquire",
        {{hold_json("k", "a", R"("ttl_ms":)" + std::string(value)), "ttl_ms must be a whole"},
         {hold_json("k", "a", R"("wait_ms":)" + std::string(value)), "wait_ms must be a whole"}});
  }
  expect_refusals(client, "/v1/acquire", {{hold_json("k", "a", R"("ttl_ms":0)"), "ttl_ms must"}});
  for (const char* call : {"/v1/renew", "/v1/release", "/v1/semaphores/renew"}) {
    expect_refusals(client, call,
                    {{hold_json("k", "a"), "token is missing"},
                     {hold_json("k", "a", R"("token":"1")"), "token must be a whole number"},
                     {hold_json("k", "a", R"("token":0)"), "token must be a whole number"},
                     {hold_json("k", "a", R"("token":1.5)"), "token must be a whole number"},
                     {hold_json("k", "a", R"("token":9223372036854775808)"), "token must be"},
                     {hold_json("k", "a", 1, R"("wait_ms":1)"), "unknown member: wait_ms"}});
  }
  expect_refusals(client, "/v1/semaphores/acquire",
                  {{hold_json("k", "a"), "limit is missing"},
                   {hold_json("k", "a", R"("limit":0)"), "limit must be"},
                   {hold_json("k", "a", R"("limit":-1)"), "limit must be"},
                   {hold_json("k", "a", R"("limit":2147483648)"), "limit must be"},
                   {hold_json("k", "a", R"("limit":"1")"), "limit must be"}});
  expect_refusals(client, "/v1/signals/c",
                  {{"{}", "payload is missing"},
                   {R"({"payload":5})", "payload must be a text"},
                   {R"({"payload":"x","channel":"c"})", "unknown member: channel"}});
}

TEST(HttpBadRequests, TheLargestAndSmallestAreTaken) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply grant = client.post(
      "/v1/acquire", hold_json("k", "a", R"("ttl_ms":9223372036000,"wait_ms":9223372036000)"));
  EXPECT_EQ(grant.status, 200);
  EXPECT_GT(grant.number("expires_at_unix_ms"), 9'223'372'036'000);
  EXPECT_EQ(client
                .post("/v1/semaphores/acquire",
                      hold_json("k", "a", R"("limit":2147483647,"ttl_ms":1,"wait_ms":0)"))
                .status,
            200);
}

TEST(HttpBadRequests, Names) {
  HttpServer server;
  HttpClient client = server.browse();
  const std::string longest(256, 'x');
  const std::string accents = repeated("é", 128);  // 256 bytes
  for (const std::string& name :
       {longest, accents, std::string("a b"), std::string(" "), std::string("日本語"),
        std::string("😀"), std::string("<script>alert(1)</script>"), std::string("a/b?c=d&e#f%00"),
        std::string("\xc2\x80")}) {
    SCOPED_TRACE(name);
    const HttpReply grant = client.post("/v1/acquire", hold_json(name, name));
    EXPECT_EQ(grant.status, 200) << grant.body;
    EXPECT_EQ(grant.text("key"), name);
    EXPECT_EQ(grant.text("holder"), name);
    EXPECT_EQ(client.post("/v1/release", hold_json(name, name, grant.number("token"))).status, 200);
  }
  // Escapes are another way to write the same name.
  const HttpReply grant =
      client.post("/v1/acquire", R"({"key":"\u00e9\ud83d\ude00","holder":"\"\\"})");
  EXPECT_EQ(grant.text("key"), "é😀");
  EXPECT_EQ(grant.text("holder"), "\"\\");
  EXPECT_EQ(client.get("/v1/fence?key=%C3%A9%F0%9F%98%80").number("token"), grant.number("token"));
  for (const std::string& name :
       {std::string(), kLongName, accents + "x", std::string("a\\nb"), std::string("\\u0000"),
        std::string("\\u001f"), std::string("\x7f"), std::string("\\t")}) {
    expect_refusals(client, "/v1/acquire",
                    {{hold_json(name, "a"), "key must be 1 to 256 bytes"},
                     {hold_json("k", name), "holder must be 1 to 256 bytes"}});
  }
}

TEST(HttpBadRequests, Queries) {
  HttpServer server;
  HttpClient client = server.browse();
  struct Query {
    const char* target;
    const char* detail;
  };
  for (const Query& query : std::vector<Query>{
           {"/v1/fence", "key is missing"},
           {"/v1/fence?key=", "key must be 1 to 256 bytes"},
           {"/v1/fence?key=%ff", "key must be 1 to 256 bytes"},
           {"/v1/fence?key=%0a", "key must be 1 to 256 bytes"},
           {"/v1/fence?key=%4", "percent"},
           {"/v1/fence?key=%zz", "percent"},
           {"/v1/fence?key=k&key=k", "key is given twice"},
           {"/v1/fence?key=k&other=1", "unknown member: other"},
           {"/v1/locks?limit=0", "limit must be"},
           {"/v1/locks?limit=1001", "limit must be"},
           {"/v1/locks?limit=x", "limit must be"},
           {"/v1/locks?limit=", "limit must be"},
           {"/v1/locks?limit=1.0", "limit must be"},
           {"/v1/locks?limit=+1", "limit must be"},
           {"/v1/locks?idle=1", "idle must be true or false"},
           {"/v1/locks?idle=", "idle must be true or false"},
           {"/v1/locks?order=age", "order must be waiters"},
           {"/v1/locks?after=x", "after must be"},
           {"/v1/locks?after=", "after must be"},
           {"/v1/locks?after=0-", "after must be"},
           {"/v1/locks?after=0-fffffffffffffffff", "after must be"},
           {"/v1/locks?sort=up", "unknown member: sort"},
           {"/v1/signals", "pattern is missing"},
           {"/v1/signals?pattern=", "pattern must be"},
           {"/v1/signals?pattern=a.%3E.b", "pattern must be"},
           {"/v1/signals?pattern=a*", "pattern must be"},
           {"/v1/signals?pattern=a&group=%01", "group must be"},
           {"/v1/events?since=1", "unknown member: since"},
       }) {
    SCOPED_TRACE(query.target);
    const HttpReply reply = client.get(query.target);
    EXPECT_EQ(shown(reply), R"(400 {"error":"bad_request"})");
    EXPECT_NE(reply.text("detail").find(query.detail), std::string::npos) << reply.body;
  }
  EXPECT_EQ(client.post("/v1/acquire?key=k", hold_json("k", "a")).status, 400);
  std::string many = "/v1/fence?key=k";
  for (int i = 0; i < 1000; ++i) many += "&a" + std::to_string(i) + "=1";
  EXPECT_EQ(client.get(many).status, 400);
}

// Any content type is read as JSON: a plain `curl -d` works.
TEST(HttpBadRequests, AnyContentTypeIsJson) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* type : {"application/x-www-form-urlencoded", "text/plain", "application/json",
                           "application/json; charset=utf-8", "multipart/form-data; boundary=x"}) {
    client.fields = "Content-Type: " + std::string(type) + "\r\n";
    EXPECT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200) << type;
  }
}

}  // namespace
}  // namespace lockd
