// The disk itself: what survives, and what may not.
#include "crash/simulated_disk.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <string>

namespace lockd::crash {
namespace {

using Operation = SimulatedDisk::Operation;

std::unique_ptr<StorageFile> create(SimulatedDisk& disk, const std::string& name) {
  std::unique_ptr<StorageFile> file;
  EXPECT_FALSE(disk.create(name, &file));
  return file;
}

std::set<Files> all_images(const SimulatedDisk& disk) {
  std::set<Files> images;
  for (std::uint64_t way = 0; way < disk.ways(); ++way) {
    const auto image = disk.after_power_failure(Survival::way(way));
    if (!image) continue;
    EXPECT_TRUE(images.insert(*image).second) << way;
  }
  return images;
}

std::string sectors(const std::string& letters) {
  std::string bytes;
  for (const char letter : letters) bytes += std::string(SimulatedDisk::kSectorSize, letter);
  return bytes;
}

TEST(SimulatedDisk, WhatIsSyncedSurvives) {
  SimulatedDisk disk;
  const auto file = create(disk, "a");
  EXPECT_FALSE(file->write(0, "bytes"));
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(disk.sync_directory());
  EXPECT_EQ(all_images(disk), (std::set<Files>{{{"a", "bytes"}}}));
}

TEST(SimulatedDisk, ANameSurvivesWithoutItsBytesAndBytesAreLostWithTheirName) {
  SimulatedDisk disk;
  const auto file = create(disk, "a");
  EXPECT_FALSE(file->write(0, "bytes"));
  const std::set<Files> images = all_images(disk);
  EXPECT_TRUE(images.contains({}));
  EXPECT_TRUE(images.contains({{"a", ""}}));
  EXPECT_TRUE(images.contains({{"a", std::string(5, '\0')}}));
  EXPECT_TRUE(images.contains({{"a", "bytes"}}));
  EXPECT_FALSE(file->sync());
  EXPECT_EQ(all_images(disk), (std::set<Files>{{}, {{"a", "bytes"}}}));
}

TEST(SimulatedDisk, SectorsSurviveEachOnItsOwnInAnyOfTheirVersions) {
  SimulatedDisk disk(Files{{"a", sectors("--")}});
  std::unique_ptr<StorageFile> file;
  EXPECT_FALSE(disk.open("a", &file));
  EXPECT_FALSE(file->write(0, sectors("12")));
  EXPECT_FALSE(file->write(0, sectors("3")));
  std::set<Files> expected;
  for (const char* image : {"--", "1-", "3-", "-2", "12", "32"}) {
    expected.insert({{"a", sectors(image)}});
  }
  EXPECT_EQ(all_images(disk), expected);
}

TEST(SimulatedDisk, ATruncationMayOrMayNotHaveHappened) {
  SimulatedDisk disk(Files{{"a", sectors("x") + "tail"}});
  std::unique_ptr<StorageFile> file;
  EXPECT_FALSE(disk.open("a", &file));
  EXPECT_FALSE(file->truncate(SimulatedDisk::kSectorSize));
  const std::set<Files> images = all_images(disk);
  EXPECT_TRUE(images.contains({{"a", sectors("x") + "tail"}}));
  EXPECT_TRUE(images.contains({{"a", sectors("x")}}));
  EXPECT_FALSE(file->sync());
  EXPECT_EQ(all_images(disk), (std::set<Files>{{{"a", sectors("x")}}}));
}

TEST(SimulatedDisk, ARemovedFileMayComeBack) {
  SimulatedDisk disk(Files{{"a", "x"}, {"b", "y"}});
  EXPECT_FALSE(disk.remove("a"));
  EXPECT_FALSE(disk.remove("b"));
  EXPECT_EQ(all_images(disk).size(), 4);
  EXPECT_FALSE(disk.sync_directory());
  EXPECT_EQ(all_images(disk), std::set<Files>{{}});
}

TEST(SimulatedDisk, ACopyIsWhatTheNextProcessFinds) {
  SimulatedDisk disk;
  const auto file = create(disk, "a");
  EXPECT_FALSE(file->write(0, "bytes"));
  SimulatedDisk copy(disk);
  std::unique_ptr<StorageFile> found;
  ASSERT_FALSE(copy.open("a", &found));
  char bytes[8];
  std::size_t got = 0;
  EXPECT_FALSE(found->read(0, bytes, &got));
  EXPECT_EQ(std::string(bytes, got), "bytes");
  EXPECT_EQ(all_images(copy), all_images(disk));
  EXPECT_FALSE(found->sync());
  EXPECT_FALSE(copy.sync_directory());
  EXPECT_EQ(all_images(copy).size(), 1);
  EXPECT_GT(all_images(disk).size(), 1);
}

TEST(SimulatedDisk, WhatASyncHasFailedToWriteALaterOneDoesNot) {
  SimulatedDisk disk(Files{{"a", sectors("-")}});
  std::unique_ptr<StorageFile> file;
  EXPECT_FALSE(disk.open("a", &file));
  EXPECT_FALSE(file->write(0, sectors("1")));
  disk.fault = [](Operation operation, const std::string&) {
    return operation == Operation::sync ? EIO : 0;
  };
  EXPECT_EQ(file->sync().error, EIO);
  disk.fault = nullptr;
  EXPECT_FALSE(file->sync());
  EXPECT_EQ(all_images(disk).size(), 2);
  EXPECT_FALSE(file->write(0, sectors("2")));
  EXPECT_FALSE(file->sync());
  EXPECT_EQ(all_images(disk), (std::set<Files>{{{"a", sectors("2")}}}));
}

}  // namespace
}  // namespace lockd::crash
