#include "lockctl/output/characters.h"

#include <locale.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <utility>

namespace lockd::cli {

std::size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return std::min(size, text.size());
}

char32_t code_point_of(std::string_view character) {
  constexpr std::array<unsigned char, 5> kFirstBits{0, 0x7F, 0x1F, 0x0F, 0x07};
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(character[at]); };
  char32_t code_point = byte(0) & kFirstBits[std::min<std::size_t>(character.size(), 4)];
  for (std::size_t at = 1; at < character.size(); ++at) {
    code_point = code_point << 6 | (byte(at) & 0x3F);
  }
  return code_point;
}

bool is_invisible(char32_t code_point) {
  constexpr auto kInvisible = std::to_array<std::pair<char32_t, char32_t>>({
      {0x00A0, 0x00A0}, {0x00AD, 0x00AD},   {0x034F, 0x034F},   {0x061C, 0x061C},
      {0x115F, 0x1160}, {0x1680, 0x1680},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
      {0x2000, 0x200F}, {0x2028, 0x202F},   {0x205F, 0x206F},   {0x2800, 0x2800},
      {0x3164, 0x3164}, {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
      {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
  });
  return std::any_of(kInvisible.begin(), kInvisible.end(), [code_point](const auto& range) {
    return range.first <= code_point && code_point <= range.second;
  });
}

std::size_t columns_of(char32_t code_point) {
  if (code_point < 0x80) return 1;
  // Whatever the environment says: what is shown is UTF-8. A system without that locale knows no
  // widths.
  static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (utf8 == nullptr) return 1;
  const locale_t before = ::uselocale(utf8);
  const int width = ::wcwidth(static_cast<wchar_t>(code_point));
  ::uselocale(before);
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

}  // namespace lockd::cli
