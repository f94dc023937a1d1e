// Text to value and back, for each kind of setting.
//
// For the option table. What parse_*() makes of a text, print_value() writes so that it parses to
// the same value. No parser is lenient: no spaces, no signs, nothing left over. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "lockd/types.h"
#include "server/settings/options.h"

namespace lockd {

// The longest token that a client can send: the line protocol's limit for the argument of `auth`.
inline constexpr std::size_t kTokenSizeMax = 65'536;

// Seconds, whole or decimal, exact to the nanosecond: "5", "0.5". At most 9,223,372,036.
std::optional<Duration> parse_seconds(std::string_view text);

// "always", which is 0, or the time between syncs: "10ms", "1.5s".
std::optional<Duration> parse_wal_sync(std::string_view text);
std::string print_wal_sync(Duration interval);

// An IPv4 or IPv6 address, the latter with or without brackets, or a host name. Whether the name
// resolves is seen when the server listens.
std::optional<std::string> parse_host(std::string_view text);

// "host:port", "[::1]:8080" or ":port". An IPv6 address needs its brackets here: "::1:80" is one.
std::optional<Endpoint> parse_endpoint(std::string_view text);
// Scheme, host and perhaps port, without a path, each; or `*`.
std::optional<std::vector<std::string>> parse_origins(std::string_view text);

// host:port each, with commas between them.
std::optional<std::vector<std::string>> parse_endpoints(std::string_view text);
// Letters, digits, '-', '_' and '.', at most 64: part of a key, and of a line.
std::optional<std::string> parse_identifier(std::string_view text);

// The name of a file or directory: not empty.
std::optional<std::string> parse_path(std::string_view text);

// A shared secret: one line, not empty. Spaces around it are dropped, as clients' are on the wire.
std::optional<std::string> parse_token(std::string_view text);

std::optional<LogLevel> parse_log_level(std::string_view text);
std::optional<LogFormat> parse_log_format(std::string_view text);

// Empty for what is not set.
std::string print_value(bool value);
std::string print_value(std::uint64_t value);
std::string print_value(std::uint32_t value);
std::string print_value(Duration value);  // in seconds
std::string print_value(const std::string& value);
std::string print_value(const std::vector<std::string>& value);  // with commas
std::string print_value(const std::optional<std::uint16_t>& value);
std::string print_value(const std::optional<Endpoint>& value);
std::string print_value(LogLevel value);
std::string print_value(LogFormat value);

// Without the spaces, tabs and line ends around it.
std::string_view trimmed(std::string_view text);

// In quotes, on one line and not too long, whatever bytes it has: for messages.
std::string in_quotes(std::string_view text);

}  // namespace lockd
