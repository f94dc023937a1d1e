#include "config/environment.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>

namespace lockd::config {
namespace {

// No configuration or token is near this. It ends the reading of a device.
constexpr std::size_t kFileSizeMax = std::size_t{1} << 20;

std::string describe_errno() { return std::generic_category().message(errno); }

bool is_open_to_others(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  const mode_t others = status.st_uid == 0 ? S_IROTH : S_IROTH | S_IRGRP;
  return (status.st_mode & others) != 0;
}

FileText read_file(const std::string& path) {
  FileText file;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(path.c_str(), "re"),
                                                               std::fclose);
  if (stream == nullptr) {
    file.missing = errno == ENOENT || errno == ENOTDIR;
    file.error = describe_errno();
    return file;
  }
  file.open_to_others = is_open_to_others(fileno(stream.get()));
  std::array<char, 4096> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), stream.get())) {
    file.text.append(buffer.data(), size);
    if (file.text.size() > kFileSizeMax) {
      file.text.clear();
      file.error = "larger than 1 MiB";
      return file;
    }
  }
  if (std::ferror(stream.get()) != 0) file.error = describe_errno();
  return file;
}

std::uint64_t files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : Environment{}.files_max;
}

}  // namespace

Environment process_environment() {
  return {.variable = [](const char* name) -> const char* { return std::getenv(name); },
          .read_file = read_file,
          .cores = std::thread::hardware_concurrency(),
          .files_max = files_max()};
}

void hide_variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return;
  const std::string kept = value;
  const std::string start = std::string(name) + '=';
  for (char** variable = environ; *variable != nullptr; ++variable) {  // it may be there twice
    if (!std::string_view(*variable).starts_with(start)) continue;
    char* const shown = *variable + start.size();
    std::memset(shown, '*', std::strlen(shown));
  }
  ::setenv(name, kept.c_str(), 1);
}

}  // namespace lockd::config
