#include "core/history.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/coding.h"

namespace lockd {
namespace {

// A ring loses one block at once: a sixteenth of the ring, and no more than a reader copies under
// the lock in a few microseconds.
constexpr std::size_t kBlocks = 16;
constexpr std::size_t kBlockMax = 64 * 1024;

char* put(char* to, std::string_view text) { return to + text.copy(to, text.size()); }

// At most kTextMax bytes of the text, without splitting a character.
std::string_view truncated(std::string_view text) {
  if (text.size() <= HistoryRing::kTextMax) return text;
  std::size_t size = HistoryRing::kTextMax;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

using More = std::array<std::string_view, 5>;

// 0 if all of them are empty.
std::size_t size_of(const More& more) {
  std::size_t size = 0;
  for (const std::string_view text : more) size += text.size();
  return size == 0 ? 0 : size + 2 * more.size();
}

char* put_sized(char* to, std::string_view text) {
  store(to, static_cast<std::uint16_t>(text.size()));
  return put(to + 2, text);
}

std::string_view get(const char*& from, std::size_t size) {
  const std::string_view text(from, size);
  from += size;
  return text;
}

std::string_view get_sized(const char*& from) {
  const auto size = load<std::uint16_t>(from);
  from += 2;
  return get(from, size);
}

}  // namespace

HistoryRing::HistoryRing(std::size_t capacity) {
  if (capacity == 0) return;
  constexpr std::size_t kAlignment = alignof(KeyEventRecord);
  block_ = std::clamp(capacity / kBlocks / kAlignment * kAlignment, aligned(kEntryMax), kBlockMax);
  sizes_.resize(std::max<std::size_t>(capacity / block_, 2));
  bytes_ = std::make_unique_for_overwrite<char[]>(block_ * sizes_.size());
  next_ = start_of(0);
  block_end_ = next_ + block_;
}

void HistoryRing::begin_block() {
  sizes_[newest_ % sizes_.size()] = static_cast<std::uint32_t>(next_ - start_of(newest_));
  next_ = start_of(++newest_);
  block_end_ = next_ + block_;
}

bool HistoryRing::copy(std::uint64_t number, std::string& bytes) const {
  if (sizes_.empty() || number > newest_ || newest_ - number >= sizes_.size()) return false;
  const char* const start = start_of(number);
  const std::size_t size =
      number == newest_ ? static_cast<std::size_t>(next_ - start) : sizes_[number % sizes_.size()];
  bytes.assign(start, size);
  return true;
}

History::History(std::size_t capacity)
    : is_kept_(capacity > 0),
      rings_{HistoryRing(capacity - capacity / 5), HistoryRing(capacity / 8),
             HistoryRing(capacity / 40), HistoryRing(capacity / 20)} {}

void History::add(KeyEventRecord facts, const Texts& texts) noexcept {
  const std::string_view name = texts.holder.name();
  const More more{truncated(texts.client.name), truncated(texts.client.peer),
                  truncated(texts.client.note), truncated(texts.reason), truncated(texts.by)};
  const std::size_t more_size = size_of(more);
  facts.is_session = texts.holder.is_secret();
  const std::size_t size =
      HistoryRing::aligned(sizeof(facts) + texts.key.size() + more_size +
                           (facts.is_session ? sizeof(SessionId) : name.size()));
  facts.key_size_less_1 = static_cast<std::uint8_t>(texts.key.size() - 1);
  facts.holder_size = name.size() & 0x1fff;
  facts.size = static_cast<std::uint16_t>(size);
  facts.has_more = more_size > 0;
  facts.number = ++last_number_;

  char* to = ring_of(facts.type).make_room(size);
  ::new (to) KeyEventRecord(facts);
  to = put(to + sizeof(facts), texts.key);
  if (facts.is_session) {
    store(to, texts.holder.session_id());
    to += sizeof(SessionId);
  } else {
    to = put(to, name);
  }
  if (!facts.has_more) return;
  for (const std::string_view text : more) to = put_sized(to, text);
}

PastEvent::PastEvent(std::string_view bytes) {
  std::memcpy(&facts, bytes.data(), sizeof(facts));
  const char* from = bytes.data() + sizeof(facts);
  key = get(from, std::size_t{facts.key_size_less_1} + 1);
  if (facts.is_session) {
    session = load<SessionId>(from);
    from += sizeof(SessionId);
  } else {
    holder = get(from, facts.holder_size);
  }
  if (!facts.has_more) return;
  client.name = get_sized(from);
  client.peer = get_sized(from);
  client.note = get_sized(from);
  reason = get_sized(from);
  by = get_sized(from);
}

PastEvent::PastEvent(const KeyEventRecord& facts, const Texts& texts)
    : facts(facts),
      key(texts.key),
      holder(texts.holder.name()),
      session(texts.holder.session_id()),
      client(texts.client),
      reason(texts.reason),
      by(texts.by) {
  this->facts.is_session = texts.holder.is_secret();
}

KeyEvent PastEvent::event() const {
  KeyEvent event{.type = facts.type,
                 .kind = facts.kind,
                 .outcome = facts.outcome,
                 .key = key,
                 .holder = is_session() ? "tcp:" + std::to_string(session) : std::string(holder),
                 .session = session,
                 .fence = facts.fence,
                 .mode = mode_of(facts.kind, facts.takes),
                 .permits = permits_of(facts.kind, facts.takes),
                 .ttl = facts.ttl,
                 .lasted = facts.lasted,
                 .place = facts.place,
                 .at = facts.at,
                 .reason = std::string(reason),
                 .by = std::string(by),
                 .limit = facts.limit,
                 .holders = facts.holders,
                 .waiters = facts.waiters};
  if (!client.empty()) {
    event.client = std::make_shared<const ClientIdentity>(ClientIdentity{
        std::string(client.name), std::string(client.peer), std::string(client.note)});
  }
  return event;
}

}  // namespace lockd
