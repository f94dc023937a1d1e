#include "core/key.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "base/text.h"

namespace lockd {
namespace {

// Memory per key and per waiter follows from these sizes: adding a field is a decision.
static_assert(sizeof(Hold) == 112);
static_assert(sizeof(QueuePlace) == 160);
static_assert(sizeof(Key) == 152);
static_assert(kKeySizeMax == kNameSizeMax && kHolderSizeMax == kNameSizeMax);

// See Key::largest_fence.
Fence largest_beside(const Hold& shared, Fence raised) {
  return shared.fence <= raised ? raised : shared.fence;
}

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

std::unique_ptr<Key> Key::create(Kind kind, std::string_view name) {
  assert(!name.empty() && name.size() <= kKeySizeMax);
  void* memory = ::operator new(sizeof(Key) + name.size());
  return std::unique_ptr<Key>(new (memory) Key(kind, name));
}

void Key::operator delete(void* memory) { ::operator delete(memory); }

Key::Key(Kind kind, std::string_view name)
    : kind(kind), name_size_less_1(static_cast<std::uint8_t>(name.size() - 1)) {
  std::memcpy(reinterpret_cast<char*>(this) + sizeof(Key), name.data(), name.size());
}

bool Key::matches(std::uint32_t limit, std::uint32_t takes) const {
  if (limit == this->limit()) return true;
  return is_resized() && limit == first_limit() && takes <= this->limit();
}

void Key::resize(std::uint32_t limit) {
  if (!is_resized()) extras().first_limit = this->limit();
  set_limit(limit);
}

void Key::insert(Hold& hold, const Hold* before) {
  // Fences rise, so a new hold goes to the end. Only the replay of a snapshot may add a hold behind
  // later grants, and it adds each of a key's holds behind the one before it.
  Hold* const last = holds.back();
  if (last == nullptr || last->fence < hold.fence) {
    holds.push_back(&hold);
  } else {
    const bool follows = before != nullptr && before->key == this && before->fence < hold.fence;
    Hold* successor = follows ? holds.next(before) : holds.front();
    while (successor->fence < hold.fence) successor = holds.next(successor);
    holds.insert_before(&hold, successor);
  }
  ++holders;
  if (kind == Kind::semaphore && hold.takes > 1) extras().extra_permits += hold.takes - 1;
}

void Key::erase(Hold& hold, Fence raised) {
  holds.remove(&hold);
  if (hold.mode() == Mode::shared) keep_fence(hold, raised);
  --holders;
  if (kind == Kind::semaphore && hold.takes > 1) extras_->extra_permits -= hold.takes - 1;
}

// The largest fence of an unshared lock is that of `first`, in use or not. A hold beside `first`
// may have had a larger one.
void Key::keep_fence(const Hold& ended, Fence raised) {
  const Fence fence = largest_beside(ended, raised);
  if (&ended == &first) {
    first.fence = fence;
    if (!has_extras) return;
    first.fence = std::max(fence, extras_->past_fence);
    extras_->past_fence = 0;
  } else if (!first.in_use) {
    first.fence = std::max(first.fence, fence);
  } else if (fence > first.fence) {
    extras().past_fence = std::max(extras().past_fence, fence);
  }
}

Fence Key::largest_fence(Fence raised) const {
  if (!is_shared()) return first.fence;
  return std::max({first.fence, largest_beside(*holds.front(), raised), holds.back()->fence,
                   has_extras ? extras_->past_fence : 0});
}

KeyExtras& Key::extras() {
  if (!has_extras) {
    extras_ = new KeyExtras{.counts = counts_};
    has_extras = true;
  }
  return *extras_;
}

void Key::drop_extras() {
  if (!has_extras) return;
  const std::unique_ptr<KeyExtras> dropped(extras_);
  has_extras = false;
  counts_ = dropped->counts;
  if (dropped->first_limit != 0) counts_.limit = dropped->first_limit;
}

}  // namespace lockd
