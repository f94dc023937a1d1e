// The address of a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockd::client {

inline constexpr std::uint16_t kDefaultPort = 6388;

struct Address {
  std::string host = "127.0.0.1";  // a name, or an IP address without brackets
  std::uint16_t port = kDefaultPort;

  // Accepts "host", "host:port", "[::1]:6388" and "::1".
  static std::optional<Address> parse(std::string_view text);
  // "host:port", with brackets around an IPv6 address.
  std::string to_string() const;

  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace lockd::client
