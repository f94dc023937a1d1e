#include "service/json_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lockd {
namespace {

class JsonCodecTest : public testing::Test {
 protected:
  HttpError read(HttpCall call, std::string_view json, std::string_view channel = {}) {
    return codec_.read(call, channel, RequestParams::of_json(json));
  }
  std::string write(const Reply& reply) { return codec_.write(reply, {}).body; }

  const Options options_;
  ClientRegistry clients_;
  JsonCodec codec_{options_, clients_};
};

TEST_F(JsonCodecTest, ReadsOneKeyAndSeveralAsTheSameCall) {
  ASSERT_FALSE(read(HttpCall::acquire, R"({"key":"a","holder":"h"})"));
  EXPECT_EQ(std::get<Acquire>(codec_.call()).keys.size(), 1U);
  ASSERT_FALSE(read(HttpCall::acquire, R"({"keys":["a","b"],"holder":"h","mode":"shared"})"));
  const Acquire& call = std::get<Acquire>(codec_.call());
  ASSERT_EQ(call.keys.size(), 2U);
  EXPECT_EQ(call.keys[1].key, "b");
  EXPECT_EQ(call.keys[1].mode, Mode::shared);
  EXPECT_EQ(call.owner.name, "h");
}

TEST_F(JsonCodecTest, NamesTheKeyThatIsThereTwice) {
  const HttpError error = read(HttpCall::acquire, R"({"keys":["a","b","a"],"holder":"h"})");
  EXPECT_EQ(error.status, 400);
  EXPECT_NE(error.detail.find("\"a\" is there twice"), std::string::npos) << error.detail;
}

TEST_F(JsonCodecTest, RejectsAMemberThatNoCallHas) {
  EXPECT_EQ(read(HttpCall::release, R"({"key":"a","holder":"h","token":1,"tokn":1})").status, 400);
}

// The reply repeats the keys in the shape of the request.
TEST_F(JsonCodecTest, RepliesInTheShapeOfTheRequest) {
  const Grant grant{.fence = 7, .ttl = std::chrono::seconds(1), .expires_at = {}};
  ASSERT_FALSE(read(HttpCall::acquire, R"({"key":"a","holder":"h"})"));
  EXPECT_TRUE(write(Granted{grant}).starts_with(R"({"key":"a","holder":"h","token":7,)"));
  ASSERT_FALSE(read(HttpCall::acquire, R"({"keys":["a"],"holder":"h"})"));
  EXPECT_TRUE(write(Granted{grant}).starts_with(R"({"keys":["a"],"holder":"h","token":7,)"));
  ASSERT_FALSE(read(HttpCall::acquire, R"({"items":[{"key":"a"}],"holder":"h"})"));
  EXPECT_TRUE(write(Granted{grant})
                  .starts_with(R"({"items":[{"key":"a","kind":"lock"}],"holder":"h","token":7,)"));
}

TEST_F(JsonCodecTest, ReleaseOfAListOfOneKeyThatIsNotHeldListsIt) {
  ASSERT_FALSE(read(HttpCall::release, R"({"keys":["a"],"holder":"h","token":1})"));
  EXPECT_EQ(write(Refused{.outcome = Outcome::expired}), R"({"released":[],"not_held":["a"]})");
  ASSERT_FALSE(read(HttpCall::release, R"({"key":"a","holder":"h","token":1})"));
  EXPECT_EQ(codec_.write(Refused{.outcome = Outcome::expired}, {}).status, 409);
}

TEST_F(JsonCodecTest, RejectionsHaveCodesAndAdvice) {
  ASSERT_FALSE(read(HttpCall::locks, "{}"));
  const JsonReply busy = codec_.write(reject(Rejected::Reason::too_many_reports), {});
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.error, "busy");
  EXPECT_EQ(busy.fields, "Retry-After: 1\r\n");
}

}  // namespace
}  // namespace lockd
