#include "server/settings/option_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/text.h"

namespace lockd {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kNsPerMillisecond = 1'000'000;

constexpr std::array<std::string_view, 5> kLogLevels = {"trace", "debug", "info", "warn", "error"};
constexpr std::array<std::string_view, 2> kLogFormats = {"text", "json"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// Exact: a digit too small to count is refused rather than dropped, so that nothing that says more
// than zero becomes zero.
std::optional<Duration> parse_decimal(std::string_view text, std::uint64_t unit_ns) {
  const auto most = static_cast<std::uint64_t>(kDurationMax.count()) / unit_ns;
  const std::size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_whole(text.substr(0, point), 0, most);
  if (!whole) return std::nullopt;
  std::uint64_t ns = *whole * unit_ns;
  if (point < text.size()) {
    const std::string_view digits = text.substr(point + 1);
    if (!all_digits(digits) || *whole == most) return std::nullopt;
    for (const char digit : digits) {
      if (unit_ns == 1) return std::nullopt;
      unit_ns /= 10;
      ns += static_cast<std::uint64_t>(digit - '0') * unit_ns;
    }
  }
  return Duration(static_cast<std::int64_t>(ns));
}

std::string print_decimal(Duration value, std::uint64_t unit_ns) {
  const auto ns = static_cast<std::uint64_t>(value.count());
  std::string text = std::to_string(ns / unit_ns);
  if (ns % unit_ns == 0) return text;
  const std::string fraction = std::to_string(unit_ns + ns % unit_ns).substr(1);
  return text + '.' + fraction.substr(0, fraction.find_last_not_of('0') + 1);
}

// With a zone, as in fe80::1%eth0, or without.
bool is_ipv6(std::string_view text) {
  const std::size_t zone = text.find('%');
  if (zone != std::string_view::npos && zone + 1 == text.size()) return false;
  in6_addr address;
  return inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) == 1;
}

// What ends in a number can only be an IPv4 address: 127.0.0.256 is not a name.
bool is_name_or_ipv4(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  };
  if (!std::all_of(text.begin(), text.end(), allowed) || text.front() == '-') return false;
  if (text.front() == '.' || text.find("..") != std::string_view::npos) return false;
  if (!all_digits(text.substr(text.rfind('.') + 1))) return true;
  in_addr address;
  return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
}

template <typename Enum, std::size_t kSize>
std::optional<Enum> parse_name(std::string_view text,
                               const std::array<std::string_view, kSize>& names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::optional<Duration> parse_seconds(std::string_view text) {
  return parse_decimal(text, kNsPerSecond);
}

std::optional<Duration> parse_wal_sync(std::string_view text) {
  if (text == "always") return Duration::zero();
  std::uint64_t unit_ns = kNsPerSecond;
  if (text.ends_with("ms")) {
    unit_ns = kNsPerMillisecond;
    text.remove_suffix(2);
  } else if (text.ends_with("s")) {
    text.remove_suffix(1);
  } else {
    return std::nullopt;
  }
  const auto interval = parse_decimal(text, unit_ns);
  return interval > Duration::zero() ? interval : std::nullopt;
}

std::string print_wal_sync(Duration interval) {
  if (interval == Duration::zero()) return "always";
  if (interval % std::chrono::seconds(1) == Duration::zero()) {
    return print_decimal(interval, kNsPerSecond) + "s";
  }
  return print_decimal(interval, kNsPerMillisecond) + "ms";
}

std::optional<std::string> parse_host(std::string_view text) {
  const bool brackets = text.starts_with('[') && text.ends_with(']');
  if (brackets) text = text.substr(1, text.size() - 2);
  if (is_ipv6(text) || (!brackets && is_name_or_ipv4(text))) return std::string(text);
  return std::nullopt;
}

std::optional<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view host = text.substr(0, colon);
  const auto port = parse_whole(text.substr(colon + 1), 0, UINT16_MAX);
  if (!port) return std::nullopt;
  Endpoint endpoint{.host = {}, .port = static_cast<std::uint16_t>(*port)};
  if (host.empty()) return endpoint;
  auto parsed = parse_host(host);
  if (!parsed || is_ipv6(host)) return std::nullopt;
  endpoint.host = std::move(*parsed);
  return endpoint;
}

std::optional<std::string> parse_path(std::string_view text) {
  if (text.empty() || text.find('\0') != std::string_view::npos) return std::nullopt;
  return std::string(text);
}

std::optional<std::string> parse_token(std::string_view text) {
  if (text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view token = trimmed(text);
  if (token.empty() || token.size() > kTokenSizeMax) return std::nullopt;
  return std::string(token);
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  return parse_name<LogLevel>(text, kLogLevels);
}

std::optional<LogFormat> parse_log_format(std::string_view text) {
  return parse_name<LogFormat>(text, kLogFormats);
}

namespace {

bool is_origin(std::string_view text) {
  if (text == "*") return true;
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return false;
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && host.find_first_of("/?#@") == std::string_view::npos &&
         text.find_first_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

std::optional<std::vector<std::string>> parse_origins(std::string_view text) {
  std::vector<std::string> origins;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view origin = text.substr(0, comma);
    if (!is_origin(origin)) return std::nullopt;
    origins.emplace_back(origin);
    if (comma == std::string_view::npos) return origins;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::vector<std::string>> parse_endpoints(std::string_view text) {
  std::vector<std::string> endpoints;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    const auto endpoint = parse_endpoint(one);
    if (!endpoint || endpoint->host.empty() || endpoint->port == 0) return std::nullopt;
    endpoints.emplace_back(one);
    if (comma == std::string_view::npos) return endpoints;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::string> parse_identifier(std::string_view text) {
  constexpr std::size_t kSizeMax = 64;
  const bool fits = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
  if (!fits || text.empty() || text.size() > kSizeMax) return std::nullopt;
  return std::string(text);
}

std::string print_value(const std::vector<std::string>& value) {
  std::string text;
  for (const std::string& part : value) text += (text.empty() ? "" : ",") + part;
  return text;
}

std::string print_value(bool value) { return value ? "true" : "false"; }

std::string print_value(std::uint64_t value) { return std::to_string(value); }

std::string print_value(std::uint32_t value) { return std::to_string(value); }

std::string print_value(Duration value) { return print_decimal(value, kNsPerSecond); }

std::string print_value(const std::string& value) { return value; }

std::string print_value(const std::optional<std::uint16_t>& value) {
  return value ? std::to_string(*value) : "";
}

std::string print_value(const std::optional<Endpoint>& value) {
  if (!value) return "";
  const bool brackets = value->host.find(':') != std::string::npos;
  return (brackets ? '[' + value->host + ']' : value->host) + ':' + std::to_string(value->port);
}

std::string print_value(LogLevel value) {
  return std::string(kLogLevels[static_cast<std::size_t>(value)]);
}

std::string print_value(LogFormat value) {
  return std::string(kLogFormats[static_cast<std::size_t>(value)]);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kSpaces);
  if (start == std::string_view::npos) return {};
  return text.substr(start, text.find_last_not_of(kSpaces) - start + 1);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 100;
  constexpr const char* kHex = "0123456789abcdef";
  const std::string_view shown = text.substr(0, kShown);
  const bool plain = is_plain_text(shown);
  std::string out = "'";
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (plain || (byte >= 0x20 && byte < 0x7f)) {
      out += c;
    } else {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

}  // namespace lockd
