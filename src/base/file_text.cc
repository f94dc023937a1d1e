#include "base/file_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/descriptor.h"

namespace lockd {
namespace {

// No configuration or token is near this. It ends the reading of a device.
constexpr std::size_t kFileSizeMax = std::size_t{1} << 20;
constexpr const char* kNotRegular = "not a regular file";

FileText failed(std::string error) { return {.error = std::move(error)}; }
FileText failed(int error) {
  FileText file = failed(std::generic_category().message(error));
  file.missing = error == ENOENT || error == ENOTDIR;
  return file;
}

FileText read_open_file(const Descriptor& open, bool only_regular) {
  struct stat status {};
  if (!open || ::fstat(open.get(), &status) != 0) return failed(errno);
  if (only_regular && !S_ISREG(status.st_mode)) return failed(kNotRegular);
  const mode_t others = status.st_uid == 0 ? S_IROTH : S_IROTH | S_IRGRP;
  FileText file{.open_to_others = (status.st_mode & others) != 0};
  std::array<char, 4096> buffer;
  while (const ssize_t size = ::read(open.get(), buffer.data(), buffer.size())) {
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failed(errno);
    file.text.append(buffer.data(), static_cast<std::size_t>(size));
    if (file.text.size() > kFileSizeMax) return failed("larger than 1 MiB");
  }
  return file;
}

}  // namespace

FileText read_regular_file(const std::string& path) {
  return read_open_file(Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)), true);
}

FileText read_file_or_pipe(const std::string& path) {
  return read_open_file(Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), false);
}

std::string why_not_regular(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode) ? "" : kNotRegular;
}

}  // namespace lockd
