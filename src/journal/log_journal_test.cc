// The journal turn by turn: order, restarts, segments, snapshots.
#include "journal/log_journal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "journal/testing/log_journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

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
  EXPECT_EQ(newest(), 2U);
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
  EXPECT_EQ(source_->snapshots, 1);
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
  EXPECT_GT(source_->snapshots, 20);
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
  EXPECT_EQ(source_->snapshots, 1);
  EXPECT_EQ(storage_.files().size(), 1U);
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

}  // namespace
}  // namespace lockd
