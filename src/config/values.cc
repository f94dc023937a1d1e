#include "config/values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace lockd::config {
namespace {

constexpr unsigned kSecondPlaces = 9;  // in nanoseconds
constexpr unsigned kMillisecondPlaces = 6;

struct SizeUnit {
  std::string_view name;
  unsigned bits;
};
constexpr auto kSizeUnits =
    std::to_array<SizeUnit>({{"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"", 0}});

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// The power of ten behind an `e`, with or without its sign. Nothing of use has more digits.
std::optional<int> parse_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto exponent = parse_whole(text, 0, 999);
  if (!exponent) return std::nullopt;
  const int power = static_cast<int>(*exponent);
  return negative ? -power : power;
}

// The digits of a number, and the power of ten that the last of them counts.
struct Digits {
  std::string text;
  int exponent = 0;
};

std::optional<Digits> parse_digits(std::string_view text) {
  Digits digits;
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    const auto exponent = parse_exponent(text.substr(e + 1));
    if (!exponent) return std::nullopt;
    digits.exponent = *exponent;
    text = text.substr(0, e);
  }
  const std::size_t point = text.find('.');
  digits.text = text.substr(0, point);
  if (point != std::string_view::npos) {
    const std::string_view fraction = text.substr(point + 1);
    if (!all_digits(fraction) || fraction.size() > 999) return std::nullopt;
    digits.text += fraction;
    digits.exponent -= static_cast<int>(fraction.size());
  }
  if (!all_digits(digits.text)) return std::nullopt;
  return digits;
}

std::optional<Nanoseconds> parse_time(std::string_view text, unsigned places) {
  constexpr std::uint64_t kNanosecondsMax = kSecondsMax * 1'000'000'000;
  const auto time = parse_decimal(text, places);
  if (!time || *time > kNanosecondsMax) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(*time));
}

// Of a unit that has so many seconds.
std::optional<Nanoseconds> parse_seconds_times(std::int64_t unit_s, std::string_view text) {
  const auto time = parse_time(text, kSecondPlaces);
  if (!time || *time > std::chrono::seconds(kSecondsMax) / unit_s) return std::nullopt;
  return *time * unit_s;
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

// U+0080 to U+009F are plain text, but some terminals obey them.
bool has_c1_control(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i - 1] == '\xC2' && static_cast<unsigned char>(text[i]) < 0xA0) return true;
  }
  return false;
}

}  // namespace

std::optional<bool> parse_bool(std::string_view text) {
  std::string word(text);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text, unsigned places) {
  auto digits = parse_digits(text);
  if (!digits) return std::nullopt;
  std::string& number = digits->text;
  int zeros = digits->exponent + static_cast<int>(places);
  while (!number.empty() && number.back() == '0') {
    number.pop_back();
    ++zeros;
  }
  if (number.empty()) return 0;
  constexpr int kDigitsMax = 20;  // of 2^64
  if (zeros < 0 || zeros > kDigitsMax) return std::nullopt;
  number.append(static_cast<std::size_t>(zeros), '0');
  return parse_whole(number, 0, UINT64_MAX);
}

std::string print_decimal(std::uint64_t value, unsigned places) {
  std::string digits = std::to_string(value);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  digits.insert(digits.size() - places, ".");
  digits.resize(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

std::optional<std::uint64_t> parse_count(std::string_view text, std::uint64_t min,
                                         std::uint64_t max) {
  const auto number = parse_decimal(text, 0);
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

std::optional<Nanoseconds> parse_seconds(std::string_view text) {
  return parse_time(text, kSecondPlaces);
}

std::string print_seconds(Nanoseconds time) {
  return print_decimal(static_cast<std::uint64_t>(time.count()), kSecondPlaces);
}

std::optional<Nanoseconds> parse_interval(std::string_view text) {
  if (text.ends_with("ms")) return parse_time(text.substr(0, text.size() - 2), kMillisecondPlaces);
  if (text.empty()) return std::nullopt;
  const std::string_view number = text.substr(0, text.size() - 1);
  switch (text.back()) {
    case 's': return parse_time(number, kSecondPlaces);
    case 'm': return parse_seconds_times(60, number);
    case 'h': return parse_seconds_times(3600, number);
    default: return std::nullopt;
  }
}

std::optional<Nanoseconds> parse_duration(std::string_view text) {
  const auto seconds = parse_seconds(text);
  return seconds ? seconds : parse_interval(text);
}

std::string print_interval(Nanoseconds time) {
  if (time % std::chrono::seconds(1) == Nanoseconds::zero()) return print_seconds(time) + "s";
  return print_decimal(static_cast<std::uint64_t>(time.count()), kMillisecondPlaces) + "ms";
}

// What is not whole in bytes is refused, as with every other number.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr unsigned kPlaces = 3;
  constexpr std::uint64_t kThousand = 1000;
  const auto unit = *std::find_if(kSizeUnits.begin(), kSizeUnits.end(),
                                  [&](const SizeUnit& one) { return text.ends_with(one.name); });
  const auto thousandths = parse_decimal(text.substr(0, text.size() - unit.name.size()), kPlaces);
  if (!thousandths || *thousandths > UINT64_MAX >> unit.bits) return std::nullopt;
  const std::uint64_t scaled = *thousandths << unit.bits;
  return scaled % kThousand == 0 ? std::optional(scaled / kThousand) : std::nullopt;
}

std::string print_size(std::uint64_t bytes) {
  const auto unit = *std::find_if(kSizeUnits.begin(), kSizeUnits.end(), [&](const SizeUnit& one) {
    const bool is_whole = bytes % (std::uint64_t{1} << one.bits) == 0;
    return one.bits == 0 || (bytes != 0 && is_whole);
  });
  return std::to_string(bytes >> unit.bits) + std::string(unit.name);
}

std::optional<std::string> parse_host(std::string_view text) {
  const bool brackets = text.starts_with('[') && text.ends_with(']');
  if (brackets) text = text.substr(1, text.size() - 2);
  if (is_ipv6(text) || (!brackets && is_name_or_ipv4(text))) return std::string(text);
  return std::nullopt;
}

std::optional<Address> parse_address(std::string_view text, std::optional<std::uint16_t> port) {
  const std::size_t colon = text.rfind(':');
  const bool only_host = colon == std::string_view::npos || text.ends_with(']') || is_ipv6(text);
  if (!only_host) {
    const auto number = parse_count(text.substr(colon + 1), 0, UINT16_MAX);
    port = number ? std::optional(static_cast<std::uint16_t>(*number)) : std::nullopt;
  }
  if (!port) return std::nullopt;
  Address address{.host = {}, .port = *port};
  if (colon == 0 && !only_host) return address;
  auto host = parse_host(only_host ? text : text.substr(0, colon));
  // Before a port, an address with colons has brackets.
  const bool bare = host && host->find(':') != std::string::npos && !text.starts_with('[');
  if (!host || (bare && !only_host)) return std::nullopt;
  address.host = std::move(*host);
  return address;
}

std::string print_address(const Address& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
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

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
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
  const bool plain = is_plain_text(shown) && !has_c1_control(shown);
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

}  // namespace lockd::config
