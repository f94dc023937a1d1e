#include "server/systemd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace lockd {
namespace {

constexpr int kFirstDescriptor = 3;  // SD_LISTEN_FDS_START
constexpr std::uint64_t kDescriptorsMax = 64;

std::string_view text(const config::Environment& environment, const char* name) {
  const char* value = environment.variable(name);
  return value == nullptr ? std::string_view() : value;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

bool is_this_process(std::string_view pid) {
  return number(pid) == static_cast<std::uint64_t>(::getpid());
}

// What is up to the next colon, which goes too.
std::string_view take_name(std::string_view& names) {
  const std::string_view name = names.substr(0, names.find(':'));
  names.remove_prefix(std::min(name.size() + 1, names.size()));
  return name;
}

}  // namespace

Systemd::Systemd(const config::Environment& environment)
    : address_(text(environment, "NOTIFY_SOCKET")) {
  const std::string_view watched = text(environment, "WATCHDOG_PID");
  if (watched.empty() || is_this_process(watched)) {
    watchdog_ = std::chrono::microseconds(number(text(environment, "WATCHDOG_USEC")));
  }
  // They may have been meant for a process that started this one.
  if (!is_this_process(text(environment, "LISTEN_PID"))) return;
  const std::uint64_t count = std::min(number(text(environment, "LISTEN_FDS")), kDescriptorsMax);
  std::string_view names = text(environment, "LISTEN_FDNAMES");
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const int descriptor = kFirstDescriptor + i;
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    sockets_.push_back({descriptor, std::string(take_name(names))});
  }
}

void Systemd::reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto us = now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(us));
}

void Systemd::tell(std::string_view state) const {
  sockaddr_un to{};
  if (address_.empty() || address_.size() >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';  // a name that is no file's
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  const int from = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (from < 0) return;
  ::sendto(from, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           reinterpret_cast<const sockaddr*>(&to), size);
  ::close(from);
}

}  // namespace lockd
