// The file of --access: it is read, or refused with one line that shows nothing of it but names.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/access/access_file.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const lockd::AccessFile file = lockd::parse_access_file(text);
  check(file.error.find('\n') == std::string::npos);
  check(file.error.empty() || file.permits.empty());
  for (const lockd::Permit& permit : file.permits) {
    check(!permit.name.empty() && !permit.shown.empty());
    if (permit.expires) check(!lockd::expiry_text(*permit.expires).empty());
  }
  return 0;
}
