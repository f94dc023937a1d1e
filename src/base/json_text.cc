#include "base/json_text.h"

#include <array>
#include <charconv>

namespace lockd {
namespace {

template <typename Number>
void append(std::string& out, Number number) {
  std::array<char, 32> digits;
  out.append(digits.data(),
             std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_json_number(std::string& out, std::int64_t number) { append(out, number); }
void append_json_number(std::string& out, std::uint64_t number) { append(out, number); }
void append_json_number(std::string& out, double number) { append(out, number); }

}  // namespace lockd
