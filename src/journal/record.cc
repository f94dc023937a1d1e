#include "journal/record.h"

#include <cassert>
#include <cstring>

#include "base/coding.h"

namespace lockd {
namespace {

// The first byte of a record.
enum class Tag : unsigned char {
  granted_name = 1,
  granted_secret = 2,
  renewed = 3,
  ended = 4,
  fence_floor = 5,
};

char* store_text(char* to, std::string_view text) {
  to = store_varint(to, text.size());
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

char* store_u64(char* to, std::uint64_t value) {
  store(to, value);
  return to + sizeof value;
}

char* store_lease(char* to, const Event& event) {
  to = store_varint(to, static_cast<std::uint64_t>(event.ttl.count()));
  return store_u64(to, event.expires_at.ns);
}

bool take_text(std::string_view& bytes, std::size_t size_max, std::string_view* text) {
  std::uint64_t size = 0;
  if (!take_varint(bytes, &size)) return false;
  if (size < 1 || size > size_max || size > bytes.size()) return false;
  *text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

bool take_fence(std::string_view& bytes, Fence* fence) {
  return take_varint(bytes, fence) && *fence <= kFenceMax;
}

bool take_kind(std::string_view& bytes, Kind* kind) {
  std::uint8_t byte = 0;
  if (!take(bytes, &byte) || byte > static_cast<std::uint8_t>(Kind::semaphore)) return false;
  *kind = static_cast<Kind>(byte);
  return true;
}

bool take_cause(std::string_view& bytes, EndCause* cause) {
  std::uint8_t byte = 0;
  if (!take(bytes, &byte) || byte > static_cast<std::uint8_t>(EndCause::disconnected)) return false;
  *cause = static_cast<EndCause>(byte);
  return true;
}

bool take_limit(std::string_view& bytes, std::uint32_t* limit) {
  std::uint64_t value = 0;
  if (!take_varint(bytes, &value) || value < 1 || value > kLimitMax) return false;
  *limit = static_cast<std::uint32_t>(value);
  return true;
}

bool take_lease(std::string_view& bytes, Event* event) {
  std::uint64_t ttl = 0;
  if (!take_varint(bytes, &ttl) || !take(bytes, &event->expires_at.ns)) return false;
  event->ttl = Duration(static_cast<std::int64_t>(ttl));
  return ttl > 0 && ttl <= static_cast<std::uint64_t>(kDurationMax.count()) &&
         ttl <= event->expires_at.ns;
}

bool take_holder(std::string_view& bytes, bool is_secret, Holder* holder) {
  if (is_secret) {
    std::uint64_t secret = 0;
    if (!take(bytes, &secret)) return false;
    *holder = Holder::of_secret(secret);
    return true;
  }
  std::string_view name;
  if (!take_text(bytes, kHolderSizeMax, &name)) return false;
  *holder = Holder(name);
  return true;
}

bool take_fields(std::string_view& bytes, Tag tag, Event* event) {
  if (tag == Tag::fence_floor) {
    event->type = Event::Type::fence_floor;
    return take_fence(bytes, &event->fence);
  }
  if (!take_kind(bytes, &event->kind) || !take_text(bytes, kKeySizeMax, &event->key) ||
      !take_fence(bytes, &event->fence)) {
    return false;
  }
  switch (tag) {
    case Tag::granted_name:
    case Tag::granted_secret:
      event->type = Event::Type::granted;
      return take_lease(bytes, event) && take_limit(bytes, &event->limit) &&
             take_holder(bytes, tag == Tag::granted_secret, &event->holder);
    case Tag::renewed: event->type = Event::Type::renewed; return take_lease(bytes, event);
    case Tag::ended: event->type = Event::Type::ended; return take_cause(bytes, &event->cause);
    case Tag::fence_floor: break;
  }
  return false;
}

Tag tag_of(const Event& event) {
  switch (event.type) {
    case Event::Type::granted:
      return event.holder.is_secret() ? Tag::granted_secret : Tag::granted_name;
    case Event::Type::renewed: return Tag::renewed;
    case Event::Type::ended: return Tag::ended;
    case Event::Type::fence_floor: break;
  }
  return Tag::fence_floor;
}

}  // namespace

char* encode(const Event& event, char* to) {
  assert(event.key.size() <= kKeySizeMax && event.holder.name().size() <= kHolderSizeMax);
  const Tag tag = tag_of(event);
  *to++ = static_cast<char>(tag);
  if (tag == Tag::fence_floor) return store_varint(to, event.fence);
  *to++ = static_cast<char>(event.kind);
  to = store_text(to, event.key);
  to = store_varint(to, event.fence);
  if (tag == Tag::ended) {
    *to++ = static_cast<char>(event.cause);
    return to;
  }
  to = store_lease(to, event);
  if (tag == Tag::renewed) return to;
  to = store_varint(to, event.limit);
  if (tag == Tag::granted_secret) return store_u64(to, event.holder.secret());
  return store_text(to, event.holder.name());
}

bool take_event(std::string_view& bytes, Event* event) {
  std::string_view left = bytes;
  std::uint8_t tag = 0;
  Event taken{.type = Event::Type::fence_floor};
  if (!take(left, &tag) || !take_fields(left, static_cast<Tag>(tag), &taken)) return false;
  *event = taken;
  bytes = left;
  return true;
}

}  // namespace lockd
