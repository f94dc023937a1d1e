// The bytes of a line client. The session must say the same however they are split, in whole lines.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/line/line_token.h"
#include "server/session/line_session.h"
#include "server/session/testing/session_harness.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

// Secrets are random: what a token ends with is left out.
std::string without_secrets(std::string said) {
  for (std::size_t at = 0; at + lockd::LineToken::kSize <= said.size(); ++at) {
    if (!lockd::LineToken::parse(std::string_view(said).substr(at, lockd::LineToken::kSize))) {
      continue;
    }
    std::fill_n(said.begin() + static_cast<std::ptrdiff_t>(at + 16), 16, '-');
  }
  return said;
}

// When they come depends on the pieces.
std::string without_pushes(std::string_view said) {
  std::string rest;
  while (!said.empty()) {
    const std::string_view line = said.substr(0, said.find('\n') + 1);
    if (!line.starts_with("sig ") && !line.starts_with("lost ")) rest += line;
    said.remove_prefix(line.size());
  }
  return rest;
}

std::string play(std::string_view input, std::size_t piece, const std::string& secret) {
  lockd::SessionHarness harness({.detailed_errors = true, .secret = secret});
  const std::string said = harness.play<lockd::LineSession>(input, piece);
  check(said.empty() || said.ends_with('\n'));
  return without_secrets(without_pushes(said));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const std::string& secret : {std::string(), std::string("s")}) {
    const std::string whole = play(input, std::max<std::size_t>(size, 1), secret);
    check(play(input, 1, secret) == whole);
    check(play(input, 7, secret) == whole);
  }
  return 0;
}
