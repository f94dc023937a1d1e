// A token. What is taken as one is what it is written as, and nothing else.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/line/line_token.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto token = lockd::LineToken::parse(text)) {
    const auto written = token->format();
    if (std::string_view(written.data(), written.size()) != text) __builtin_trap();
  }
  return 0;
}
