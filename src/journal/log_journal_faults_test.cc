// What the journal does when the disk is full, fails, or has its files taken away.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "journal/testing/log_journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

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
  EXPECT_TRUE(logged("no new segment can be made"));
  EXPECT_EQ(log_.size(), 1U) << "once, however often it is tried";
  storage_.fault = nullptr;
  storage_.advance(1000 * kMs);
  append(renewed("a", 1));
  settle();
  EXPECT_EQ(newest(), 2U);
  EXPECT_EQ(storage_.files().size(), 1U);
}

// A file that was not made holds nothing that could be lost.
TEST_F(LogJournalTest, WhateverKeepsASegmentFromBeingMadeTheOldOneServes) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EACCES, EIO}) {
    storage_.clear();
    log_.clear();
    open();
    storage_.fault = [&](const std::string& op) { return op.starts_with("create") ? error : 0; };
    journal_->attach(source_.get());
    for (int i = 0; i < 200; ++i) {
      const Position position = append(renewed("a", 1));
      journal_->turn();
      ASSERT_EQ(journal_->durable(), position) << error;
      storage_.advance(50 * kMs);
    }
    EXPECT_EQ(log_.size(), 1U) << error;
    storage_.fault = nullptr;
    storage_.advance(1000 * kMs);
    append(renewed("a", 1));
    settle();
    EXPECT_EQ(newest(), 2U) << error;
    EXPECT_TRUE(logged("goes on in a new segment again"));
    EXPECT_EQ(log_.size(), 2U) << error;
    journal_->attach(nullptr);
  }
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

TEST_F(LogJournalTest, NobodyIsToldOfWhatAFileThatWasRemovedHolds) {
  for (const Duration interval : {Duration::zero(), Duration(1s)}) {
    LogJournalOptions options = small_options();
    options.sync_interval = interval;
    open(options);
    append(granted("a", 1));
    journal_->turn();
    const Position durable = journal_->durable();
    ASSERT_FALSE(storage_.remove(segment_name(newest())));
    append(granted("b", 2));
    journal_->turn();
    EXPECT_EQ(journal_->durable(), durable);
    EXPECT_EQ(journal_->state(), Journal::State::failed);
    EXPECT_TRUE(logged("the file or its directory was removed or replaced"));
  }
}

TEST_F(LogJournalTest, AFileThatWasReplacedIsNoticed) {
  open();
  append(granted("a", 1));
  journal_->turn();
  storage_.set_bytes(segment_name(1), storage_.bytes(segment_name(1)));  // a file of its own
  const Position durable = journal_->durable();
  append(granted("b", 2));
  journal_->turn();
  EXPECT_EQ(journal_->durable(), durable);
  EXPECT_EQ(journal_->state(), Journal::State::failed);
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

}  // namespace
}  // namespace lockd
