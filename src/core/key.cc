#include "core/key.h"

#include <cassert>
#include <cstring>
#include <new>

#include "base/text.h"

namespace lockd {
namespace {

// The memory a key and a waiter may take rests on these: a field more is a decision.
static_assert(sizeof(Hold) == 112);
static_assert(sizeof(QueuePlace) == 160);
static_assert(sizeof(Key) == 152);
static_assert(kKeySizeMax == kNameSizeMax && kHolderSizeMax == kNameSizeMax);

}  // namespace

std::string StoredHolder::display_name() const {
  return is_secret() ? "tcp:" + std::to_string(session_id()) : std::string(view().name());
}

void StoredHolder::store_name(std::string_view name) {
  if (name.size() <= kInlineMax) {
    char bytes[16] = {};
    std::memcpy(bytes, name.data(), name.size());
    std::memcpy(&low_, bytes, 8);
    std::memcpy(&high_, bytes + 8, 8);
    high_ |= std::uint64_t{name.size()} << kTagShift;
  } else {
    char* copy = new char[name.size()];
    std::memcpy(copy, name.data(), name.size());
    low_ = std::bit_cast<std::uint64_t>(copy);
    high_ = kOnHeap << kTagShift | name.size();
  }
}

std::unique_ptr<Key> Key::create(Kind kind, std::string_view key) {
  assert(!key.empty() && key.size() <= kKeySizeMax);
  void* memory = ::operator new(sizeof(Key) + key.size());
  return std::unique_ptr<Key>(new (memory) Key(kind, key));
}

void Key::operator delete(void* memory) { ::operator delete(memory); }

Key::Key(Kind kind, std::string_view key)
    : kind(kind), name_size_less_1(static_cast<std::uint8_t>(key.size() - 1)) {
  std::memcpy(reinterpret_cast<char*>(this) + sizeof(Key), key.data(), key.size());
}

}  // namespace lockd
