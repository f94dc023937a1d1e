// The journal with an interval: told when written, synced later, and fences that survive it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>

#include "journal/testing/log_journal_fixture.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

class IntervalTest : public LogJournalTest {
 protected:
  void open_interval() {
    LogJournalOptions options = small_options();
    options.sync_interval = 50ms;
    open(options);
  }

  std::ptrdiff_t syncs() const {
    return std::count(storage_.operations.begin(), storage_.operations.end(),
                      "sync " + segment_name(newest()));
  }
};

TEST_F(IntervalTest, IsToldWhenWrittenAndSyncedLater) {
  open_interval();
  append(granted("a", 1));
  journal_->turn();
  EXPECT_EQ(syncs(), 1) << "the floor of fences";
  const Position position = append(granted("b", 2));
  EXPECT_EQ(journal_->turn(), 50ms);
  EXPECT_EQ(journal_->durable(), position);
  EXPECT_EQ(syncs(), 1);
  storage_.advance(30 * kMs);
  append(granted("c", 3));
  EXPECT_EQ(journal_->turn(), 20ms) << "since the first that is not synced";
  storage_.advance(20 * kMs);
  EXPECT_EQ(journal_->turn(), Duration::max());
  EXPECT_EQ(syncs(), 2);
  journal_->turn();
  EXPECT_EQ(syncs(), 2);
}

TEST_F(IntervalTest, FlushSyncsAtOnce) {
  open_interval();
  append(granted("a", 1));
  journal_->turn();
  append(granted("b", 2));
  journal_->flush();
  EXPECT_EQ(syncs(), 2);
}

TEST_F(IntervalTest, NoFenceIsToldAboveASyncedFloor) {
  open_interval();
  storage_.fault = [](const std::string& op) { return op.starts_with("sync") ? EIO : 0; };
  append(granted("a", 1));
  journal_->turn();
  EXPECT_EQ(journal_->durable(), 0U);
  EXPECT_EQ(journal_->state(), Journal::State::failed);
}

TEST_F(IntervalTest, TheFloorOutlivesTheSegmentsItWasIn) {
  open_interval();
  journal_->attach(source_.get());
  append(granted("a", 1));
  source_->last_fence = 1;
  journal_->turn();
  for (int snapshots = 1; snapshots < 4; ++snapshots) {
    newest_at_start_ = newest();
    fill_segment();
    settle();
    ASSERT_EQ(source_->snapshots, snapshots);
    ASSERT_EQ(storage_.files().size(), 1U);
    Fence floor = 0;
    MemoryStorage copy(storage_.files());
    LogJournal journal(copy, small_options());
    journal.recover([&](const Event& event) { floor = std::max(floor, event.fence); });
    EXPECT_GT(floor, Fence{1} << 20);
  }
}

}  // namespace
}  // namespace lockd
