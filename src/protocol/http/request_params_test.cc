#include "protocol/http/request_params.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/http/routes.h"

namespace lockd {
namespace {

constexpr std::int64_t kMax = 9'223'372'036'000;

// What a body of {"key", "n"?, "flag"?} is refused for; empty when it is taken.
std::string problem_of(std::string_view body) {
  RequestParams params = RequestParams::of_json(body);
  params.name("key");
  params.number_if_given("n", 1, kMax);
  params.truth("flag");
  return params.error().detail;
}

TEST(RequestParams, TakesWhatIsAskedFor) {
  RequestParams params =
      RequestParams::of_json(R"( {"key": "a\u00e9\n", "n": 12, "flag": true, "empty": ""} )");
  EXPECT_EQ(params.text("key"), "a\u00e9\n");
  EXPECT_EQ(params.number("n", 0, 12), 12);
  EXPECT_EQ(params.number_if_given("absent", 0, 1), std::nullopt);
  EXPECT_TRUE(params.truth("flag"));
  EXPECT_FALSE(params.truth("other"));
  EXPECT_EQ(params.text_if_given("empty"), "");
  EXPECT_FALSE(params.error());
}

TEST(RequestParams, NamesWhatIsWrong) {
  struct Case {
    std::string body;
    std::string problem;
  };
  const std::string range = "n must be a whole number from 1 to 9223372036000";
  const std::string name = "key must be 1 to 256 bytes of UTF-8 without control characters";
  const std::vector<Case> cases = {
      {R"({"key":"a"})", ""},
      {R"({"key":"a","n":1})", ""},
      {R"({"key":"a","n":9223372036000})", ""},
      {R"({"key":"a","n":1.0})", ""},
      {R"({"key":"a","n":9.223372036e12})", ""},
      {R"({})", "key is missing"},
      {R"({"key":1})", "key must be a text"},
      {R"({"key":null})", "key must be a text"},
      {R"({"key":["a"]})", "key must be a text"},
      {R"({"key":{"key":"a"}})", "key must be a text"},
      {R"({"key":""})", name},
      {"{\"key\":\"" + std::string(257, 'x') + "\"}", name},
      {R"({"key":"a\u0000"})", name},
      {R"({"key":"a","n":0})", range},
      {R"({"key":"a","n":-1})", range},
      {R"({"key":"a","n":9223372036001})", range},
      {R"({"key":"a","n":9223372036854775808})", range},
      {R"({"key":"a","n":1e400})", range},
      {R"({"key":"a","n":1.5})", range},
      {R"({"key":"a","n":0.0})", range},
      {R"({"key":"a","n":1e-400})", range},
      {R"({"key":"a","n":1e13})", range},
      {R"({"key":"a","n":"1"})", range},
      {R"({"key":"a","n":true})", range},
      {R"({"key":"a","n":null})", range},
      {R"({"key":"a","n":[5]})", range},
      {R"({"key":"a","n":{}})", range},
      {R"({"key":"a","n":1e-3})", range},
      {R"({"key":"a","n":-0.5})", range},
      {R"({"key":"a","flag":1})", "flag must be true or false"},
      {R"({"key":"a","flag":"true"})", "flag must be true or false"},
      {R"({"key":"a","ttl":1})", "unknown member: ttl"},
      {R"({"key":"a","KEY":"b"})", "unknown member: KEY"},
      {R"({"key":"a","key":"b"})", "a member is given twice"},
      {R"([])", "the body must be a JSON object"},
      {R"("key")", "the body must be a JSON object"},
      {R"(1)", "the body must be a JSON object"},
      {R"(null)", "the body must be a JSON object"},
  };
  for (const Case& c : cases) EXPECT_EQ(problem_of(c.body), c.problem) << c.body;
}

TEST(RequestParams, RefusesWhatIsNotJson) {
  for (const std::string& body : std::vector<std::string>{"",
                                                          " ",
                                                          "{",
                                                          R"({"key")",
                                                          R"({"key":"a")",
                                                          R"({"key":"a",})",
                                                          R"({key:"a"})",
                                                          R"({'key':'a'})",
                                                          R"({"key":"a"} x)",
                                                          R"({"key":"a"}{})",
                                                          R"({"key":"\x"})",
                                                          R"({"key":"\ud800"})",
                                                          "{\"key\":\"\xff\"}",
                                                          "{\"key\":\"a\nb\"}",
                                                          R"({"n":01})",
                                                          R"({"n":NaN})",
                                                          R"({"n":.5})",
                                                          R"(/**/{"key":"a"})",
                                                          R"({"key":"a" /* */})",
                                                          "hello",
                                                          std::string(1, '\0'),
                                                          "\xef\xbb\xbf{}",
                                                          std::string(100, '['),
                                                          std::string(100'000, '{')}) {
    EXPECT_TRUE(problem_of(body).starts_with("the body")) << body.substr(0, 40);
  }
}

TEST(RequestParams, HasLimits) {
  std::string many = "{\"key\":\"a\"";
  for (int i = 0; i < 100; ++i) many += ",\"m" + std::to_string(i) + "\":1";
  EXPECT_NE(problem_of(many + "}"), "");
  EXPECT_NE(problem_of(R"({"key":"a",")" + std::string(300, 'k') + "\":1}"), "");
  EXPECT_NE(
      problem_of(R"({"key":"a","deep":)" + std::string(1000, '[') + std::string(1000, ']') + "}"),
      "");
}

TEST(RequestParams, OfAQuery) {
  Target target;
  ASSERT_TRUE(parse_target("/v1/locks?prefix=a+b%2B%C3%A9&limit=7&idle=true&&flag", &target));
  EXPECT_EQ(target.path, "/v1/locks");
  RequestParams params = RequestParams::of_query(target.query);
  EXPECT_EQ(params.text("prefix"), "a b+\u00e9");
  EXPECT_EQ(params.number("limit", 1, 1000), 7);
  EXPECT_TRUE(params.truth("idle"));
  EXPECT_EQ(params.text("flag"), "");
  EXPECT_FALSE(params.error());

  RequestParams wrong = RequestParams::of_query({{"limit", "1x"}});
  wrong.number("limit", 1, 10);
  EXPECT_EQ(wrong.error().detail, "limit must be a whole number from 1 to 10");
  EXPECT_EQ(RequestParams::of_query({{"a", "1"}, {"a", "2"}}).error().detail, "a is given twice");
  EXPECT_EQ(RequestParams::of_query({{"a", "1"}}).error().detail, "unknown member: a");
  const std::string nameless = "a member has no proper name";
  for (const std::string& name : {std::string("\xe5"), std::string(), std::string(257, 'a')}) {
    EXPECT_EQ(RequestParams::of_query({{name, "1"}}).error().detail, nameless);
  }
}

TEST(Target, RefusesBrokenEscapes) {
  for (const char* text : {"/%", "/%4", "/%zz", "/a?b=%", "/a?%g0=1"}) {
    Target target;
    EXPECT_FALSE(parse_target(text, &target)) << text;
  }
  Target target;
  ASSERT_TRUE(parse_target("/a+b%2fc", &target));
  EXPECT_EQ(target.path, "/a+b/c");
}

// What a body of {"names"?, "objects": [{"key", "n"?}]?} is refused for; empty when it is taken.
std::string array_problem_of(std::string_view body) {
  RequestParams params = RequestParams::of_json(body);
  if (params.has("names")) params.names("names");
  if (params.has("objects")) {
    for (RequestParams& object : params.objects("objects")) {
      object.name("key");
      object.number_if_given("n", 1, 9);
    }
  }
  return params.error().detail;
}

std::string array_of(std::size_t count, std::string_view element) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) (text += i == 0 ? "" : ",") += element;
  return "[" + text + "]";
}

TEST(RequestParams, TakesArraysOfNamesAndOfObjects) {
  RequestParams params = RequestParams::of_json(
      R"({"names":["a","\u00e9"],"objects":[{"key":"x","n":5},{"key":"y"}],"after":"z"})");
  EXPECT_EQ(params.names("names"), (std::vector<std::string_view>{"a", "\u00e9"}));
  const std::span<RequestParams> objects = params.objects("objects");
  ASSERT_EQ(objects.size(), 2U);
  EXPECT_EQ(objects[0].name("key"), "x");
  EXPECT_EQ(objects[0].number("n", 1, 9), 5);
  EXPECT_EQ(objects[1].name("key"), "y");
  EXPECT_EQ(params.text("after"), "z");
  EXPECT_FALSE(params.error());
}

TEST(RequestParams, SaysWhatIsWrongWithAnArray) {
  const std::string names = "names must be an array of 1 to 64 names";
  const std::string objects = "objects must be an array of 1 to 64 objects";
  const struct {
    std::string body, problem;
  } cases[] = {
      {R"({"names":)" + array_of(64, R"("a")") + "}", ""},
      {R"({"objects":)" + array_of(64, R"({"key":"a"})") + "}", ""},
      {R"({"names":)" + array_of(65, R"("a")") + "}", names},
      {R"({"names":)" + array_of(100'000, R"("a")") + "}", names},
      {R"({"objects":)" + array_of(65, R"({"key":"a"})") + "}", objects},
      {R"({"objects":)" + array_of(100'000, "{}") + "}", objects},
      {R"({"names":[]})", names},
      {R"({"names":"a"})", names},
      {R"({"names":["a",1]})", names},
      {R"({"names":[1,"a"]})", names},
      {R"({"names":["a",null]})", names},
      {R"({"names":["a",["b"]]})", names},
      {R"({"names":["a",{"key":"b"}]})", names},
      {R"({"names":{"a":"b"}})", names},
      {R"({"names":["a",""]})",
       "names must be names: 1 to 256 bytes of UTF-8 without control characters each"},
      {R"({"objects":[]})", objects},
      {R"({"objects":[{"key":"a"},"b"]})", objects},
      {R"({"objects":[[{"key":"a"}]]})", objects},
      {R"({"objects":{"key":"a"}})", objects},
      {R"({"objects":[{"key":"a"},{}]})", "objects[1].key is missing"},
      {R"({"objects":[{"key":["a"]}]})", "objects[0].key must be a text"},
      {R"({"objects":[{"key":{"key":"a"}}]})", "objects[0].key must be a text"},
      {R"({"objects":[{"key":"a","n":10}]})", "objects[0].n must be a whole number from 1 to 9"},
      {R"({"objects":[{"key":"a","m":1}]})", "unknown member: objects[0].m"},
      {R"({"objects":[{"key":"a","m":[{"n":1}]}]})", "unknown member: objects[0].m"},
      {R"({"objects":[{"key":"a","key":"a"}]})", "a member is given twice"},
      {R"({"objects":[{"key":"a"},{"key":"a"}]})", ""},
      {R"({"other":["a"]})", "unknown member: other"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(array_problem_of(c.body), c.problem) << c.body.substr(0, 100);
  }
}

}  // namespace
}  // namespace lockd
