// The most recent key events of a table, in a bounded number of bytes.
//
// The table records an event under the lock that its shard holds anyway, into preallocated memory.
// Recording needs no allocation and no lock of its own; it copies about a hundred bytes an event,
// so the history is always on.
//
// Each of four categories has its own ring, so that no category evicts another: common events; rare
// events (expired leases, slow waits and holds); refusals, which a client can cause at will; and
// admin actions, which no client can cause. A ring consists of blocks, and events lie in a block
// one after the other. A block loses all of its events when it is reused, so no event is ever half
// overwritten.
//
// Not thread-safe. A reader copies a block under the shard's lock and parses it without the lock.
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

// The texts of a key event. Views; the history copies them.
struct Texts {
  std::string_view key;
  Holder holder;
  ClientView client{};        // the identity that the holder's client gave
  std::string_view reason{};  // an admin's reason
  std::string_view by{};      // the admin
};

// The numbers of a key event, as they lie in memory; the texts follow.
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
  std::uint32_t number = 0;            // orders the events of one instant
  std::uint16_t size = 0;              // with the texts, rounded up
  std::uint16_t holder_size : 13 = 0;  // the size of a holder's name
  bool is_session : 1 = false;         // a session id follows the key instead of a name
  bool has_more : 1 = false;           // there are texts besides the key and the holder
};
static_assert(sizeof(KeyEventRecord) == 64);

// A recorded key event. Views into the bytes that it was parsed from.
struct PastEvent {
  // Parses the event at the front of `bytes`. Precondition: that event is complete.
  explicit PastEvent(std::string_view bytes);
  // An event that is not in a history.
  PastEvent(const KeyEventRecord& facts, const Texts& texts);
  KeyEvent event() const;  // its key is a view, too

  bool is_session() const { return facts.is_session; }

  KeyEventRecord facts;
  std::string_view key;
  std::string_view holder;  // a name; empty: the holder is a session, or there is none
  SessionId session = 0;
  ClientView client;
  std::string_view reason;
  std::string_view by;
};

class HistoryRing {
 public:
  static constexpr std::size_t kTextMax = 256;  // History truncates longer texts
  static constexpr std::size_t aligned(std::size_t size) {
    constexpr std::size_t kAlignment = alignof(KeyEventRecord);
    return (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  static constexpr std::size_t kEntryMax =
      sizeof(KeyEventRecord) + kKeySizeMax + kHolderSizeMax + 5 * (2 + kTextMax);

  // About `capacity` bytes, and at least two blocks. 0: the ring keeps nothing, and make_room()
  // must not be called.
  explicit HistoryRing(std::size_t capacity);

  // Memory for the next event. Precondition: `size` is aligned() and at most kEntryMax.
  char* make_room(std::size_t size) {
    if (static_cast<std::size_t>(block_end_ - next_) < size) begin_block();
    char* const room = next_;
    next_ += size;
    // Other shards record events before the next one here, and evict these lines from the cache.
    __builtin_prefetch(next_ + 64, 1);
    __builtin_prefetch(next_ + 128, 1);
    return room;
  }

  // The number of the block that is being written. Blocks are numbered in the order of their use.
  std::uint64_t newest() const { return newest_; }
  // Copies a block. False if the ring has no block of this number, or has overwritten it.
  bool copy(std::uint64_t number, std::string& bytes) const;

 private:
  void begin_block();
  char* start_of(std::uint64_t number) const { return &bytes_[number % sizes_.size() * block_]; }

  std::unique_ptr<char[]> bytes_;     // uninitialized, so that an idle server touches no page of it
  std::size_t block_ = 0;             // the size of a block
  std::vector<std::uint32_t> sizes_;  // bytes used in each full block
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

  // A fifth of `capacity`, in bytes, is reserved for the other categories than common. 0: the
  // history is off.
  explicit History(std::size_t capacity);

  bool is_kept() const { return is_kept_; }
  // Precondition: is_kept().
  void add(KeyEventRecord facts, const Texts& texts) noexcept;
  // Starts an event without a client identity; the caller fills in the record in place. This is the
  // hot path of every request, where a copy through the stack would cost more than all the rest.
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
