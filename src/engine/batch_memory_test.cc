// Tests that requests for one key, which exists, allocate no memory.
#include <gtest/gtest.h>

#include <chrono>

#include "base/testing/scarce_memory.h"
#include "lockd/batch.h"
#include "lockd/engine.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(BatchMemory, RequestsForOneKeyDoNotAllocate) {
  const std::uint64_t ended = fail_each_allocation([] {
    Engine engine({.sweeper = false});
    Batch batch(engine);
    const auto use = [&](const KeyItem& item) {
      const AcquireRequest request{.keys = item, .holder = "cart-7", .ttl = 30s};
      const HoldId hold{item, "cart-7", batch.acquire(request).grant.fence};
      bool is_done = batch.renew(hold).outcome == Outcome::ok && batch.release(hold);
      const HoldId again{item, "cart-7", engine.acquire(request)->fence};
      is_done = is_done && engine.renew(again) && engine.release(again);
      batch.commit();
      return is_done;
    };
    bool is_done = use("stone-42") && use(semaphore("belt", 3));
    const ScarceMemory scarce;
    for (int i = 0; i < 100; ++i) {
      is_done = is_done && use("stone-42") && use(semaphore("belt", 3));
    }
    return is_done && !ScarceMemory::ran_out();
  });
  EXPECT_EQ(ended, 0u);
}

}  // namespace
}  // namespace lockd
