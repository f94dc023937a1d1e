#include "lockd/client/address.h"

#include <charconv>

namespace lockd::client {
namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return {};
  return port;
}

std::optional<Address> with_port(std::string_view host, std::string_view port_text) {
  const auto port = parse_port(port_text);
  if (host.empty() || !port) return {};
  return Address{std::string(host), *port};
}

}  // namespace

std::optional<Address> Address::parse(std::string_view text) {
  if (text.empty() || text.find_first_of(" \t\r\n") != std::string_view::npos) return {};
  if (text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || end == 1) return {};
    const std::string_view host = text.substr(1, end - 1);
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return Address{std::string(host)};
    return rest.front() == ':' ? with_port(host, rest.substr(1)) : std::nullopt;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Address{std::string(text)};
  // Several colons are an IPv6 address without brackets, and so without a port.
  if (text.find(':', colon + 1) != std::string_view::npos) return Address{std::string(text)};
  return with_port(text.substr(0, colon), text.substr(colon + 1));
}

std::string Address::to_string() const {
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace lockd::client
