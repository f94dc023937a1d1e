// A directory that is there under its name when it is whole, and before that not at all: it is made
// under another name beside it, `DIRECTORY.new-` and six letters, and renamed.
//
//   NewDirectory directory("backup");
//   write_into(directory.path());
//   directory.publish();
#pragma once

#include <string>

namespace lockd {

class NewDirectory {
 public:
  // Throws JournalError when something is there by that name, but an empty directory; or when it
  // cannot be made.
  explicit NewDirectory(const std::string& name);
  ~NewDirectory();  // removes it, unless it was published
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // Of what is in the making.
  const std::string& path() const { return path_; }
  // What is in it is durable by then, and nobody has it open. Throws JournalError.
  void publish();

 private:
  const std::string name_;
  std::string path_;
};

// Throws JournalError unless a NewDirectory could be published there, for all that can be seen.
void check_new_directory(const std::string& name);

}  // namespace lockd
