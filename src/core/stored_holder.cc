#include "core/stored_holder.h"

namespace lockd {

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

}  // namespace lockd
