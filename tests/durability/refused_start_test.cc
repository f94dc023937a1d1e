// What a server says that cannot start on its journal: which file, which byte, what to do.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "durability/durable_server.h"
#include "durability/private_mount.h"
#include "journal/format.h"
#include "journal/testing/temporary_directory.h"

namespace lockd {
namespace {

namespace fs = std::filesystem;

// What it says when it refuses, with status 1 and before it listens. The log, which has a thread of
// its own, says before or after it that the server was starting.
std::string refusal(const std::string& directory) {
  ServerProcess server(durable(directory), {.environment = {}, .may_refuse = true});
  EXPECT_EQ(server.port(), 0);
  EXPECT_TRUE(server.port() != 0 || server.await_exit() == 1);
  const std::string log = server.log();
  const std::size_t begin = log.find("lockd: ");
  return begin == std::string::npos ? log : log.substr(begin, log.find('\n', begin) + 1 - begin);
}

void flip_bit(const std::string& path, std::streamoff offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(offset);
  file.put(byte);
  ASSERT_TRUE(file.good());
}

TEST(RefusedStartTest, ADirectoryInUse) {
  const TemporaryDirectory directory;
  ServerProcess first(durable(directory.path()));
  EXPECT_EQ(refusal(directory.path()), "lockd: " + directory.path() + ": in use by process " +
                                           std::to_string(first.pid()) +
                                           "; a journal belongs to one process at a time\n");
  // And has done no harm.
  LineClient client = first.connect();
  EXPECT_EQ(masked(client.ask(request("l", "stone", "0 10"))), "ok <token> 10");
  first.kill();
  ServerProcess second(durable(directory.path()));
}

TEST(RefusedStartTest, DamageThatLaterFramesVouchFor) {
  const TemporaryDirectory directory;
  {
    ServerProcess server(durable(directory.path()));
    LineClient client = server.connect();
    for (int i = 0; i < 50; ++i) {
      ASSERT_NE(token_of(client.ask(request("l", "key-" + std::to_string(i), "0 1000"))), "");
    }
    server.kill();
  }
  const std::string segment = directory.path() + "/journal-0000000000000001.log";
  constexpr int kFirstFrame = 96;
  flip_bit(segment, kFirstFrame + 60);
  const std::string said = refusal(directory.path());
  EXPECT_TRUE(says(said, "lockd: " + segment + ", byte " + std::to_string(kFirstFrame)));
  EXPECT_TRUE(says(said, "the journal is damaged"));
  EXPECT_TRUE(says(said, "Restore the directory"));
  EXPECT_EQ(refusal(directory.path()), said);  // nothing was touched

  flip_bit(segment, kFirstFrame + 60);
  ServerProcess server(durable(directory.path()));
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("l", "key-0", "0")), "timeout");
}

// One bit, at rest, in what the server wrote last before it was stopped.
TEST(RefusedStartTest, DamageToTheLastFrameAfterAStop) {
  const TemporaryDirectory directory;
  {
    ServerProcess server(durable(directory.path()));
    ASSERT_NE(token_of(server.connect().ask(request("l", "stone", "0 1000"))), "");
    server.terminate();
    ASSERT_EQ(server.await_exit(), 0);
  }
  const std::string segment = directory.path() + "/journal-0000000000000001.log";
  std::ifstream file(segment, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::size_t closing = bytes.find_last_not_of('\0') + 1 - kFrameHeaderSize;
  flip_bit(segment, static_cast<std::streamoff>(closing) - 1);
  const std::string said = refusal(directory.path());
  EXPECT_TRUE(says(said, "lockd: " + segment + ", byte "));
  EXPECT_TRUE(says(said, "the journal is damaged"));
}

TEST(RefusedStartTest, AFile) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "not a journal\n";
  EXPECT_EQ(refusal(file), "lockd: --wal takes a directory, which is made if it is not there: '" +
                               file + "' is a file\n");
}

TEST(RefusedStartTest, AReadOnlyDirectory) {
  const TemporaryDirectory directory;
  if (::geteuid() != 0) {
    fs::permissions(directory.path(), fs::perms(0500));
    EXPECT_TRUE(says(refusal(directory.path()), ": Permission denied\n"));
    fs::permissions(directory.path(), fs::perms(0700));
    return;
  }
  // Root may write whatever the permissions are, but not to what is mounted read-only.
  const PrivateMount mount(directory.path(), "mode=0700", true);
  if (!mount.is_there()) GTEST_SKIP() << "a file system cannot be mounted here";
  EXPECT_TRUE(says(refusal(directory.path()), "lockd: " + directory.path() + ": "));
  EXPECT_TRUE(says(refusal(directory.path()), ": Read-only file system\n"));
}

}  // namespace
}  // namespace lockd
