// Text to value and back: the one parser of numbers, times, sizes, booleans and addresses for the
// settings of every program.
//
// What parse_*() makes of a text, print_*() writes so that it parses to the same value. No parser
// is lenient: no spaces, no signs, nothing left over. Pure functions.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockd::config {

using Nanoseconds = std::chrono::nanoseconds;

// The longest time that a setting can name: 292 years.
inline constexpr std::uint64_t kSecondsMax = 9'223'372'036;
// The longest token that a client can send: the line protocol's limit for the argument of `auth`.
inline constexpr std::size_t kTokenSizeMax = 65'536;

// true/false, 1/0, yes/no, on/off, in any case.
std::optional<bool> parse_bool(std::string_view text);

// A decimal number, in units of which 10^`places` make one: "5", "0.5", ".5", "5.0", "1e1". Exact:
// what is not whole in these units is refused rather than rounded, so that nothing that says more
// than zero becomes zero.
std::optional<std::uint64_t> parse_decimal(std::string_view text, unsigned places);
std::string print_decimal(std::uint64_t value, unsigned places);

// A whole number, however it is spelt: "10", "10.0", "1e1".
std::optional<std::uint64_t> parse_count(std::string_view text, std::uint64_t min,
                                         std::uint64_t max);

// Seconds, whole or not, at most kSecondsMax.
std::optional<Nanoseconds> parse_seconds(std::string_view text);
std::string print_seconds(Nanoseconds time);

// With a unit: "10ms", "1.5s", "2m", "1h".
std::optional<Nanoseconds> parse_interval(std::string_view text);
// Seconds, or with a unit: "0.5", "500ms".
std::optional<Nanoseconds> parse_duration(std::string_view text);
std::string print_interval(Nanoseconds time);

// Bytes: "512", "16KiB", "1.5GiB". Printed in the largest unit that leaves it whole.
std::optional<std::uint64_t> parse_size(std::string_view text);
std::string print_size(std::uint64_t bytes);

// An IPv4 or IPv6 address, the latter with or without brackets, or a host name. Whether the name
// resolves is seen when it is used.
std::optional<std::string> parse_host(std::string_view text);

struct Address {
  std::string host{};  // an address, without brackets, or a name; empty: none was named
  std::uint16_t port = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

// "host:port", "[::1]:8080" or ":port". An IPv6 address needs its brackets here: "::1:80" is one.
// Where there is a port for those who name none, also "host", "[::1]" and "::1".
std::optional<Address> parse_address(std::string_view text,
                                     std::optional<std::uint16_t> port = std::nullopt);
std::string print_address(const Address& address);

// The name of a file or directory: not empty.
std::optional<std::string> parse_path(std::string_view text);
// An auth token: one line, not empty. Spaces around it are dropped, as clients' are on the wire.
std::optional<std::string> parse_token(std::string_view text);

// The parts between commas, as they stand; of an empty text one, which is empty.
std::vector<std::string_view> split_list(std::string_view text);
// Without the spaces, tabs and line ends around it.
std::string_view trimmed(std::string_view text);
// In quotes, on one line and not too long, whatever bytes it has: for messages. Nothing in it is
// obeyed by a terminal.
std::string in_quotes(std::string_view text);

}  // namespace lockd::config
