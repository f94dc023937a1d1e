// The payload of a frame. What is taken as an event must be written, and read again, as the same.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "journal/format.h"

namespace {

void check(bool condition) {
  if (!condition) __builtin_trap();
}

void check_same(const lockd::Event& a, const lockd::Event& b) {
  check(a.type == b.type && a.kind == b.kind && a.key == b.key && a.fence == b.fence);
  check(a.ttl == b.ttl && a.expires_at == b.expires_at);
  check(a.limit == b.limit && a.first_limit == b.first_limit && a.client == b.client);
  check(a.mode == b.mode && a.permits == b.permits);
  if (a.type == lockd::Event::Type::granted) check(a.holder == b.holder);
  if (a.type == lockd::Event::Type::ended) check(a.cause == b.cause);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  lockd::Event event{.type = lockd::Event::Type::ended};
  for (std::string_view before = bytes; lockd::take_event(bytes, &event); before = bytes) {
    check(bytes.size() < before.size());
    std::array<char, lockd::kRecordSizeMax> written;
    const char* end = lockd::encode(event, written.data());
    std::string_view again(written.data(), static_cast<std::size_t>(end - written.data()));
    lockd::Event copy{.type = lockd::Event::Type::ended};
    check(lockd::take_event(again, &copy) && again.empty());
    check_same(event, copy);
  }
  return 0;
}
