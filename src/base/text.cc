#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

namespace lockd {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighBits = 0x8080808080808080;

// Whether all 8 bytes are printable ASCII. May say no to bytes that are; never yes to one that is
// not: a borrow between bytes starts only at a byte that is already refused.
bool is_plain_ascii(const char* p) {
  std::uint64_t word;
  std::memcpy(&word, p, sizeof word);
  const std::uint64_t below_space = word - kOnes * 0x20;
  const std::uint64_t is_delete = (word ^ kOnes * 0x7f) - kOnes;
  return ((word | below_space | is_delete) & kHighBits) == 0;
}

// The length of the well-formed character at `p`, or 0. `left` is at least 1.
std::size_t character_size(const unsigned char* p, std::size_t left) {
  const unsigned char first = p[0];
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  std::size_t size;
  unsigned char low = 0x80;  // the bounds of the second byte
  unsigned char high = 0xbf;
  if (first >= 0xc2 && first <= 0xdf) {
    size = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    size = 3;
    if (first == 0xe0) low = 0xa0;   // overlong
    if (first == 0xed) high = 0x9f;  // surrogates
  } else if (first >= 0xf0 && first <= 0xf4) {
    size = 4;
    if (first == 0xf0) low = 0x90;   // overlong
    if (first == 0xf4) high = 0x8f;  // past U+10FFFF
  } else {
    return 0;
  }
  if (left < size || p[1] < low || p[1] > high) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  return size;
}

bool is_hidden(unsigned code_point) {
  constexpr std::pair<unsigned, unsigned> kHidden[] = {
      {0x80, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};
  return std::any_of(std::begin(kHidden), std::end(kHidden), [code_point](const auto& range) {
    return range.first <= code_point && code_point <= range.second;
  });
}

}  // namespace

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kNameSizeMax && is_plain_text(text);
}

bool is_plain_text(std::string_view text) noexcept {
  const char* p = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    std::size_t size = 8;
    if (left < size || !is_plain_ascii(p)) {
      size = character_size(reinterpret_cast<const unsigned char*>(p), left);
      if (size == 0) return false;
    }
    p += size;
    left -= size;
  }
  return true;
}

std::string as_utf8(std::string_view text, std::string_view instead) {
  std::string valid;
  while (!text.empty()) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    const std::size_t size = bytes[0] < 0x80 ? 1 : character_size(bytes, text.size());
    valid += size == 0 ? instead : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

std::string escape_hidden(std::string text) {
  constexpr const char* kFirstBytes = "\xc2\xd8\xe2";  // of all that are hidden
  constexpr std::string_view kHex = "0123456789abcdef";
  for (std::size_t at = 0; (at = text.find_first_of(kFirstBytes, at)) != std::string::npos; ++at) {
    const auto bits = [&](std::size_t byte) {
      return static_cast<unsigned char>(text[byte]) & 0x3fU;
    };
    const std::size_t size = text[at] == '\xe2' ? 3 : 2;
    if (text.size() - at < size) break;
    const unsigned code = size == 2 ? (bits(at) & 0x1f) << 6 | bits(at + 1)
                                    : 0x2000 | bits(at + 1) << 6 | bits(at + 2);
    if (!is_hidden(code)) continue;
    text.replace(
        at, size,
        {'\\', 'u', kHex[code >> 12], kHex[code >> 8 & 15], kHex[code >> 4 & 15], kHex[code & 15]});
  }
  return text;
}

std::optional<std::uint64_t> parse_whole(std::string_view text, std::uint64_t min,
                                         std::uint64_t max) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < min || value > max) return std::nullopt;
  return value;
}

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t longer = std::max(a.size(), b.size());
  if (longer - std::min(a.size(), b.size()) >= limit) return limit;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    std::size_t least = row[0];
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min(changed, std::min(row[j], diagonal) + 1);
      least = std::min(least, row[j + 1]);
    }
    if (least >= limit) return limit;  // the least of a row never falls
  }
  return std::min(row.back(), limit);
}

}  // namespace lockd
