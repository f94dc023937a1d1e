#include "journal/new_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/descriptor.h"
#include "journal/journal_error.h"
#include "journal/storage.h"
#include "lockd/file_journal.h"

namespace lockd {
namespace {

namespace fs = std::filesystem;

std::string without_slashes(std::string name) {
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

}  // namespace

void check_new_directory(const std::string& name) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(name, error);
  if (status.type() == fs::file_type::not_found) return;
  if (status.type() != fs::file_type::directory) {
    throw JournalError(name + ": it is there already, and no directory");
  }
  const bool is_empty = fs::is_empty(name, error);
  if (error) throw JournalError(name + ": " + error.message());
  if (!is_empty) throw JournalError(name + ": the directory is not empty");
}

NewDirectory::NewDirectory(const std::string& name)
    : name_(without_slashes(name)), path_(name_ + ".new-XXXXXX") {
  check_new_directory(name_);
  if (::mkdtemp(path_.data()) == nullptr) refuse_fault(path_, {errno, "make the directory"});
}

NewDirectory::~NewDirectory() {
  if (path_.empty()) return;
  std::error_code error;
  fs::remove_all(path_, error);
}

// The name of an empty directory is taken by the whole one in a single step.
void NewDirectory::publish() {
  if (std::rename(path_.c_str(), name_.c_str()) != 0) refuse_fault(name_, {errno, "rename"});
  path_.clear();
  const std::string parent = name_ + "/..";
  const Descriptor above(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!above || ::fsync(above.get()) != 0) refuse_fault(name_, {errno, "sync the directory above"});
}

}  // namespace lockd
