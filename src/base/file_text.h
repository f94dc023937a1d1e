// The text of a small file: settings, an auth token, a list of rights.
//
// Pure functions of the file system; any thread may call them. Opening a FIFO waits until another
// process opens its other end, which would stop a server that reads its files again at a reload:
// only read_file_or_pipe() does that.
#pragma once

#include <string>

namespace lockd {

struct FileText {
  std::string text{};
  std::string error{};  // why there is no text: "No such file or directory"
  // Readable by every user of the machine, or by a group. A group may have been given leave by
  // root: it is how services come by certificates.
  bool open_to_others = false;
  bool missing = false;  // the error is that there is no such file
};

// Never blocks: anything but a regular file of at most 1 MiB is an error.
FileText read_regular_file(const std::string& path);
// Pipes and devices too, for as long as they take: for what a shell passes as `<(command)`.
FileText read_file_or_pipe(const std::string& path);

// Why a library that opens the path by itself must not be given it; empty: it is a regular file, or
// cannot be looked at, which the library's own error explains.
std::string why_not_regular(const std::string& path);

}  // namespace lockd
