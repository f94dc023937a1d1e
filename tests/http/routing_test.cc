// Which method and path lead where, and what is said about the others.
#include <gtest/gtest.h>

#include <string>

#include "protocol/http/routes.h"
#include "support/http_client.h"

namespace lockd {
namespace {

// A path in which "{channel}" stands for something.
std::string path_of(const Route& route) {
  const std::string path(route.path);
  const std::size_t open = path.find('{');
  return open == std::string::npos ? path : path.substr(0, open) + "some.channel";
}

TEST(HttpRouting, WhatIsNotThereIs404) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* path :
       {"/v1", "/v1/", "/v2/acquire", "/v1/acquire/", "//v1/acquire", "/v1/../livez", "/V1/stats",
        "/index.php", "/.keep", "/v1/signals/", "/livez/x", "/%00", "/v1/locks/k", "/favicon"}) {
    for (const char* method : {"GET", "POST", "DELETE", "OPTIONS"}) {
      EXPECT_EQ(shown(client.ask(method, path)), R"(404 {"error":"not_found"})")
          << method << " " << path;
    }
  }
}

// A path may be written with percent signs: it is the same path.
TEST(HttpRouting, PathsAreDecoded) {
  HttpServer server;
  HttpClient client = server.browse();
  EXPECT_EQ(client.get("/live%7A").status, 200);
  EXPECT_EQ(client.get("/%6Civez").status, 200);
}

TEST(HttpRouting, OtherMethodsAre405WithThoseAllowed) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const Route& route : kRoutes) {
    const bool posts = route.method == HttpMethod::post;
    for (const char* method :
         {posts ? "GET" : "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW"}) {
      SCOPED_TRACE(method + std::string(" ") + std::string(route.path));
      const HttpReply reply = client.ask(method, path_of(route));
      EXPECT_EQ(shown(reply), R"(405 {"error":"method_not_allowed"})");
      EXPECT_EQ(reply.field("Allow"), posts ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
    }
    if (posts) {
      const HttpReply reply = client.ask("HEAD", path_of(route));
      EXPECT_EQ(reply.status, 405);
      EXPECT_EQ(reply.field("Allow"), "POST, OPTIONS");
    }
  }
}

TEST(HttpRouting, OptionsTellsWhatIsAllowed) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const Route& route : kRoutes) {
    SCOPED_TRACE(route.path);
    const HttpReply reply = client.ask("OPTIONS", path_of(route));
    EXPECT_EQ(reply.status, 204) << reply.body;
    EXPECT_EQ(reply.field("Allow"),
              route.method == HttpMethod::post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
    EXPECT_EQ(reply.field("Access-Control-Allow-Origin"), "");
  }
}

// HEAD has the head that GET has, and no body; the next reply follows at once.
TEST(HttpRouting, HeadIsGetWithoutTheBody) {
  HttpServer server;
  HttpClient client = server.browse();
  ASSERT_EQ(client.post("/v1/acquire", hold_json("k", "a")).status, 200);
  for (const char* target : {"/livez", "/readyz", "/v1/fence?key=k", "/v1/openapi.json"}) {
    const HttpReply get = client.get(target);
    const HttpReply head = client.ask("HEAD", target);
    EXPECT_EQ(head.status, 200) << target;
    EXPECT_EQ(head.field("Content-Length"), std::to_string(get.body.size())) << target;
    EXPECT_EQ(head.field("Content-Type"), get.field("Content-Type")) << target;
  }
  // Their bodies are new each time.
  for (const char* target : {"/v1/stats", "/v1/locks", "/v1/overview", "/metrics"}) {
    const HttpReply head = client.ask("HEAD", target);
    EXPECT_EQ(head.status, 200) << target;
    EXPECT_NE(head.field("Content-Length"), "0") << target;
  }
  // A stream that nobody could read does not begin.
  for (const char* target : {"/v1/events", "/v1/signals?pattern=a"}) {
    const HttpReply head = client.ask("HEAD", target);
    EXPECT_EQ(head.status, 200) << target;
    EXPECT_EQ(head.field("Content-Type"), "text/event-stream") << target;
  }
  EXPECT_EQ(client.ask("HEAD", "/nowhere").status, 404);
  EXPECT_EQ(client.ask("HEAD", "/v1/fence").status, 400);
  EXPECT_EQ(client.get("/livez").status, 200);
}

TEST(HttpRouting, TheDescriptionOfTheApi) {
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply reply = client.get("/v1/openapi.json");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.field("Content-Type"), "application/json");
  EXPECT_EQ(reply.field("Cache-Control"), "no-cache");
  EXPECT_EQ(reply.text("openapi"), "3.1.0");
  for (const Route& route : kRoutes) {
    EXPECT_TRUE(reply.json().at("paths").as_object().contains(route.path)) << route.path;
  }
}

TEST(HttpRouting, ThePageMayDoLittle) {
  if (find_web_file("/") == nullptr) GTEST_SKIP() << "this build has no page";
  HttpServer server;
  HttpClient client = server.browse();
  const HttpReply page = client.get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.field("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.field("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page.field("Referrer-Policy"), "no-referrer");
  const std::string policy = page.field("Content-Security-Policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none';")) << policy;
  for (const char* part : {"script-src 'self'", "style-src 'self'", "connect-src 'self'",
                           "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"}) {
    EXPECT_NE(policy.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(client.post("/", "").field("Allow"), "GET, HEAD, OPTIONS");
}

TEST(HttpRouting, MetricsMayBeOff) {
  Options options = http_options();
  options.metrics = false;
  HttpServer server(options);
  HttpClient client = server.browse();
  EXPECT_EQ(shown(client.get("/metrics")), R"(404 {"error":"not_found"})");
}

TEST(HttpRouting, HealthIsAlwaysTold) {
  HttpServer server;
  HttpClient client = server.browse();
  for (const char* path : {"/livez", "/readyz", "/leader"}) {
    EXPECT_EQ(shown(client.get(path)), R"(200 {"status":"ok"})") << path;
  }
}

}  // namespace
}  // namespace lockd
