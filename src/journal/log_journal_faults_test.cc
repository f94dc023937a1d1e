// What the journal does when the disk is full, fails, or has its files taken away.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "journal/testing/log_journal_fixture.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST_F(LogJournalTest, AFullDiskIsAnnouncedAndPasses) {
  open();
  hold_much();
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

// Fuller and fuller, as the engine is told, and never failed. What there is no room for waits.
TEST_F(LogJournalTest, WhenTheReserveIsGoneItWaitsForSpace) {
  open();
  append(granted("a", 1));
  journal_->turn();
  storage_.capacity = storage_.size();
  std::vector<Journal::State> states{journal_->state()};
  Position durable = 0;
  Position appended = 0;
  int waiting = 0;
  for (int turns = 0; turns < 1000 && waiting < 10; ++turns) {
    appended = append(renewed("a", 1));
    journal_->commit(appended);
    journal_->turn();
    if (journal_->state() != states.back()) states.push_back(journal_->state());
    waiting += journal_->durable() == durable;
    durable = journal_->durable();
    storage_.advance(kMs);
  }
  EXPECT_EQ(states, (std::vector{Journal::State::accepting, Journal::State::full,
                                 Journal::State::scarce, Journal::State::exhausted}));
  EXPECT_LT(durable, appended);
  EXPECT_FALSE(journal_->is_wanted()) << "a turn would find no room";
  EXPECT_TRUE(logged("renewals are refused"));
  EXPECT_TRUE(logged("renewals and releases are refused"));
  EXPECT_EQ(log_.size(), 3U);

  storage_.capacity = UINT64_MAX;
  storage_.advance(100 * kMs);
  settle();
  EXPECT_TRUE(journal_->is_wanted()) << "by what was appended since";
  settle();
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
  EXPECT_EQ(journal_->durable(), appended);
  EXPECT_GT(read_all(storage_.files()).size(), 20U);
}

// More than the reserve, in one turn, when there is no space for it.
TEST_F(LogJournalTest, ABurstThatFindsTheDiskFullWaitsForSpace) {
  open();
  append(granted("a", 1));
  journal_->turn();
  storage_.capacity = storage_.size();
  Position position = 0;
  for (Fence fence = 2; fence < 200; ++fence) position = append(granted("key", fence));
  const Position before = journal_->durable();
  journal_->turn();
  EXPECT_EQ(journal_->durable(), before);
  EXPECT_EQ(journal_->state(), Journal::State::exhausted);
  storage_.capacity = UINT64_MAX;
  storage_.advance(100 * kMs);
  settle();
  EXPECT_EQ(journal_->durable(), position);
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
}

// What is held would fit many times into what the journal takes up: it makes room by itself.
TEST_F(LogJournalTest, ADiskFullOfItsOwnPastIsFreed) {
  open();
  source_->held = {{"a", 1}};
  source_->last_fence = 1;
  append(granted("a", 1));
  for (int i = 0; i < 20; ++i) {
    append(renewed("a", 1));
    journal_->turn();
  }
  storage_.capacity = storage_.size();
  journal_->attach(source_.get());
  for (int i = 0; i < 300; ++i) {
    const Position position = append(renewed("a", 1));
    while (journal_->turn() == Duration::zero()) {
    }
    ASSERT_GE(journal_->durable(), position);
    storage_.advance(10 * kMs);
    ASSERT_LE(storage_.size(), storage_.capacity);
  }
  EXPECT_TRUE(logged("locks are not granted"));
  EXPECT_GT(source_->snapshots, 1);
  EXPECT_NE(journal_->state(), Journal::State::exhausted);
  EXPECT_EQ(storage_.files().size(), 1U);
}

// An idle server's only turns are those that look for space, since the requests that a full disk
// refuses append nothing. A first attempt at a new segment has failed shortly before.
TEST_F(LogJournalTest, IdleServerFreesADiskFullOfItsOwnPast) {
  open();
  source_->held = {{"a", 1}};
  source_->last_fence = 1;
  journal_->attach(source_.get());
  append(granted("a", 1));
  storage_.capacity = 6144;
  for (int i = 0; journal_->state() == Journal::State::accepting && i < 200; ++i) {
    append(renewed("a", 1));
    journal_->turn();
  }
  ASSERT_EQ(journal_->state(), Journal::State::full);
  ASSERT_TRUE(logged("no new segment can be made"));
  for (int i = 0; i < 50; ++i) {
    storage_.advance(static_cast<std::uint64_t>(journal_->turn().count()));
    if (journal_->state() == Journal::State::accepting) break;
  }
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
  EXPECT_EQ(source_->snapshots, 1);
  EXPECT_EQ(storage_.files().size(), 1U);
}

// Every byte that is given back is taken by somebody else.
TEST_F(LogJournalTest, ADiskThatOthersFillIsLivedThrough) {
  open();
  source_->held = {{"a", 1}};
  append(granted("a", 1));
  for (int i = 0; i < 10; ++i) {
    append(renewed("a", 1));
    journal_->turn();
  }
  journal_->attach(source_.get());
  storage_.capacity = storage_.size();
  int tries = 0;
  storage_.fault = [&](const std::string& op) {
    if (op.starts_with("create")) ++tries;
    storage_.capacity = std::min(storage_.capacity, storage_.size());
    return 0;
  };
  Position position = 0;
  for (int i = 0; i < 1000; ++i) {
    position = append(renewed("a", 1));
    journal_->turn();
    ASSERT_NE(journal_->state(), Journal::State::failed);
    storage_.advance(20 * kMs);
  }
  EXPECT_GT(tries, 0);
  EXPECT_LT(tries, 10) << "each may cost some of the reserve";
  storage_.fault = nullptr;
  storage_.capacity = UINT64_MAX;
  storage_.advance(100 * kMs);
  journal_->commit(position);
  do {
    settle();
  } while (journal_->is_wanted());
  EXPECT_EQ(journal_->state(), Journal::State::accepting);
  EXPECT_GE(journal_->durable(), position);
}

// Full in the midst of a snapshot: the segments before it are needed until it is complete.
TEST_F(LogJournalTest, ASnapshotThatFitsIsCompletedWhenFull) {
  open();
  append(granted("a", 1));
  journal_->turn();
  open();
  storage_.capacity = storage_.size();
  for (int i = 0; journal_->state() == Journal::State::accepting && i < 100; ++i) {
    append(renewed("a", 1));
    journal_->turn();
  }
  ASSERT_EQ(journal_->state(), Journal::State::full);
  ASSERT_EQ(storage_.files().size(), 2U);
  source_->held = {{"a", 1}};
  journal_->attach(source_.get());
  settle();
  EXPECT_EQ(source_->snapshots, 1);
  EXPECT_EQ(storage_.files().size(), 1U);
  EXPECT_EQ(journal_->state(), Journal::State::accepting) << "of what was removed";
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

class FullStartTest : public LogJournalTest {
 protected:
  // A run that ends, and a disk with nothing left but what the journal has taken.
  void live_and_fill() {
    open();
    append(granted("a", 1));
    journal_->turn();
    journal_.reset();
    storage_.capacity = storage_.size();
  }

  void expect_normal_service() {
    storage_.capacity = UINT64_MAX;
    storage_.advance(1000 * kMs);
    const Position position = append(granted("b", 2));
    settle();
    storage_.advance(1000 * kMs);
    settle();
    EXPECT_EQ(journal_->state(), Journal::State::accepting);
    EXPECT_GE(journal_->durable(), position);
    open();
    EXPECT_NE(std::find(recovered_.begin(), recovered_.end(), record_of(granted("b", 2))),
              recovered_.end());
  }
};

TEST_F(FullStartTest, ServesFromTheReserve) {
  live_and_fill();
  open();
  EXPECT_EQ(recovered_, std::vector{record_of(granted("a", 1))});
  EXPECT_EQ(journal_->state(), Journal::State::full);
  const Position position = append(renewed("a", 1));
  journal_->turn();
  EXPECT_EQ(journal_->durable(), position);
  open();
  EXPECT_EQ(recovered_, (std::vector{record_of(granted("a", 1)), record_of(renewed("a", 1))}));
  EXPECT_EQ(journal_->state(), Journal::State::full);
  journal_->attach(source_.get());
  expect_normal_service();
}

TEST_F(FullStartTest, AfterARebootASegmentIsMadeOfTheSpaceThatIsLeft) {
  live_and_fill();
  storage_.now.boot_id[0] ^= 1;
  storage_.now.boot_ns = 5000 * kMs;
  storage_.advance(2000 * kMs);
  open();
  EXPECT_EQ(journal_->state(), Journal::State::full);
  EXPECT_EQ(newest(), 2U);
  EXPECT_LE(storage_.size(), storage_.capacity);
  const Position position = append(renewed("a", 1));
  journal_->turn();
  EXPECT_EQ(journal_->durable(), position);
  // From here on it is this boot's clock that counts, whatever is done to the one on the wall.
  const Time now = journal_->now();
  storage_.now.wall_ns -= 3600'000 * kMs;
  open();
  EXPECT_EQ(journal_->now(), now);
  EXPECT_EQ(recovered_, (std::vector{record_of(granted("a", 1)), record_of(renewed("a", 1))}));
  journal_->attach(source_.get());
  expect_normal_service();
}

TEST_F(FullStartTest, ManyStartsInARowLoseNothing) {
  live_and_fill();
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0) ++storage_.now.boot_id[1];
    open();
    ASSERT_EQ(recovered_, std::vector{record_of(granted("a", 1))}) << i;
    ASSERT_NE(journal_->state(), Journal::State::accepting) << i;
    ASSERT_NE(journal_->state(), Journal::State::failed) << i;
    storage_.advance(kMs);
  }
  expect_normal_service();
}

// Nothing can be written, as the last segment's clocks are those of another boot; not even what
// ends by itself. It waits.
TEST_F(FullStartTest, WithoutAnythingToWriteIntoItStartsAndWaits) {
  live_and_fill();
  storage_.now.boot_id[0] ^= 1;
  storage_.fault = [](const std::string& op) { return op.starts_with("create") ? ENOSPC : 0; };
  open();
  EXPECT_EQ(recovered_, std::vector{record_of(granted("a", 1))});
  EXPECT_EQ(journal_->state(), Journal::State::exhausted);
  const MemoryStorage::Files before = storage_.files();
  const Position position = append(ended("a", 1, EndCause::expired));
  journal_->attach(source_.get());
  for (int i = 0; i < 20; ++i) {
    journal_->commit(position);
    EXPECT_GT(journal_->turn(), Duration::zero());
    EXPECT_LT(journal_->durable(), position);
    storage_.advance(100 * kMs);
  }
  EXPECT_EQ(storage_.files(), before);
  storage_.fault = nullptr;
  expect_normal_service();
  EXPECT_EQ(std::count(recovered_.begin(), recovered_.end(), record_of(granted("a", 1))), 0);
}

// One shortage upon the other: it waits for both to pass.
TEST_F(FullStartTest, ThenWithoutDescriptorsItWaitsOn) {
  live_and_fill();
  storage_.now.boot_id[0] ^= 1;
  storage_.fault = [](const std::string& op) { return op.starts_with("create") ? ENOSPC : 0; };
  open();
  journal_->attach(source_.get());
  storage_.fault = [](const std::string& op) { return op.starts_with("create") ? EMFILE : 0; };
  for (int i = 0; i < 5; ++i) {
    storage_.advance(100 * kMs);
    journal_->turn();
    ASSERT_EQ(journal_->state(), Journal::State::exhausted);
  }
  storage_.fault = nullptr;
  expect_normal_service();
}

// On the same boot the last segment's clocks are right.
TEST_F(FullStartTest, WithoutANameForASegmentItGoesOnInTheLast) {
  live_and_fill();
  storage_.fault = [](const std::string& op) { return op.starts_with("create") ? ENOSPC : 0; };
  open();
  EXPECT_EQ(journal_->state(), Journal::State::full);
  const Position position = append(renewed("a", 1));
  journal_->turn();
  EXPECT_EQ(journal_->durable(), position);
  EXPECT_EQ(newest(), 1U);
  storage_.advance(5000 * kMs);
  const Time now = journal_->now();
  open();
  EXPECT_EQ(journal_->now(), now);
  EXPECT_EQ(recovered_, (std::vector{record_of(granted("a", 1)), record_of(renewed("a", 1))}));
  storage_.fault = nullptr;
  journal_->attach(source_.get());
  expect_normal_service();
}

TEST_F(FullStartTest, ATornTailKeepsItsSpace) {
  live_and_fill();
  std::string bytes = storage_.bytes(segment_name(1));
  bytes.replace(300, 5, "stray");
  storage_.set_bytes(segment_name(1), bytes);
  const std::uint64_t size = storage_.size();
  open();
  EXPECT_TRUE(logged(": cut "));
  EXPECT_EQ(journal_->state(), Journal::State::full);
  EXPECT_GT(storage_.size(), size - 200);
}

TEST_F(LogJournalTest, AFullDiskAtTheFirstStartSaysSo) {
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
