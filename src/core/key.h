// Key: one lock or semaphore with its holds and its queue.
//
// Every key is a semaphore: a lock is a key of capacity one that holders may also share. Key,
// Hold and QueuePlace are plain structures that link to each other; TableState owns them all. They
// are laid out for size: a held lock with a name of 16 bytes is one allocation of 168 bytes.
//
// A shared lock in use, with a queue, looks like this:
//
//   Key ── first (a Hold inside the key) ─┐
//    │     holds ─▶ Hold ─▶ Hold ─▶ Hold ─┘   in the order of their fences
//    └──── queue ─▶ QueuePlace ─▶ QueuePlace  in the order of arrival
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/list.h"
#include "core/key_request.h"
#include "core/timer_queue.h"
#include "lockd/requests.h"
#include "lockd/types.h"

namespace lockd {

// A Holder that owns its name, in 16 bytes.
//
// Names of up to 15 bytes are stored inside; longer ones on the heap. Moving never allocates, so
// moving a waiter's holder into its hold cannot fail.
class StoredHolder {
 public:
  StoredHolder() = default;  // the empty name: no holder
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

  // The name, or "tcp:<session>" for a session. Never the secret.
  std::string display_name() const;

  bool is_empty() const { return high_ == 0; }
  bool is_secret() const { return tag() >= kChosenSecret; }
  bool may_ask_again() const { return tag() != kSecret; }
  SessionId session_id() const { return is_secret() ? high_ & kPayload : 0; }

  // Compares secrets in constant time: one word with one word.
  bool equals(const Holder& holder) const {
    if (is_secret() != holder.is_secret()) return false;
    if (is_secret()) return (low_ ^ holder.secret()) == 0;
    return view().name() == holder.name();
  }

 private:
  static constexpr unsigned kTagShift = 56;
  static constexpr std::uint64_t kPayload = (std::uint64_t{1} << kTagShift) - 1;

  // The last byte is the tag: the size of a name stored inside, or one of these values.
  static constexpr std::size_t kInlineMax = 15;
  static constexpr std::uint64_t kOnHeap = 0xfd;        // then: an address, a size
  static constexpr std::uint64_t kChosenSecret = 0xfe;  // then: a secret, a session
  static constexpr std::uint64_t kSecret = 0xff;        // then: a secret, a session
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

// What a hold takes of its key's capacity: a number of permits of a semaphore's limit; of a lock
// one share, which leaves room for any number of others, or the whole.
inline constexpr std::uint32_t kWhole = UINT32_MAX;

inline Mode mode_of(Kind kind, std::uint32_t takes) {
  return kind == Kind::lock && takes != kWhole ? Mode::shared : Mode::exclusive;
}
inline std::uint32_t permits_of(Kind kind, std::uint32_t takes) {
  return kind == Kind::lock || takes == kWhole ? 1 : takes;
}
template <typename Request>  // KeyRequest, or an Event of a grant
std::uint32_t takes_of(const Request& request) {
  if (request.kind == Kind::semaphore) return request.permits;
  return request.mode == Mode::shared ? 1 : kWhole;
}

// Where the identity of a hold's or place's client is stored: see ClientNames.
enum class ClientFrom : std::uint8_t { nowhere, session, texts };

struct KnownClient {
  ClientRef identity{};  // null: the client has not identified itself
  ClientFrom from = ClientFrom::nowhere;
};

// One grant of a key, in force until its lease (the timer) ends.
struct Hold : Timer {
  explicit Hold(Key* key) : Timer(Timer::Kind::lease), key(key) {}

  // Zero when `since` is later than `now`, as it can be for a recovered hold.
  Duration held_at(Time now) const { return now > since ? now - since : Duration::zero(); }

  Mode mode() const;
  std::uint32_t permits() const;

  bool in_use : 1 = false;
  bool two_phase : 1 = false;       // its session has an Enqueued that points here
  bool unacknowledged : 1 = false;  // granted to an enqueued place that no caller has awaited yet
  bool renewed : 1 = false;         // it cannot be withdrawn: renewed, shared or recovered
  bool slow : 1 = false;            // recorded as slow
  ClientFrom client_from = ClientFrom::nowhere;
  std::uint32_t takes = 0;  // how much of the key's capacity
  Key* const key;
  ListHook<Hold> peers;  // the key's holds by fence; while unused, the idle keys
  ListHook<Hold> session_peers;
  Fence fence = 0;  // of the last grant, also while unused
  Duration ttl{};
  Time since;  // when it was granted; while unused, when it ended
  StoredHolder holder;
};

// A place in a key's queue. The timer ends the wait; it is unarmed while an enqueued place is not
// awaited: see Enqueued.
struct QueuePlace : Timer {
  QueuePlace() : Timer(Timer::Kind::wait) {}

  bool two_phase : 1 = false;  // its session has an Enqueued that points here
  bool slow : 1 = false;       // recorded as slow
  bool of_set : 1 = false;     // this is a SetPlace, one of several that are granted together
  ClientFrom client_from = ClientFrom::nowhere;
  std::uint32_t slot = 0;
  std::uint32_t takes = kWhole;  // how much of the key's capacity the grant will take
  Key* key = nullptr;
  ListHook<QueuePlace> peers;
  ListHook<QueuePlace> session_peers;
  ListHook<QueuePlace> same_owner_peers;  // this holder's places in this queue: see PlaceIndex
  Listener* listener = nullptr;           // null while no caller waits
  std::uint64_t id = 0;
  Duration ttl{};
  Time since;
  StoredHolder holder;
  ClientRef client{};  // null: the client has not identified itself
};

// A session's two-phase acquisition of a key: first a place in the queue, then a hold, and neither
// once the hold has lapsed. One per session and key.
struct Enqueued {
  SessionId session = 0;
  Key* key = nullptr;
  QueuePlace* place = nullptr;
  Hold* hold = nullptr;
  ListHook<Enqueued> session_peers;
  ListHook<Enqueued> lapsed_peers;  // linked once the hold has lapsed
};

using Holds = List<Hold, &Hold::peers>;
using WaitQueue = List<QueuePlace, &QueuePlace::peers>;

// A key's limit and the length of its queue.
struct KeyCounts {
  std::uint32_t limit;
  std::uint32_t waiters;
};

// What only few keys have. The counts move here with the rest, so that their own place in the key
// can hold the pointer.
struct KeyExtras {
  KeyCounts counts;
  std::uint32_t first_limit = 0;    // the limit before the first resize; 0: not resized
  std::uint64_t extra_permits = 0;  // permits in use beyond one for each hold
  // For a lock: the largest fence of a hold that has ended, if larger than the fence of `first`.
  Fence past_fence = 0;
  // While the table is late: nothing of this key is due before `quiet_until`. Meaningless unless
  // `lag` is the number of the table's current lag.
  Time quiet_until;
  std::uint64_t lag = 0;
};

struct Key {
  static std::unique_ptr<Key> create(Kind kind, std::string_view name);
  ~Key() {
    if (has_extras) delete extras_;
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  // Frees what create() allocated, which is more than sizeof(Key).
  static void operator delete(void* memory);

  // The name's bytes follow the structure.
  std::string_view name() const {
    return {reinterpret_cast<const char*>(this + 1), std::size_t{name_size_less_1} + 1};
  }
  bool idle() const { return holders == 0 && queue.empty(); }
  std::uint32_t waiters() const { return counts().waiters; }

  // Capacity.

  std::uint32_t limit() const { return counts().limit; }
  std::uint32_t capacity() const { return kind == Kind::lock ? kWhole : limit(); }
  std::uint64_t in_use() const;
  // Permits in use; 0 for a lock.
  std::uint32_t permits_in_use() const {
    return kind == Kind::lock ? 0 : static_cast<std::uint32_t>(in_use());
  }
  bool fits(std::uint32_t takes) const { return in_use() + takes <= capacity(); }
  // Room alone is not enough: no request overtakes the queue.
  bool may_enter(std::uint32_t takes) const { return queue.empty() && fits(takes); }
  bool is_shared() const { return !holds.empty() && holds.front()->mode() == Mode::shared; }
  // Several may hold it at once.
  bool has_several() const { return kind == Kind::semaphore || is_shared(); }

  // The limit. A resize lasts until the key is idle.

  bool is_resized() const { return first_limit() != 0; }
  // The limit before the first resize, or 0.
  std::uint32_t first_limit() const { return has_extras ? extras_->first_limit : 0; }
  // Whether a request may name `limit`: the one in force or the one before the resize, which
  // running clients still name. After a resize the request must also be grantable: `takes` is 0
  // for a holder that repeats its request.
  bool matches(std::uint32_t limit, std::uint32_t takes) const;
  void set_limit(std::uint32_t limit) { counts().limit = limit; }
  void resize(std::uint32_t limit);

  // Holds and fences.

  // Adds `hold` in the order of the fences. `before`, if it is a hold of this key with a smaller
  // fence, is where the search for its position starts.
  void insert(Hold& hold, const Hold* before);
  // `raised`: see largest_fence().
  void erase(Hold& hold, Fence raised);
  // Places join the queue at its end.
  void push_back(QueuePlace& place) {
    queue.push_back(&place);
    ++counts().waiters;
  }
  void erase(QueuePlace& place) {
    queue.remove(&place);
    --counts().waiters;
  }
  // Precondition: this is a lock. The largest fence that it was ever granted under. A recovered
  // hold may have shared the lock with holds that ended before the snapshot; their fences were at
  // most `raised`.
  Fence largest_fence(Fence raised) const;

  KeyCounts& counts() { return has_extras ? extras_->counts : counts_; }
  const KeyCounts& counts() const { return has_extras ? extras_->counts : counts_; }
  // Null if this key has none.
  KeyExtras* find_extras() const { return has_extras ? extras_ : nullptr; }
  KeyExtras& extras();
  // Precondition: the key is idle. Ends a resize.
  void drop_extras();

  Hold first{this};  // inside the key: most locks need no other
  Key* index_next = nullptr;
  Holds holds;
  WaitQueue queue;
  std::uint32_t holders = 0;
  const Kind kind;
  bool has_extras : 1 = false;
  bool has_lapsed : 1 = false;  // some Enqueued without place and hold points here
  const std::uint8_t name_size_less_1;

 private:
  Key(Kind kind, std::string_view name);
  void keep_fence(const Hold& ended, Fence raised);

  union {
    KeyCounts counts_{.limit = 1, .waiters = 0};
    KeyExtras* extras_;  // while has_extras
  };
};

inline std::uint64_t Key::in_use() const {
  if (kind == Kind::lock) return holders == 0 || is_shared() ? holders : kWhole;
  return holders + (has_extras ? extras_->extra_permits : 0);
}

inline Mode Hold::mode() const { return mode_of(key->kind, takes); }
inline std::uint32_t Hold::permits() const { return permits_of(key->kind, takes); }

}  // namespace lockd
