// What a journal in a real directory refuses, and what it repairs: other owners, torn tails,
// damage.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "journal/testing/file_journal_fixture.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST_F(FileJournalTest, RefusesOptionsOutOfRange) {
  EXPECT_THROW(FileJournal::open({}), JournalError);
  EXPECT_THROW(FileJournal::open({.directory = directory_, .sync_interval = -1s}), JournalError);
}

// Nothing is acknowledged once they are gone, not even once.
TEST_F(FileJournalTest, FilesThatAreTakenAwayMakeItFail) {
  namespace fs = std::filesystem;
  const std::string segment = directory_ + "/journal-0000000000000001.log";
  const std::string elsewhere = temporary_.path() + "/elsewhere";
  const std::vector<std::function<void()>> ways = {
      [&] { fs::remove(segment); },
      [&] { fs::rename(segment, elsewhere); },
      [&] { fs::remove_all(directory_); },
      [&] { fs::rename(directory_, elsewhere); },
      [&] {
        fs::copy(directory_, elsewhere + "-copy");
        fs::rename(directory_, elsewhere);
        fs::rename(elsewhere + "-copy", directory_);
      },
  };
  for (std::size_t i = 0; i < ways.size(); ++i) {
    for (const Duration interval : {Duration::zero(), Duration(10s)}) {
      log_.clear();
      start(interval);
      ASSERT_TRUE(engine_->acquire({.keys = "k", .holder = "a", .ttl = 600s}));
      ways[i]();
      EXPECT_EQ(engine_->acquire({.keys = "l", .holder = "a", .ttl = 600s}).outcome,
                Outcome::storage)
          << i;
      EXPECT_EQ(engine_->journal_state(), Journal::State::failed);
      EXPECT_TRUE(logged("the file or its directory was removed or replaced")) << i;
      stop();
      fs::remove_all(directory_);
      fs::remove_all(elsewhere);
    }
  }
}

TEST_F(FileJournalTest, AnotherWorkingDirectoryIsOfNoConcern) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(temporary_.path());
  start({.directory = "journal"});
  std::filesystem::current_path("/");
  EXPECT_TRUE(engine_->acquire({.keys = "k", .holder = "a", .ttl = 600s}));
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace lockd
