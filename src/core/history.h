// The last of what happened to a table's keys, in a bounded number of bytes.
//
// What happens is written down where it happens, under the lock that the table's shard holds
// anyway: into memory that is there, without an allocation and without another lock. So it is
// always on, and costs a copy of about a hundred bytes a key event.
//
// There is a ring for each of four sorts, so that none pushes out another: what is common; what is
// rare, and asked about later (leases that ran out, slow waits); refusals, which a client can cause
// at will; and what admins did, which no client can. A ring is cut into blocks. Key events lie in
// a block one behind the other; a block that is begun anew loses all that it had, so none is ever
// half overwritten.
//
// Not thread-safe. A block is copied under the lock, and read without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/key.h"
#include "lockd/observer.h"
#include "lockd/types.h"

namespace lockd {

// What is kept of a key event besides its numbers. Views: they are copied.
struct Texts {
  std::string_view key;
  Holder holder;
  ClientView client{};        // who the holder's client says it is
  std::string_view reason{};  // why an admin had it done, and who that was
  std::string_view by{};
};

// The numbers, as they lie in memory; the texts follow.
struct KeyEventRecord {
  Time at{};
  Fence fence = 0;
  Duration ttl{};
  Duration lasted{};
  std::uint32_t place = 0;
  std::uint32_t limit = 1;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  std::uint32_t takes = kWhole;  // of the key's capacity
  KeyEvent::Type type{};
  Kind kind = Kind::lock;
  Outcome outcome = Outcome::ok;

  // Written by History.
  std::uint8_t key_size_less_1 = 0;
  std::uint32_t number = 0;            // tells the order of those that happened at one instant
  std::uint16_t size = 0;              // with its texts, and rounded up
  std::uint16_t holder_size : 13 = 0;  // of a name; else a session's id follows
  bool is_session : 1 = false;
  bool has_more : 1 = false;  // texts than the key and the holder
};
static_assert(sizeof(KeyEventRecord) == 64);

// A key event that was kept. Views into the bytes that it was read from.
struct PastEvent {
  // It lies at the front of `bytes`, which begin with a whole one.
  explicit PastEvent(std::string_view bytes);
  // One that was not kept.
  PastEvent(const KeyEventRecord& facts, const Texts& texts);
  KeyEvent event() const;  // whose key is a view, too

  bool is_session() const { return facts.is_session; }

  KeyEventRecord facts;
  std::string_view key;
  std::string_view holder;  // a name; empty: a session's, or nobody's
  SessionId session = 0;
  ClientView client;
  std::string_view reason;
  std::string_view by;
};

// One ring.
class HistoryRing {
 public:
  // The largest key event: whatever is longer is cut.
  static constexpr std::size_t kTextMax = 256;
  static constexpr std::size_t aligned(std::size_t size) {
    constexpr std::size_t kAlignment = alignof(KeyEventRecord);
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  static constexpr std::size_t kEntryMax =
      sizeof(KeyEventRecord) + kKeySizeMax + kHolderSizeMax + 5 * (2 + kTextMax);

  // Of about `capacity` bytes, and at least two blocks; 0: it keeps nothing, and make_room() must
  // not be called.
  explicit HistoryRing(std::size_t capacity);

  // Where so many bytes are to be written: at most kEntryMax, and aligned().
  char* make_room(std::size_t size) {
    if (static_cast<std::size_t>(block_end_ - next_) < size) begin_block();
    char* const room = next_;
    next_ += size;
    // Between two key events other shards have had theirs: what comes next is fetched in time.
    __builtin_prefetch(next_ + 64, 1);
    __builtin_prefetch(next_ + 128, 1);
    return room;
  }

  // Blocks are numbered as they are begun. The one that is being written; and a copy of one, false
  // when there is none of this number, or it was overwritten.
  std::uint64_t newest() const { return newest_; }
  bool copy(std::uint64_t number, std::string& bytes) const;

 private:
  void begin_block();
  char* start_of(std::uint64_t number) const { return &bytes_[number % sizes_.size() * block_]; }

  std::unique_ptr<char[]> bytes_;  // not touched before it is used: an idle server is small
  std::size_t block_ = 0;
  std::vector<std::uint32_t> sizes_;  // of the blocks that are full
  std::uint64_t newest_ = 0;
  char* next_ = nullptr;
  char* block_end_ = nullptr;
};

class History {
 public:
  enum class Sort : std::uint8_t { common, rare, refused, admin };
  static constexpr std::size_t kSorts = 4;
  static constexpr Sort category(KeyEvent::Type type) {
    switch (type) {
      case KeyEvent::Type::expired:
      case KeyEvent::Type::slow_wait:
      case KeyEvent::Type::slow_hold: return Sort::rare;
      case KeyEvent::Type::revoked:
      case KeyEvent::Type::resized: return Sort::admin;
      case KeyEvent::Type::refused: return Sort::refused;
      default: return Sort::common;
    }
  }

  // Of `capacity` bytes a fifth is for all that is not common. 0: nothing is kept.
  explicit History(std::size_t capacity);

  bool is_kept() const { return is_kept_; }
  // Precondition: it is kept.
  void add(KeyEventRecord facts, const Texts& texts) noexcept;
  // For the way of every request, where no client says who it is: a key event that the caller
  // fills in where it stays, field by field. A copy by way of the stack would cost more than the
  // rest together.
  KeyEventRecord& begin(KeyEvent::Type type, std::string_view key,
                        const StoredHolder& holder) noexcept;

  const HistoryRing& ring(Sort sort) const { return rings_[static_cast<std::size_t>(sort)]; }

 private:
  HistoryRing& ring_of(KeyEvent::Type type) {
    return rings_[static_cast<std::size_t>(category(type))];
  }

  bool is_kept_;
  std::uint32_t last_number_ = 0;
  HistoryRing rings_[kSorts];
};

inline KeyEventRecord& History::begin(KeyEvent::Type type, std::string_view key,
                                      const StoredHolder& holder) noexcept {
  const bool is_session = holder.is_secret();
  const std::string_view name = is_session ? std::string_view() : holder.view().name();
  const std::size_t size = HistoryRing::aligned(sizeof(KeyEventRecord) + key.size() +
                                                (is_session ? sizeof(SessionId) : name.size()));
  char* const to = ring_of(type).make_room(size);
  char* const texts = to + sizeof(KeyEventRecord);
  std::memcpy(texts, key.data(), key.size());
  if (is_session) {
    const SessionId session = holder.session_id();
    std::memcpy(texts + key.size(), &session, sizeof(session));
  } else {
    std::memcpy(texts + key.size(), name.data(), name.size());
  }
  auto& begun = *::new (to) KeyEventRecord;
  begun.type = type;
  begun.key_size_less_1 = static_cast<std::uint8_t>(key.size() - 1);
  begun.size = static_cast<std::uint16_t>(size);
  begun.holder_size = name.size() & 0x1fff;
  begun.number = ++last_number_;
  begun.is_session = is_session;
  return begun;
}

}  // namespace lockd
