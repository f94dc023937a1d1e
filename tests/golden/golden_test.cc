// Every version starts from what earlier ones wrote, and finds exactly what they held.
#include "golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>

#include "journal/testing/temporary_directory.h"
#include "lockd/file_journal.h"

namespace lockd::golden {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> versions() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(LOCKD_GOLDEN_DIR)) {
    if (entry.is_directory()) found.push_back(entry.path().filename());
  }
  return found;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  static std::string path(const std::string& name) {
    return std::string(LOCKD_GOLDEN_DIR) + "/" + GetParam() + "/" + name;
  }
  static std::string text(const std::string& name) { return read_text(path(name)); }
};

TEST_P(Golden, AJournalIsTakenUp) {
  for (const std::string name : {"journal", "journal-stopped"}) {
    EXPECT_EQ(recover(read_files(path(name))), text(name + ".holds.txt")) << name;
  }
}

TEST_P(Golden, AChainIsTakenOver) {
  EXPECT_EQ(take_over(text("chain.txt")), text("chain.holds.txt"));
}

// What a server holds that takes over the chain, one that starts from the export holds as well.
TEST_P(Golden, AChainIsExported) {
  etcd::ModelEtcd etcd(1, etcd::kNoFaults);
  replay_history(text("chain.txt"), etcd.store);
  EXPECT_EQ(held_in(export_chain(etcd)), text("chain.holds.txt"));
}

TEST_P(Golden, AJournalIsImported) {
  for (const std::string name : {"journal", "journal-stopped"}) {
    etcd::ModelEtcd etcd(1, etcd::kNoFaults);
    import_chain(etcd, read_files(path(name)));
    Node node = Node::of_no_time(etcd, "reader");
    node.take_over();
    EXPECT_EQ(node.holds(), held_in(read_files(path(name)))) << name;
    EXPECT_EQ(held_in(export_chain(etcd)), held_in(read_files(path(name)))) << name;
  }
}

// By the library that users have, on a real directory. All leases are over but one.
TEST_P(Golden, AJournalIsTakenUpFromADirectory) {
  for (const std::string name : {"journal", "journal-stopped"}) {
    const TemporaryDirectory directory;
    std::filesystem::copy(path(name), directory.path());
    Fence last = 12;  // at least so many were granted
    for (int run = 0; run < 2; ++run) {
      const auto journal = FileJournal::open({.directory = directory.path()});
      Engine engine({.clock = &journal->clock(), .journal = journal.get()});
      EXPECT_EQ(engine.acquire({.keys = "for ever", .holder = "thief", .ttl = 1s}).outcome,
                Outcome::held);
      EXPECT_TRUE(engine.acquire({.keys = "for ever", .holder = "cart-7", .ttl = kDurationMax}));
      const auto grant = engine.acquire({.keys = "new", .holder = "a", .ttl = 1ms, .wait = 60s});
      ASSERT_TRUE(grant);
      EXPECT_GT(grant->fence, last);
      last = grant->fence;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, Golden, testing::ValuesIn(versions()), [](const auto& version) {
  std::string name = version.param;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace lockd::golden
