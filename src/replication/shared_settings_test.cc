#include "replication/shared_settings.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(SharedSettings, AreWordsOfANameAndAValue) {
  const auto settings = shared_settings_in("max-locks=5 default-lease-ttl=33 later=");
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->at("max-locks"), "5");
  EXPECT_EQ(settings->at("later"), "");
  EXPECT_EQ(settings->size(), 3u);
  EXPECT_TRUE(shared_settings_in("").has_value());
}

TEST(SharedSettings, SayNothingWhenAnythingIsWrongWithThem) {
  for (const char* text :
       {"two words", "a", "=5", "a=1 a=2", "a=1  b=2", "A=1", "a\"=1", "a=\x01", "a=\xff"}) {
    EXPECT_FALSE(shared_settings_in(text).has_value()) << text;
    EXPECT_EQ(detect_in(text), kDetectMax) << text;
    EXPECT_TRUE(differences(text, "a=7 b=8").empty()) << text;
    EXPECT_TRUE(differences("a=7 b=8", text).empty()) << text;
  }
}

TEST(SharedSettings, DifferWhereBothHaveAName) {
  const auto found = differences("a=1 b=2 c=3 mine=1", "c=4 b=2 a=0 yours=1");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(to_text(found, "here"), "a is 1, here 0; c is 3, here 4");
  EXPECT_TRUE(differences("a=1", "a=1").empty());
}

TEST(SharedSettings, DetectComesBackAsItWasWritten) {
  for (const Duration detect : {Duration(300ms), Duration(2s), Duration(2500ms), Duration(60s),
                                Duration(333'333'333ns), Duration(1s + 1ns), Duration(10s)}) {
    EXPECT_EQ(detect_in("max-locks=5 " + detect_setting(detect)), detect);
  }
  EXPECT_EQ(detect_setting(2s), "etcd-detect=2");
  EXPECT_EQ(detect_setting(500ms), "etcd-detect=0.5");
  EXPECT_EQ(detect_setting(10050ms), "etcd-detect=10.05");
}

// Too long is safe, too short is not; and a short one would ask etcd all the time.
TEST(SharedSettings, DetectIsTheLongestWhereItIsNotUnderstoodAndNeverTooShort) {
  for (const char* text : {"", "max-locks=5", "etcd-detect=", "etcd-detect=2s", "etcd-detect=-2",
                           "etcd-detect=2.", "etcd-detect=.5", "etcd-detect=1.0000000001",
                           "etcd-detect=1e1", "etcd-detect=99999999999999999999"}) {
    EXPECT_EQ(detect_in(text), kDetectMax) << text;
  }
  EXPECT_EQ(detect_in("etcd-detect=0.000001"), kDetectMin);
  EXPECT_EQ(detect_in("etcd-detect=120"), 120s);  // of a version that lets it be longer
}

}  // namespace
}  // namespace lockd
