#include "client/identity.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"

namespace lockd::client {
namespace {

// The number of a user whom the system has no name for, as in a container.
std::string user() {
  const uid_t id = ::geteuid();
  std::array<char, 4096> names;
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(id, &entry, names.data(), names.size(), &found);
  return found == nullptr ? std::to_string(id) : found->pw_name;
}

std::string host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

std::string default_name() {
  return fit_for_server(user() + '@' + host() + ':' + std::to_string(::getpid()));
}

std::string default_note() { return fit_for_server(::program_invocation_short_name); }

std::string fit_for_server(std::string_view text) {
  std::string plain(text.substr(0, kNameSizeMax));
  const auto is_control = [](char c) { return (c >= '\0' && c < ' ') || c == '\x7f'; };
  std::replace_if(plain.begin(), plain.end(), is_control, '?');
  return as_utf8(plain, "?");
}

}  // namespace lockd::client
