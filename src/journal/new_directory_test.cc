// A directory is there when it is whole, and else nothing is.
#include "journal/new_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "journal/testing/temporary_directory.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

namespace fs = std::filesystem;

class NewDirectoryTest : public testing::Test {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(above_.path())) {
      found.push_back(entry.path().filename());
    }
    return found;
  }
  static std::string refusal(const std::string& name) {
    try {
      const NewDirectory directory(name);
    } catch (const JournalError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryDirectory above_;
  const std::string name_ = above_.path() + "/backup";
};

TEST_F(NewDirectoryTest, AppearsWhenItIsPublished) {
  for (const bool is_there : {false, true}) {
    if (is_there) fs::create_directory(name_);
    {
      NewDirectory directory(name_ + (is_there ? "/" : ""));
      EXPECT_TRUE(directory.path().starts_with(name_ + ".new-"));
      std::ofstream(directory.path() + "/file") << "whole";
      EXPECT_FALSE(fs::exists(name_ + "/file"));
      directory.publish();
    }
    EXPECT_EQ(names(), std::vector<std::string>{"backup"});
    EXPECT_EQ(fs::file_size(name_ + "/file"), 5U);
    EXPECT_EQ(fs::status(name_).permissions(), fs::perms::owner_all);
    fs::remove_all(name_);
  }
}

TEST_F(NewDirectoryTest, LeavesNothingWhenItIsNot) {
  {
    const NewDirectory directory(name_);
    std::ofstream(directory.path() + "/file") << "half";
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(NewDirectoryTest, TakesNobodysPlace) {
  fs::create_directory(name_);
  std::ofstream(name_ + "/other") << "there";
  EXPECT_EQ(refusal(name_), name_ + ": the directory is not empty");
  fs::create_symlink("/", above_.path() + "/link");
  EXPECT_EQ(refusal(above_.path() + "/link"),
            above_.path() + "/link: it is there already, and no directory");
  EXPECT_TRUE(refusal(above_.path() + "/no/backup")
                  .ends_with(": make the directory: No such file or directory"));

  // Nor does it when somebody came first.
  fs::remove_all(name_);
  {
    NewDirectory directory(name_);
    fs::create_directory(name_);
    std::ofstream(name_ + "/other") << "there";
    EXPECT_THROW(directory.publish(), JournalError);
  }
  EXPECT_EQ(fs::file_size(name_ + "/other"), 5U);
  EXPECT_EQ(names().size(), 2U);
}

}  // namespace
}  // namespace lockd
