// Tests that recording a key event allocates no memory.
#include <gtest/gtest.h>

#include <string_view>

#include "base/testing/scarce_memory.h"
#include "core/history.h"

namespace lockd {
namespace {

TEST(HistoryMemory, RecordingDoesNotAllocate) {
  const std::uint64_t ended = fail_each_allocation([] {
    History history(64 * 1024);
    constexpr std::string_view kLong = "a text that is longer than a string stores inline";
    const StoredHolder holder{Holder(kLong)};
    const ScarceMemory scarce;
    for (int i = 0; i < 10'000; ++i) {
      history.add({.type = KeyEvent::Type::granted}, {kLong, kLong, {kLong, kLong, kLong}});
      history.begin(KeyEvent::Type::granted, kLong, holder);
    }
    return !ScarceMemory::ran_out();
  });
  EXPECT_EQ(ended, 0u);
}

}  // namespace
}  // namespace lockd
