// The real directory: permissions, the lock, files and their names.
#include "journal/posix_storage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "journal/testing/temporary_directory.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

using Access = PosixStorage::Access;

class PosixStorageTest : public testing::Test {
 protected:
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  }

  const TemporaryDirectory temporary_;
  const std::string directory_ = temporary_.path() + "/journal";
};

TEST_F(PosixStorageTest, MakesADirectoryAndFilesForItsOwnerAlone) {
  const mode_t before = ::umask(0);
  PosixStorage storage(directory_, Access::write);
  std::unique_ptr<StorageFile> file;
  ASSERT_FALSE(storage.create("a", &file));
  std::string owner;
  ASSERT_FALSE(storage.lock(&owner));
  ::umask(before);
  EXPECT_EQ(mode_of(directory_), 0700U);
  EXPECT_EQ(mode_of(directory_ + "/a"), 0600U);
  EXPECT_EQ(mode_of(directory_ + "/lock"), 0600U);
}

TEST_F(PosixStorageTest, RefusesADirectoryThatOthersMayEnter) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0750), 0);
  try {
    PosixStorage storage(directory_, Access::write);
    FAIL();
  } catch (const JournalError& error) {
    EXPECT_NE(std::string(error.what()).find("run: chmod 700 " + directory_), std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(PosixStorage(directory_, Access::read));
  ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
  EXPECT_NO_THROW(PosixStorage(directory_, Access::write));
}

TEST_F(PosixStorageTest, RefusesWhatIsNoDirectory) {
  EXPECT_THROW(PosixStorage(directory_ + "/too/deep", Access::write), JournalError);
  EXPECT_THROW(PosixStorage(directory_, Access::read), JournalError);
  EXPECT_THROW(PosixStorage("/proc/version", Access::write), JournalError);
}

TEST_F(PosixStorageTest, FilesAreWhatWasWritten) {
  PosixStorage storage(directory_, Access::write);
  std::unique_ptr<StorageFile> file;
  ASSERT_FALSE(storage.create("a", &file));
  EXPECT_EQ(storage.create("a", &file).error, EEXIST);
  EXPECT_EQ(storage.open("b", &file).error, ENOENT);
  ASSERT_FALSE(storage.open("a", &file));
  ASSERT_FALSE(file->write(3, "hello"));
  ASSERT_FALSE(file->allocate(8, 100'000));
  std::uint64_t size = 0;
  ASSERT_FALSE(file->size(&size));
  EXPECT_EQ(size, 100'000U);
  std::vector<char> bytes(200'000, 'x');
  std::size_t got = 0;
  ASSERT_FALSE(file->read(0, bytes, &got));
  ASSERT_EQ(got, 100'000U);
  EXPECT_EQ(std::string(bytes.data(), 9), std::string("\0\0\0hello\0", 9));
  EXPECT_TRUE(
      std::all_of(bytes.begin() + 8, bytes.begin() + 100'000, [](char c) { return c == '\0'; }));
  ASSERT_FALSE(file->truncate(5));
  ASSERT_FALSE(file->sync());
  ASSERT_FALSE(storage.sync_directory());
  ASSERT_FALSE(file->read(0, bytes, &got));
  EXPECT_EQ(got, 5U);
  std::vector<std::string> names;
  ASSERT_FALSE(storage.list(&names));
  EXPECT_NE(std::find(names.begin(), names.end(), "a"), names.end());
  ASSERT_FALSE(storage.remove("a"));
  EXPECT_EQ(storage.remove("a").error, ENOENT);
}

TEST_F(PosixStorageTest, NoticesAFileThatLostItsName) {
  PosixStorage storage(directory_, Access::write);
  std::unique_ptr<StorageFile> file;
  ASSERT_FALSE(storage.create("a", &file));
  EXPECT_TRUE(file->is_in_place());
  std::filesystem::rename(directory_ + "/a", directory_ + "/b");
  EXPECT_FALSE(file->is_in_place());
  std::filesystem::copy(directory_ + "/b", directory_ + "/a");
  EXPECT_FALSE(file->is_in_place());
  std::filesystem::rename(directory_ + "/b", directory_ + "/a");
  EXPECT_TRUE(file->is_in_place());
}

TEST_F(PosixStorageTest, AFileThatMayNotGrowIsAFault) {
  PosixStorage storage(directory_, Access::write);
  std::unique_ptr<StorageFile> file;
  ASSERT_FALSE(storage.create("a", &file));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  // Half of it fits: the rest is tried again, and fails.
  const Fault written = file->write(0, std::string(8192, 'x'));
  const Fault allocated = file->allocate(4096, 100'000);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(written.error, EFBIG);
  EXPECT_EQ(allocated.error, EFBIG);
  EXPECT_EQ(written.message(), "write: File too large");
  EXPECT_TRUE(allocated.is_no_space());
}

TEST_F(PosixStorageTest, ASecondProcessIsRefusedAndToldWhoIsThere) {
  PosixStorage storage(directory_, Access::write);
  std::string owner;
  ASSERT_FALSE(storage.lock(&owner));
  // Another opening of the same directory is what another process would have.
  {
    PosixStorage second(directory_, Access::write);
    EXPECT_EQ(second.lock(&owner).error, EWOULDBLOCK);
    EXPECT_EQ(owner, "process " + std::to_string(::getpid()));
  }
}

TEST_F(PosixStorageTest, NobodyComesInWhenTheLockFileIsGone) {
  PosixStorage storage(directory_, Access::write);
  std::string owner;
  ASSERT_FALSE(storage.lock(&owner));
  ASSERT_TRUE(std::filesystem::remove(directory_ + "/lock"));
  PosixStorage second(directory_, Access::write);
  EXPECT_EQ(second.lock(&owner).error, EWOULDBLOCK);
  EXPECT_EQ(owner, "another process");
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/lock"));
}

// Versions before this one lock the file alone.
TEST_F(PosixStorageTest, AnEarlierVersionKeepsItOutAndIsKeptOut) {
  PosixStorage storage(directory_, Access::write);
  const std::string path = directory_ + "/lock";
  const Descriptor earlier(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::write(earlier.get(), "4711\n", 5), 5);
  ASSERT_EQ(::flock(earlier.get(), LOCK_EX | LOCK_NB), 0);
  std::string owner;
  EXPECT_EQ(storage.lock(&owner).error, EWOULDBLOCK);
  EXPECT_EQ(owner, "process 4711");
  ASSERT_EQ(::flock(earlier.get(), LOCK_UN), 0);
  ASSERT_FALSE(storage.lock(&owner));
  EXPECT_NE(::flock(earlier.get(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(PosixStorageTest, WhoReadsKeepsWritersOutAndLeavesNoTrace) {
  std::string owner;
  { PosixStorage made(directory_, Access::write); }
  {
    PosixStorage reader(directory_, Access::read);
    PosixStorage another(directory_, Access::read);
    EXPECT_FALSE(reader.lock(&owner));
    EXPECT_FALSE(another.lock(&owner));
    EXPECT_TRUE(std::filesystem::is_empty(directory_));
    PosixStorage writer(directory_, Access::write);
    EXPECT_EQ(writer.lock(&owner).error, EWOULDBLOCK);
  }
  PosixStorage writer(directory_, Access::write);
  ASSERT_FALSE(writer.lock(&owner));
  PosixStorage reader(directory_, Access::read);
  EXPECT_EQ(reader.lock(&owner).error, EWOULDBLOCK);
  EXPECT_EQ(owner, "process " + std::to_string(::getpid()));
}

// By a version that locks the file alone.
TEST_F(PosixStorageTest, WhoReadsIsKeptOutByTheFileToo) {
  { PosixStorage made(directory_, Access::write); }
  const std::string path = directory_ + "/lock";
  const Descriptor earlier(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(earlier.get(), LOCK_EX | LOCK_NB), 0);
  std::string owner;
  PosixStorage reader(directory_, Access::read);
  EXPECT_EQ(reader.lock(&owner).error, EWOULDBLOCK);
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
}

TEST_F(PosixStorageTest, TheLockGoesWithItsProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    PosixStorage storage(directory_, Access::write);
    std::string owner;
    const Fault fault = storage.lock(&owner);
    ::_exit(fault ? 1 : 0);  // nothing is cleaned up
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  PosixStorage storage(directory_, Access::write);
  std::string owner;
  EXPECT_FALSE(storage.lock(&owner)) << owner;
}

TEST_F(PosixStorageTest, TellsTheTime) {
  PosixStorage storage(directory_, Access::write);
  const ClockReading first = storage.moment();
  const ClockReading second = storage.moment();
  EXPECT_EQ(first.boot_id, second.boot_id);
  EXPECT_NE(first.boot_id, (std::array<unsigned char, 16>{}));
  EXPECT_GE(second.boot_ns, first.boot_ns);
  EXPECT_GT(first.wall_ns, 1'577'836'800'000'000'000U) << "after 2020";
}

// In a child: it takes every descriptor that there is.
TEST_F(PosixStorageTest, FilesCanBeOpenedWhenNoDescriptorIsLeft) {
  PosixStorage storage(directory_, Access::write);
  std::unique_ptr<StorageFile> file;
  ASSERT_FALSE(storage.create("a", &file));
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 64;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    while (::dup(0) >= 0) {
    }
    // One at a time is what a rotation needs: the last file makes way for the next.
    for (const char* name : {"b", "c"}) {
      std::unique_ptr<StorageFile> next;
      if (storage.create(name, &next)) ::_exit(1);
      file = std::move(next);
    }
    std::unique_ptr<StorageFile> one_too_many;
    if (storage.create("d", &one_too_many)) ::_exit(2);
    std::unique_ptr<StorageFile> two_too_many;
    if (storage.create("e", &two_too_many).error != EMFILE) ::_exit(3);
    one_too_many.reset();
    std::vector<std::string> names;
    if (storage.list(&names) || names.size() != 6) ::_exit(4);
    if (storage.open("a", &file) || storage.remove("a") || storage.sync_directory()) ::_exit(5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lockd
