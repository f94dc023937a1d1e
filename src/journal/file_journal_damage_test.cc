// What a journal in a real directory refuses, and what it repairs: other owners, torn tails,
// damage.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "journal/testing/file_journal_fixture.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST_F(FileJournalTest, ASecondOpenerIsRefused) {
  start();
  EXPECT_THROW(FileJournal::open({.directory = directory_}), JournalError);
  EXPECT_TRUE(engine_->acquire({.key = "k", .holder = "a", .ttl = 1s}));
  stop();
  EXPECT_NO_THROW(FileJournal::open({.directory = directory_}));
}

TEST_F(FileJournalTest, RefusesOptionsOutOfRange) {
  EXPECT_THROW(FileJournal::open({}), JournalError);
  EXPECT_THROW(FileJournal::open({.directory = directory_, .sync_interval = -1s}), JournalError);
}

TEST_F(FileJournalTest, ATornTailIsCutAndSaid) {
  start();
  const auto grant = engine_->acquire({.key = "k", .holder = "a", .ttl = 600s});
  stop();
  const std::string name = directory_ + "/journal-0000000000000001.log";
  std::ofstream(name, std::ios::app | std::ios::binary) << "half a frame";
  start();
  EXPECT_TRUE(logged("journal-0000000000000001.log: cut "));
  EXPECT_EQ(engine_->fence("k").fence, grant->fence);
}

TEST_F(FileJournalTest, DamageIsRefused) {
  start();
  for (int i = 0; i < 10; ++i) {
    engine_->acquire({.key = std::to_string(i), .holder = "a", .ttl = 600s});
  }
  stop();
  std::fstream file(directory_ + "/journal-0000000000000001.log",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(150);
  file.put('\xff');
  file.close();
  try {
    FileJournal::open({.directory = directory_});
    FAIL();
  } catch (const JournalError& error) {
    EXPECT_NE(std::string(error.what()).find("journal-0000000000000001.log, byte 96: "),
              std::string::npos)
        << error.what();
  }
}

TEST_F(FileJournalTest, AFileThatIsRemovedMakesItFail) {
  start();
  ASSERT_TRUE(engine_->acquire({.key = "k", .holder = "a", .ttl = 600s}));
  std::filesystem::remove(directory_ + "/journal-0000000000000001.log");
  EXPECT_TRUE(eventually([&] {
    return engine_->acquire({.key = "k", .holder = "a", .ttl = 1s}).outcome == Outcome::storage;
  }));
  EXPECT_EQ(engine_->journal_state(), Journal::State::failed);
  EXPECT_TRUE(logged("the file was removed or replaced"));
}

}  // namespace
}  // namespace lockd
