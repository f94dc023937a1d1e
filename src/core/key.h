// The state of one key: who holds it, who waits, and what ties them to their sessions.
//
// Plain structures, linked into each other; LockTable has the rules and owns them all. They are
// laid out for size: a lock that is held, with its key of 16 bytes, is one allocation of 168 bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/list.h"
#include "core/timer_queue.h"
#include "lockd/requests.h"
#include "lockd/types.h"

namespace lockd {

// A Holder that owns its name, in 16 bytes.
//
// A held key should cost little, and most names are short: up to 15 bytes lie inside; longer ones
// on the heap. Moving never allocates, so a waiter's holder becomes a hold's without a way to fail.
class StoredHolder {
 public:
  StoredHolder() = default;  // nobody: the empty name
  explicit StoredHolder(const Holder& holder) {
    if (holder.is_secret()) {
      low_ = holder.secret();
      const std::uint64_t tag = holder.may_ask_again() ? kChosenSecret : kSecret;
      high_ = tag << kTagShift | holder.session_id();
    } else {
      store_name(holder.name());
    }
  }
  StoredHolder(StoredHolder&& other) noexcept
      : low_(std::exchange(other.low_, 0)), high_(std::exchange(other.high_, 0)) {}
  StoredHolder& operator=(StoredHolder&& other) noexcept {
    std::swap(low_, other.low_);
    std::swap(high_, other.high_);
    return *this;
  }
  ~StoredHolder() {
    if (tag() == kOnHeap) delete[] heap_name();
  }

  Holder view() const {
    if (is_secret()) return secret_view();
    if (tag() == kOnHeap) return std::string_view(heap_name(), high_ & kPayload);
    return std::string_view(reinterpret_cast<const char*>(this), tag());
  }

  // For people: a name as it is, a session's as "tcp:<session>". Never the secret.
  std::string display_name() const;

  bool is_empty() const { return high_ == 0; }
  bool is_secret() const { return tag() >= kChosenSecret; }
  // As Holder's.
  bool may_ask_again() const { return tag() != kSecret; }
  SessionId session_id() const { return is_secret() ? high_ & kPayload : 0; }

  // Whether it is the same. Secrets are compared in constant time: one word against one word.
  bool equals(const Holder& holder) const {
    if (is_secret() != holder.is_secret()) return false;
    if (is_secret()) return (low_ ^ holder.secret()) == 0;
    return view().name() == holder.name();
  }

 private:
  static constexpr unsigned kTagShift = 56;
  static constexpr std::uint64_t kPayload = (std::uint64_t{1} << kTagShift) - 1;

  // The last byte: the size of a name that lies inside, or one of these.
  static constexpr std::size_t kInlineMax = 15;
  static constexpr std::uint64_t kOnHeap = 0xfd;        // an address, then a size
  static constexpr std::uint64_t kChosenSecret = 0xfe;  // a secret, then a session
  static constexpr std::uint64_t kSecret = 0xff;        // likewise
  static_assert(std::endian::native == std::endian::little, "the tag is the last byte");
  static_assert(kSessionIdMax == kPayload);

  std::uint64_t tag() const { return high_ >> kTagShift; }
  char* heap_name() const { return std::bit_cast<char*>(low_); }
  Holder secret_view() const {
    const Holder holder = Holder::of_secret(low_, session_id());
    return tag() == kChosenSecret ? holder.chosen() : holder;
  }
  void store_name(std::string_view name);

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

static_assert(sizeof(StoredHolder) == 16);

struct Key;
struct Enqueued;

// A key has a capacity, and a hold takes some of it: of a semaphore's limit so many permits; of a
// lock one share, beside which any number of others fit, or the whole.
inline constexpr std::uint32_t kWhole = UINT32_MAX;

inline Mode mode_of(Kind kind, std::uint32_t takes) {
  return kind == Kind::lock && takes != kWhole ? Mode::shared : Mode::exclusive;
}
inline std::uint32_t permits_of(Kind kind, std::uint32_t takes) {
  return kind == Kind::lock || takes == kWhole ? 1 : takes;
}
template <typename Request>  // AcquireRequest, EnqueueRequest, SetItem, or an Event of a grant
std::uint32_t takes_of(const Request& request) {
  if (request.kind == Kind::semaphore) return request.permits;
  return request.mode == Mode::shared ? 1 : kWhole;
}

// Where it is known from who the client of a hold or a place says it is: see ClientNames.
enum class ClientFrom : std::uint8_t { nowhere, session, texts };

struct KnownClient {
  ClientRef identity{};  // null: it does not say
  ClientFrom from = ClientFrom::nowhere;
};

// One possession. Its timer is the lease.
struct Hold : Timer {
  explicit Hold(Key* key) : Timer(Timer::Kind::lease), key(key) {}

  // The grant of a hold that was recovered may seem to lie ahead: see LockTable::apply.
  Duration held_at(Time now) const { return now > since ? now - since : Duration::zero(); }

  Mode mode() const;
  std::uint32_t permits() const;

  bool in_use : 1 = false;
  bool two_phase : 1 = false;       // its session has an Enqueued for it
  bool unacknowledged : 1 = false;  // granted to a place in the queue that nobody has awaited yet
  bool renewed : 1 = false;         // its lease was moved since the grant, or may have been
  bool slow : 1 = false;            // it was found to be, and that is recorded
  ClientFrom client_from = ClientFrom::nowhere;
  std::uint32_t takes = 0;  // of its key's capacity
  Key* const key;
  ListHook<Hold> peers;  // the key's holds, in the order of their fences; or the idle keys
  ListHook<Hold> session_peers;
  Fence fence = 0;  // of the last grant, also when free
  Duration ttl{};
  Time since;  // of the grant; of a free hold, when it ended
  StoredHolder holder;
};

// A place in the queue. Its timer is the end of the wait; unarmed while nobody waits: see Enqueued.
struct QueuePlace : Timer {
  QueuePlace() : Timer(Timer::Kind::wait) {}

  bool two_phase : 1 = false;  // its session has an Enqueued for it
  bool slow : 1 = false;       // it was found to be, and that is recorded
  bool of_set : 1 = false;     // it is one of several that belong together: see KeySet
  ClientFrom client_from = ClientFrom::nowhere;
  std::uint32_t slot = 0;
  std::uint32_t takes = kWhole;  // of its key's capacity, when granted
  Key* key = nullptr;
  ListHook<QueuePlace> peers;
  ListHook<QueuePlace> session_peers;
  ListHook<QueuePlace> same_owner_peers;  // the places of its name in this queue; see PlaceIndex
  Listener* listener = nullptr;           // null while nobody waits
  std::uint64_t id = 0;
  Duration ttl{};
  Time since;
  StoredHolder holder;
  ClientRef client{};  // null: it does not say
};

// What a session's two-phase acquisition of a key has come to: a place in the queue, then a hold,
// then nothing when that has lapsed. One per session and key.
struct Enqueued {
  SessionId session = 0;
  Key* key = nullptr;
  QueuePlace* place = nullptr;
  Hold* hold = nullptr;
  ListHook<Enqueued> session_peers;
  ListHook<Enqueued> lapsed_peers;  // linked once it has lapsed
};

// What one session has in one table.
struct SessionItems {
  List<Enqueued, &Enqueued::session_peers> enqueued;
  List<QueuePlace, &QueuePlace::session_peers> waiters;
  List<Hold, &Hold::session_peers> holds;
  std::size_t places = 0;        // how many waiters
  std::size_t held = 0;          // how many holds
  std::size_t acknowledged = 0;  // how many of the holds it was told of
};

using Holds = List<Hold, &Hold::peers>;
using WaitQueue = List<QueuePlace, &QueuePlace::peers>;

// One key. Its first hold lies inside: a lock needs no other.
struct Key {
  static std::unique_ptr<Key> create(Kind kind, std::string_view name);

  // Its bytes lie right behind the structure.
  std::string_view name() const {
    return {reinterpret_cast<const char*>(this + 1), std::size_t{name_size_less_1} + 1};
  }
  bool idle() const { return holders == 0 && waiters == 0; }
  std::uint32_t capacity() const { return kind == Kind::lock ? kWhole : limit; }
  // Of a lock: held by those who share it.
  bool is_shared() const { return !holds.empty() && holds.front()->mode() == Mode::shared; }
  // Several may hold it at once.
  bool has_several() const { return kind == Kind::semaphore || is_shared(); }

  // The memory is larger than the structure: it comes from create() and goes by this.
  static void operator delete(void* memory);

  Hold first{this};
  Key* index_next = nullptr;
  Holds holds;
  WaitQueue queue;
  std::uint32_t limit = 1;
  std::uint32_t holders = 0;
  std::uint32_t waiters = 0;
  const Kind kind;
  bool has_lapsed : 1 = false;  // an Enqueued that has lapsed points here
  bool resized : 1 = false;     // `limit` is not what its first acquirer asked for: see LockTable
  bool has_extra : 1 = false;   // a hold takes more than one permit: see LockTable
  const std::uint8_t name_size_less_1;

 private:
  Key(Kind kind, std::string_view name);
};

inline Mode Hold::mode() const { return mode_of(key->kind, takes); }
inline std::uint32_t Hold::permits() const { return permits_of(key->kind, takes); }

}  // namespace lockd
