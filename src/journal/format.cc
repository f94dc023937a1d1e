#include "journal/format.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>

#include "base/coding.h"
#include "base/crc.h"

namespace lockd {
namespace {

constexpr std::string_view kSegmentMark = "LOCKDJNL";
// No text has a byte of 0xfe, so no key and no holder can look like the beginning of a frame.
constexpr std::string_view kFrameMark = "\xfeLK";

constexpr unsigned char kCompletes = 1;
constexpr unsigned char kSeals = 2;

constexpr std::string_view kNamePrefix = "journal-";
constexpr std::string_view kNameSuffix = ".log";

// The last four bytes of a header are the checksum of the others.
void store_checksum(char* header, std::size_t size) {
  store(header + size - 4, crc32c({header, size - 4}));
}

bool checksum_holds(std::string_view header) {
  return load<std::uint32_t>(header.data() + header.size() - 4) ==
         crc32c(header.substr(0, header.size() - 4));
}

}  // namespace

std::string segment_name(std::uint64_t number) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return std::string(kNamePrefix) + digits + std::string(kNameSuffix);
}

std::optional<std::uint64_t> segment_number(std::string_view name) {
  if (name.size() != kNamePrefix.size() + 16 + kNameSuffix.size()) return {};
  std::uint64_t number = 0;
  for (const char c : name.substr(kNamePrefix.size(), 16)) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) return {};
    number = number << 4 | digit;
  }
  if (name != segment_name(number)) return {};
  return number;
}

std::string encode(const SegmentHeader& header) {
  std::string bytes(kSegmentHeaderSize, '\0');
  char* const to = bytes.data();
  std::memcpy(to, kSegmentMark.data(), kSegmentMark.size());
  store(to + 8, kFormatVersion);
  std::memcpy(to + 16, header.journal.data(), header.journal.size());
  store(to + 32, header.number);
  store(to + 40, header.start);
  std::memcpy(to + 48, header.opened.boot_id.data(), header.opened.boot_id.size());
  store(to + 64, header.opened.boot_ns);
  store(to + 72, header.engine_time.ns);
  store(to + 80, header.opened.wall_ns);
  store_checksum(to, kSegmentHeaderSize);
  return bytes;
}

HeaderFault decode(std::string_view bytes, SegmentHeader* header, std::uint32_t* version) {
  if (bytes.size() < kSegmentHeaderSize) return HeaderFault::torn;
  bytes = bytes.substr(0, kSegmentHeaderSize);
  if (!bytes.starts_with(kSegmentMark)) return HeaderFault::torn;
  // Before the checksum: another version may have it elsewhere.
  *version = load<std::uint32_t>(bytes.data() + 8);
  if (*version != kFormatVersion) return HeaderFault::version;
  if (!checksum_holds(bytes)) return HeaderFault::torn;
  const char* const from = bytes.data();
  std::memcpy(header->journal.data(), from + 16, header->journal.size());
  header->number = load<std::uint64_t>(from + 32);
  header->start = load<std::uint64_t>(from + 40);
  std::memcpy(header->opened.boot_id.data(), from + 48, header->opened.boot_id.size());
  header->opened.boot_ns = load<std::uint64_t>(from + 64);
  header->engine_time.ns = load<std::uint64_t>(from + 72);
  header->opened.wall_ns = load<std::uint64_t>(from + 80);
  return HeaderFault::none;
}

void encode(const FrameHeader& header, char* to) {
  std::memcpy(to, kFrameMark.data(), kFrameMark.size());
  to[3] = static_cast<char>((header.completes ? kCompletes : 0) | (header.seals ? kSeals : 0));
  store(to + 4, header.payload_size);
  store(to + 8, header.payload_crc);
  store(to + 12, header.position);
  store(to + 20, header.synced);
  store(to + 28, header.engine_time.ns);
  store(to + 36, header.wall_ns);
  store_checksum(to, kFrameHeaderSize);
}

bool decode(std::string_view bytes, FrameHeader* header) {
  if (bytes.size() < kFrameHeaderSize || !bytes.starts_with(kFrameMark)) return false;
  bytes = bytes.substr(0, kFrameHeaderSize);
  if (!checksum_holds(bytes)) return false;
  const char* const from = bytes.data();
  const auto flags = static_cast<unsigned char>(from[3]);
  header->completes = (flags & kCompletes) != 0;
  header->seals = (flags & kSeals) != 0;
  header->payload_size = load<std::uint32_t>(from + 4);
  header->payload_crc = load<std::uint32_t>(from + 8);
  header->position = load<std::uint64_t>(from + 12);
  header->synced = load<std::uint64_t>(from + 20);
  header->engine_time.ns = load<std::uint64_t>(from + 28);
  header->wall_ns = load<std::uint64_t>(from + 36);
  return (flags & ~(kCompletes | kSeals)) == 0 && header->payload_size <= kPayloadMax;
}

std::size_t find_frame_mark(std::string_view bytes) { return bytes.find(kFrameMark[0]); }

// Records.

namespace {

// The first byte of a record.
enum class Tag : unsigned char {
  granted_name = 1,
  granted_secret = 2,
  renewed = 3,
  ended = 4,
  fence_floor = 5,
  granted_besides = 6,  // a grant with more to tell than the first two can
  resized = 7,
};

// What there is to tell of a granted_besides.
constexpr std::uint8_t kOfSecret = 1;
constexpr std::uint8_t kOfClient = 2;
constexpr std::uint8_t kOfResized = 4;
constexpr std::uint8_t kOfShared = 8;    // of a lock
constexpr std::uint8_t kOfPermits = 16;  // of a semaphore: more than one
constexpr std::uint8_t kBesides = kOfClient | kOfResized | kOfShared | kOfPermits;

std::uint8_t flags_of(const Event& event) {
  return (event.holder.is_secret() ? kOfSecret : 0) | (event.client.empty() ? 0 : kOfClient) |
         (event.first_limit == 0 ? 0 : kOfResized) | (event.mode == Mode::shared ? kOfShared : 0) |
         (event.permits == 1 ? 0 : kOfPermits);
}

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

char* store_client(char* to, const ClientView& client) {
  to = store_text(to, client.name);
  to = store_text(to, client.peer);
  return store_text(to, client.note);
}

char* store_holder(char* to, const Holder& holder) {
  return holder.is_secret() ? store_u64(to, holder.secret()) : store_text(to, holder.name());
}

bool take_any_text(std::string_view& bytes, std::size_t size_max, std::string_view* text) {
  std::uint64_t size = 0;
  if (!take_varint(bytes, &size) || size > size_max || size > bytes.size()) return false;
  *text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

bool take_text(std::string_view& bytes, std::size_t size_max, std::string_view* text) {
  return take_any_text(bytes, size_max, text) && !text->empty();
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
  if (!take(bytes, &byte) || byte > static_cast<std::uint8_t>(EndCause::revoked)) return false;
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

bool take_client(std::string_view& bytes, ClientView* client) {
  return take_any_text(bytes, kHolderSizeMax, &client->name) &&
         take_any_text(bytes, kPeerSizeMax, &client->peer) &&
         take_any_text(bytes, kNoteSizeMax, &client->note) && !client->empty();
}

bool take_share(std::string_view& bytes, std::uint8_t flags, Event* event) {
  const bool is_shared = (flags & kOfShared) != 0;
  if (is_shared) event->mode = Mode::shared;
  if ((flags & kOfPermits) == 0) return !is_shared || event->kind == Kind::lock;
  return event->kind == Kind::semaphore && !is_shared && take_limit(bytes, &event->permits) &&
         event->permits > 1;
}

// A grant is written in one way: as the first two tags, unless there is more to tell.
bool take_besides(std::string_view& bytes, Event* event) {
  std::uint8_t flags = 0;
  if (!take(bytes, &flags) || (flags & kBesides) == 0 || flags > (kOfSecret | kBesides)) {
    return false;
  }
  return take_holder(bytes, (flags & kOfSecret) != 0, &event->holder) &&
         ((flags & kOfClient) == 0 || take_client(bytes, &event->client)) &&
         ((flags & kOfResized) == 0 || take_limit(bytes, &event->first_limit)) &&
         take_share(bytes, flags, event);
}

bool take_fields(std::string_view& bytes, Tag tag, Event* event) {
  if (tag == Tag::fence_floor) {
    event->type = Event::Type::fence_floor;
    return take_fence(bytes, &event->fence);
  }
  if (!take_kind(bytes, &event->kind) || !take_text(bytes, kKeySizeMax, &event->key)) return false;
  if (tag == Tag::resized) {
    event->type = Event::Type::resized;
    return take_limit(bytes, &event->limit);
  }
  if (!take_fence(bytes, &event->fence)) return false;
  switch (tag) {
    case Tag::granted_name:
    case Tag::granted_secret:
      event->type = Event::Type::granted;
      return take_lease(bytes, event) && take_limit(bytes, &event->limit) &&
             take_holder(bytes, tag == Tag::granted_secret, &event->holder);
    case Tag::granted_besides:
      event->type = Event::Type::granted;
      return take_lease(bytes, event) && take_limit(bytes, &event->limit) &&
             take_besides(bytes, event);
    case Tag::renewed: event->type = Event::Type::renewed; return take_lease(bytes, event);
    case Tag::ended: event->type = Event::Type::ended; return take_cause(bytes, &event->cause);
    case Tag::fence_floor:
    case Tag::resized: break;
  }
  return false;
}

Tag tag_of(const Event& event) {
  switch (event.type) {
    case Event::Type::granted:
      if ((flags_of(event) & kBesides) != 0) return Tag::granted_besides;
      return event.holder.is_secret() ? Tag::granted_secret : Tag::granted_name;
    case Event::Type::resized: return Tag::resized;
    case Event::Type::renewed: return Tag::renewed;
    case Event::Type::ended: return Tag::ended;
    case Event::Type::fence_floor: break;
  }
  return Tag::fence_floor;
}

}  // namespace

char* encode(const Event& event, char* to) {
  assert(event.key.size() <= kKeySizeMax && event.holder.name().size() <= kHolderSizeMax);
  assert(event.client.name.size() <= kHolderSizeMax && event.client.peer.size() <= kPeerSizeMax &&
         event.client.note.size() <= kNoteSizeMax);
  const Tag tag = tag_of(event);
  *to++ = static_cast<char>(tag);
  if (tag == Tag::fence_floor) return store_varint(to, event.fence);
  *to++ = static_cast<char>(event.kind);
  to = store_text(to, event.key);
  if (tag == Tag::resized) return store_varint(to, event.limit);
  to = store_varint(to, event.fence);
  if (tag == Tag::ended) {
    *to++ = static_cast<char>(event.cause);
    return to;
  }
  to = store_lease(to, event);
  if (tag == Tag::renewed) return to;
  to = store_varint(to, event.limit);
  if (tag == Tag::granted_besides) *to++ = static_cast<char>(flags_of(event));
  to = store_holder(to, event.holder);
  if (!event.client.empty()) to = store_client(to, event.client);
  if (event.first_limit != 0) to = store_varint(to, event.first_limit);
  return event.permits == 1 ? to : store_varint(to, event.permits);
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
