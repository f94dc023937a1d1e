// The journal turn by turn: order, rotation, accounts, a full disk, failures, intervals.
#include "journal/log_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "journal/journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMs = 1'000'000;

class LogJournalTest : public testing::Test {
 protected:
  void open(LogJournalOptions options = small_options()) {
    options.log = [this](std::string_view line) { log_.emplace_back(line); };
    journal_.reset();
    journal_ = std::make_unique<LogJournal>(storage_, options);
    recovered_ = recover_all(*journal_);
    source_ = std::make_unique<TestSource>(*journal_);
    storage_.operations.clear();
  }

  Position append(const Event& event) { return journal_->append(std::vector{event}); }

  // Turns until nothing is left to do at once.
  void settle() {
    while (journal_->turn() == Duration::zero()) {
    }
  }

  bool logged(std::string_view words) const {
    return std::any_of(log_.begin(), log_.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  }

  // Frames until the segment is long enough to be followed by another.
  void fill_segment() {
    const std::string first = segment_name(number());
    for (int i = 0; i < 200 && storage_.files().contains(first) && number() == newest_at_start_;
         ++i) {
      append(renewed("filler", 1));
      journal_->turn();
    }
  }

  std::uint64_t number() const { return *segment_number(storage_.files().rbegin()->first); }

  MemoryStorage storage_;
  std::vector<std::string> log_;
  std::unique_ptr<LogJournal> journal_;
  std::unique_ptr<TestSource> source_;
  std::vector<Record> recovered_;
  std::uint64_t newest_at_start_ = 1;
};

TEST_F(LogJournalTest, IsDurableWhenItHasBeenSynced) {
  open();
  EXPECT_EQ(journal_->durable(), 0U);
  const Position position = append(granted("a", 1));
  EXPECT_EQ(journal_->durable(), 0U);
  EXPECT_FALSE(journal_->is_wanted());
  journal_->commit(position);
  EXPECT_TRUE(journal_->is_wanted());
  EXPECT_EQ(journal_->turn(), Duration::max());
  EXPECT_EQ(journal_->durable(), position);
  EXPECT_FALSE(journal_->is_wanted());
  const std::string name = segment_name(1);
  EXPECT_EQ(storage_.operations, (std::vector<std::string>{"write " + name, "sync " + name}));
  journal_->turn();
  EXPECT_EQ(storage_.operations.size(), 2U) << "nothing to do, nothing done";
}

TEST_F(LogJournalTest, TellsTheEngineOfProgress) {
  open();
  journal_->attach(source_.get());
  append(granted("a", 1));
  journal_->turn();
  EXPECT_EQ(source_->progress, 1);
  journal_->turn();
  EXPECT_EQ(source_->progress, 1);
  journal_->attach(nullptr);
  append(granted("b", 2));
  journal_->turn();
  EXPECT_EQ(source_->progress, 1);
}

TEST_F(LogJournalTest, WhatOneTurnTakesIsOneWriteAndOneSync) {
  open();
  for (Fence fence = 1; fence <= 20; ++fence) append(granted("a", fence));
  journal_->turn();
  EXPECT_EQ(std::count_if(storage_.operations.begin(), storage_.operations.end(),
                          [](const std::string& op) { return op.starts_with("write"); }),
            1);
}

TEST_F(LogJournalTest, GoesOnAfterARestartInASegmentOfItsOwn) {
  open();
  const Position before = append(granted("a", 1));
  journal_->turn();
  open();
  EXPECT_EQ(recovered_, std::vector{record_of(granted("a", 1))});
  EXPECT_EQ(journal_->durable(), before) << "positions go on";
  EXPECT_EQ(number(), 2U);
  EXPECT_GT(append(granted("b", 2)), before);
  journal_->turn();
  open();
  EXPECT_EQ(recovered_, (std::vector{record_of(granted("a", 1)), record_of(granted("b", 2))}));
}

TEST_F(LogJournalTest, AppendedAndNeverWrittenIsGone) {
  open();
  append(granted("a", 1));
  journal_->turn();
  append(granted("b", 2));
  open();
  EXPECT_EQ(recovered_, std::vector{record_of(granted("a", 1))});
}

TEST_F(LogJournalTest, AfterARestartAnAccountReplacesWhatCameBefore) {
  open();
  append(granted("a", 1));
  append(granted("b", 2));
  append(ended("a", 1));
  journal_->turn();
  open();
  source_->held = {{"b", 2}};
  source_->last_fence = 2;
  EXPECT_EQ(journal_->turn(), Duration::max()) << "nobody is there to describe anything";
  journal_->attach(source_.get());
  settle();
  EXPECT_EQ(source_->accounts, 1);
  EXPECT_EQ(storage_.files().size(), 1U) << "the first segment is gone";
  open();
  EXPECT_EQ(recovered_, (std::vector{record_of(granted("b", 2)), record_of(fence_floor(2))}));
}

TEST_F(LogJournalTest, ANewSegmentComesIntoUseInAnOrderThatACrashCanInterrupt) {
  open();
  journal_->attach(source_.get());
  fill_segment();
  const std::string old_name = segment_name(1);
  const std::string new_name = segment_name(2);
  const auto& all = storage_.operations;
  const auto made = std::find(all.begin(), all.end(), "create " + new_name);
  ASSERT_NE(made, all.end());
  EXPECT_EQ(*(made - 1), "sync " + old_name);
  EXPECT_EQ(
      std::vector<std::string>(made, made + 7),
      (std::vector<std::string>{"create " + new_name, "write " + new_name, "allocate " + new_name,
                                "sync " + new_name, "sync directory /memory", "write " + old_name,
                                "sync " + old_name}));
  storage_.operations.clear();
  settle();
  EXPECT_EQ(all, (std::vector<std::string>{"write " + new_name, "sync " + new_name,
                                           "remove " + old_name, "sync directory /memory"}));
}

// The log stays within a small multiple of what it tells of, however much happens.
TEST_F(LogJournalTest, TheLogStaysSmallAndTellsEverything) {
  open();
  journal_->attach(source_.get());
  std::map<std::string, Fence> held;
  std::uint64_t largest = 0;
  Fence fence = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key-" + std::to_string(i * 7 % 50);
    if (const auto found = held.find(key); found != held.end()) {
      append(ended(key, found->second));
      held.erase(found);
    } else {
      append(granted(key, ++fence));
      held[key] = fence;
    }
    source_->held.assign(held.begin(), held.end());
    source_->last_fence = fence;
    if (i % 3 == 0) journal_->turn();
    largest = std::max(largest, storage_.size());
  }
  settle();
  EXPECT_GT(source_->accounts, 20);
  EXPECT_LT(largest, 40'000U) << "of which 50 keys need 2,000";
  EXPECT_EQ(journal_->state(), Journal::State::accepting);

  std::map<std::string, Fence> back;
  Fence floor = 0;
  MemoryStorage copy(storage_.files());
  LogJournal journal(copy, small_options());
  journal.recover([&](const Event& event) {
    floor = std::max(floor, event.fence);
    if (event.type == Event::Type::granted) back[std::string(event.key)] = event.fence;
    if (event.type == Event::Type::ended) {
      const auto found = back.find(std::string(event.key));
      if (found != back.end() && found->second == event.fence) back.erase(found);
    }
  });
  EXPECT_EQ(back, held);
  EXPECT_EQ(floor, fence);
}

TEST_F(LogJournalTest, AnAccountWaitsForWhatIsPending) {
  open();
  append(granted("a", 1));
  journal_->turn();
  LogJournalOptions options = small_options();
  options.describe_ahead = 100;
  open(options);
  for (int i = 0; i < 100; ++i) source_->held.emplace_back("key-" + std::to_string(i), 1);
  journal_->attach(source_.get());
  int turns = 0;
  while (journal_->turn() == Duration::zero()) ++turns;
  EXPECT_GT(turns, 20) << "a few keys each";
  EXPECT_EQ(source_->accounts, 1);
  EXPECT_EQ(storage_.files().size(), 1U);
}

TEST_F(LogJournalTest, AFullDiskIsAnnouncedAndPasses) {
  open();
  journal_->attach(source_.get());
  append(granted("a", 1));
  journal_->turn();
  storage_.capacity = storage_.size();
  for (int i = 0; journal_->state() == Journal::State::accepting && i < 100; ++i) {
    append(renewed("a", 1));
    journal_->turn();
  }
  EXPECT_EQ(journal_->state(), Journal::State::full);
  EXPECT_TRUE(logged("No space left on device; locks are not granted"));
  const int progress = source_->progress;

  // Releases go on into the reserve.
  const Position position = append(ended("a", 1));
  const Duration next = journal_->turn();
  EXPECT_EQ(journal_->durable(), position);
  EXPECT_LE(next, 100ms);
  EXPECT_GT(next, 0ms);

  storage_.capacity = UINT64_MAX;
  storage_.advance(100 * kMs);
  EXPECT_EQ(journal_->turn(), Duration::max());
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
  EXPECT_TRUE(logged("there is space on the disk again"));
  EXPECT_GE(source_->progress, progress + 2);
}

TEST_F(LogJournalTest, WhenTheReserveIsGoneItHasFailed) {
  open();
  append(granted("a", 1));
  journal_->turn();
  storage_.capacity = storage_.size();
  Position durable = 0;
  int turns = 0;
  for (; journal_->state() != Journal::State::failed && turns < 1000; ++turns) {
    durable = journal_->durable();
    append(renewed("a", 1));
    journal_->turn();
  }
  EXPECT_GT(turns, 10) << "the reserve was of use";
  EXPECT_EQ(journal_->durable(), durable);
  EXPECT_TRUE(logged("nothing more is acknowledged"));
  storage_.capacity = UINT64_MAX;
  storage_.advance(1000 * kMs);
  append(granted("b", 2));
  EXPECT_EQ(journal_->turn(), Duration::max());
  EXPECT_EQ(journal_->durable(), durable) << "it is final";
}

TEST_F(LogJournalTest, AnyOtherFaultIsFinal) {
  for (const char* operation : {"write", "sync", "allocate"}) {
    storage_.fault = nullptr;
    open();
    journal_->attach(source_.get());
    const Position kept = append(granted("a", 1));
    settle();
    storage_.fault = [&](const std::string& op) { return op.starts_with(operation) ? EIO : 0; };
    Position lost = 0;
    for (int i = 0; i < 100 && journal_->state() != Journal::State::failed; ++i) {
      lost = append(granted("b", 2));
      journal_->turn();
    }
    EXPECT_EQ(journal_->state(), Journal::State::failed) << operation;
    EXPECT_GE(journal_->durable(), kept);
    EXPECT_LT(journal_->durable(), lost);
    storage_.fault = nullptr;  // the disk is well again, but what it has is not known
    const Position durable = journal_->durable();
    append(granted("c", 3));
    journal_->turn();
    EXPECT_EQ(journal_->durable(), durable);
    journal_->attach(nullptr);
  }
}

TEST_F(LogJournalTest, WithoutSpaceForANewSegmentTheOldOneServes) {
  open();
  journal_->attach(source_.get());
  int attempts = 0;
  storage_.fault = [&](const std::string& op) {
    // By turns there is no space for the file's name, or for its bytes.
    if (op == "create " + segment_name(2) && ++attempts % 2 == 0) return ENOSPC;
    return op == "allocate " + segment_name(2) ? EDQUOT : 0;
  };
  for (int i = 0; i < 200; ++i) {
    const Position position = append(renewed("a", 1));
    journal_->turn();
    ASSERT_EQ(journal_->durable(), position);
    storage_.advance(50 * kMs);
  }
  EXPECT_GT(attempts, 2);
  EXPECT_EQ(storage_.files().size(), 1U) << "nothing is left of the attempts";
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
  EXPECT_TRUE(logged("no space for a new segment"));
  EXPECT_LE(log_.size(), 12U) << "once a second";
  storage_.fault = nullptr;
  storage_.advance(1000 * kMs);
  append(renewed("a", 1));
  settle();
  EXPECT_EQ(number(), 2U);
  EXPECT_EQ(storage_.files().size(), 1U);
}

TEST_F(LogJournalTest, ASegmentThatCannotBeRemovedGoesLater) {
  open();
  append(granted("a", 1));
  journal_->turn();
  open();
  storage_.fault = [](const std::string& op) { return op.starts_with("remove") ? EACCES : 0; };
  journal_->attach(source_.get());
  settle();
  EXPECT_TRUE(logged("will be removed later"));
  EXPECT_EQ(storage_.files().size(), 2U);
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
  storage_.fault = nullptr;
  newest_at_start_ = 2;
  fill_segment();
  settle();
  EXPECT_EQ(storage_.files().size(), 1U);
}

TEST_F(LogJournalTest, AnOldSegmentThatSomebodyRemovedIsOfNoConcern) {
  open();
  append(granted("a", 1));
  journal_->turn();
  open();
  ASSERT_FALSE(storage_.remove(segment_name(1)));
  journal_->attach(source_.get());
  settle();
  EXPECT_EQ(storage_.files().size(), 1U);
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
}

TEST_F(LogJournalTest, AFileThatWasRemovedIsNoticed) {
  open();
  append(granted("a", 1));
  journal_->turn();
  ASSERT_FALSE(storage_.remove(segment_name(1)));
  storage_.advance(1000 * kMs);
  append(granted("b", 2));
  journal_->turn();
  EXPECT_EQ(journal_->state(), Journal::State::failed);
  EXPECT_TRUE(logged("the file was removed or replaced"));
}

TEST_F(LogJournalTest, AFileThatWasReplacedIsNoticed) {
  open();
  append(granted("a", 1));
  journal_->turn();
  storage_.set_bytes(segment_name(1), storage_.bytes(segment_name(1)));  // a file of its own
  storage_.advance(1000 * kMs);
  append(granted("b", 2));
  journal_->turn();
  EXPECT_EQ(journal_->state(), Journal::State::failed);
}

TEST_F(LogJournalTest, TooMuchPendingRefusesGrants) {
  LogJournalOptions options = small_options();
  options.pending_max = 1000;
  open(options);
  for (Fence fence = 1; fence <= 100; ++fence) append(granted("a", fence));
  EXPECT_EQ(journal_->state(), Journal::State::full);
  journal_->turn();
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
}

TEST_F(LogJournalTest, OneProcessAtATime) {
  storage_.owner = "process 4711";
  try {
    open();
    FAIL();
  } catch (const JournalError& error) {
    EXPECT_STREQ(error.what(),
                 "/memory: in use by process 4711; a journal belongs to one process at a time");
  }
}

TEST_F(LogJournalTest, AFullDiskAtTheStartSaysSo) {
  storage_.capacity = 500;
  try {
    open();
    FAIL();
  } catch (const JournalError& error) {
    EXPECT_STREQ(error.what(),
                 "/memory: allocate: No space left on device; free some space and start again");
  }
  storage_.capacity = UINT64_MAX;
  open();
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
}

class IntervalTest : public LogJournalTest {
 protected:
  void open_interval() {
    LogJournalOptions options = small_options();
    options.sync_interval = 50ms;
    open(options);
  }

  std::ptrdiff_t syncs() const {
    return std::count(storage_.operations.begin(), storage_.operations.end(),
                      "sync " + segment_name(number()));
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
  for (int accounts = 1; accounts < 4; ++accounts) {
    newest_at_start_ = number();
    fill_segment();
    settle();
    ASSERT_EQ(source_->accounts, accounts);
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
