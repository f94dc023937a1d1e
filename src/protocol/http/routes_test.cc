#include "protocol/http/routes.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <set>
#include <string>

namespace lockd {
namespace {

TEST(Routes, LeadToTheirCalls) {
  EXPECT_EQ(match_route(HttpMethod::post, "/v1/acquire").route->call, HttpCall::acquire);
  EXPECT_TRUE(match_route(HttpMethod::post, "/v1/acquire").method_fits);
  EXPECT_FALSE(match_route(HttpMethod::get, "/v1/acquire").method_fits);
  EXPECT_TRUE(match_route(HttpMethod::head, "/v1/stats").method_fits);
  EXPECT_EQ(match_route(HttpMethod::get, "/v1/signals").route->call, HttpCall::listen);
  const RouteMatch publish = match_route(HttpMethod::post, "/v1/signals/a.b/c");
  EXPECT_EQ(publish.route->call, HttpCall::publish);
  EXPECT_EQ(publish.rest, "a.b/c");
  for (const char* path : {"/", "/v1", "/v1/", "/v1/acquire/", "/V1/acquire", "/v1/signals/", ""}) {
    EXPECT_EQ(match_route(HttpMethod::get, path).route, nullptr) << path;
  }
}

// What the document says there is, and what there is, are the same.
TEST(Routes, AreThoseOfTheOpenApiDocument) {
  const WebFile* file = find_web_file("/v1/openapi.json");
  ASSERT_NE(file, nullptr);
  const boost::json::value document = boost::json::parse(file->content);
  std::set<std::string> documented;
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      documented.insert(std::string(method) + " " + std::string(path));
    }
  }
  std::set<std::string> served;
  for (const Route& route : kRoutes) {
    served.insert((route.method == HttpMethod::post ? "post " : "get ") + std::string(route.path));
  }
  EXPECT_EQ(documented, served);
}

TEST(Routes, HaveNames) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kHttpCalls; ++i) {
    EXPECT_TRUE(names.insert(call_name(static_cast<HttpCall>(i))).second) << i;
  }
}

}  // namespace
}  // namespace lockd
