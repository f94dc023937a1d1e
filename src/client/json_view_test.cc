#include "client/json_view.h"

#include <gtest/gtest.h>

#include <string>

namespace lockd::client {
namespace {

TEST(JsonView, FindsMembersByTheirNames) {
  const auto said = JsonView::parse(
      R"( {"token" : 7, "holder":"a \"b\" \\ c","nested":{"token":8},"list":[1, {"k":"v"},[]]} )");
  ASSERT_TRUE(said);
  EXPECT_TRUE(said->is_object());
  EXPECT_EQ(said->member("token").number(), 7U);
  EXPECT_EQ(said->member("holder").text(), R"(a "b" \ c)");
  EXPECT_EQ(said->member("nested").member("token").number(), 8U);
  const auto list = said->member("list").elements();
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].number(), 1U);
  EXPECT_EQ(list[1].member("k").text(), "v");
  EXPECT_TRUE(list[2].elements().empty());
}

TEST(JsonView, WhatIsMissingOrOfAnotherTypeIsNothing) {
  const auto said = JsonView::parse(R"({"text":"7","negative":-1,"part":1.5,"truth":true})");
  ASSERT_TRUE(said);
  EXPECT_FALSE(said->member("none").number());
  EXPECT_FALSE(said->member("none").text());
  EXPECT_FALSE(said->member("none").member("none").is_object());
  EXPECT_TRUE(said->member("text").elements().empty());
  for (const char* name : {"text", "negative", "part", "truth"}) {
    EXPECT_FALSE(said->member(name).number()) << name;
  }
  EXPECT_FALSE(said->member("truth").text());
  EXPECT_FALSE(JsonView::parse("{}")->member("a").number());
  EXPECT_TRUE(JsonView::parse("[]")->elements().empty());
}

TEST(JsonView, EscapesAreUndone) {
  EXPECT_EQ(JsonView::parse(R"("a\n\t\/\u007fb\u0001")")->text(), "a\n\t/?b?");
  EXPECT_EQ(JsonView::parse(R"("é")")->text(), "é");
}

TEST(JsonView, RefusesWhatIsNoJson) {
  for (const char* text : {"",      " ",       "{",        "}",        "[",          "[1", "[1,",
                           "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{a:1}",      "\"", "\"a",
                           "\"a\\", "\"a\\\"", "1 2",      "{} {}",    "{\"a\":1,}", "?"}) {
    EXPECT_FALSE(JsonView::parse(text)) << text;
  }
  EXPECT_TRUE(JsonView::parse(std::string(15, '[') + "1" + std::string(15, ']')));
  EXPECT_FALSE(JsonView::parse(std::string(16, '[') + "1" + std::string(16, ']')));
  EXPECT_FALSE(JsonView::parse(std::string(1'000'000, '[')));
}

}  // namespace
}  // namespace lockd::client
