#include "cluster/channel_ids.h"

#include <gtest/gtest.h>

#include <set>

namespace lockd {
namespace {

TEST(ChannelIds, LieBetweenThoseOfTheClientsThatCameBeforeAndAfter) {
  std::atomic<SessionId> last{0};
  ChannelIds ids(last);
  ids.reserve(100);
  const SessionId before = ++last;
  ids.reserve(200);
  const SessionId after = ++last;
  ids.reserve(300);
  EXPECT_GT(ids.take(250), before);
  EXPECT_LT(ids.take(250), after);
  EXPECT_LT(ids.take(150), before);  // at the latest when the last block before it began
  EXPECT_GT(ids.take(350), after);
  EXPECT_LT(ids.take(0), before);
}

TEST(ChannelIds, AreNotUsedUpWhileNobodyComes) {
  std::atomic<SessionId> last{0};
  ChannelIds ids(last);
  for (std::uint64_t now = 0; now < 1000; ++now) ids.reserve(now);
  EXPECT_EQ(last, ChannelIds::kBlockSize);
}

TEST(ChannelIds, AreDistinctAndNeverTooYoungWhenTheirBlockIsUsedUp) {
  std::atomic<SessionId> last{0};
  ChannelIds ids(last);
  ids.reserve(100);
  ++last;
  ids.reserve(200);
  const SessionId after = ++last;
  ids.reserve(300);
  std::set<SessionId> taken;
  for (SessionId i = 0; i < 2 * ChannelIds::kBlockSize; ++i) {
    const SessionId id = ids.take(250);
    EXPECT_LT(id, after);
    EXPECT_TRUE(taken.insert(id).second);
  }
  for (SessionId i = 0; i < 2 * ChannelIds::kBlockSize; ++i) {
    EXPECT_TRUE(taken.insert(ids.take(250)).second);
  }
  EXPECT_FALSE(taken.contains(after));
}

}  // namespace
}  // namespace lockd
