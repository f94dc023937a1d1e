// The vocabulary that every layer shares: time, keys' kinds, fences, holders, grants, outcomes.
//
// Plain values, safe to copy and to use from any thread. Nothing here allocates.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockd {

// A length of time. Leases and waits are measured in nanoseconds because "never early" must hold to
// the last digit: a coarser unit would round the moment of a grant down, and its lease with it.
using Duration = std::chrono::nanoseconds;

// The longest lease or wait that may be asked for: 292 years. The line protocol's limit of
// 9,223,372,036 seconds is the same number.
inline constexpr Duration kDurationMax = Duration::max();

// Engine time: nanoseconds since 1970. It starts from the wall clock and then never goes back (see
// lockd/clock.h). Unsigned, so that any permitted lease can be added to any date before 2262.
struct Time {
  std::uint64_t ns = 0;

  static constexpr Time never() { return {UINT64_MAX}; }

  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time t, Duration d) {
    return {t.ns + static_cast<std::uint64_t>(d.count())};
  }
  friend constexpr Time operator-(Time t, Duration d) {
    return {t.ns - static_cast<std::uint64_t>(d.count())};
  }
  // Precondition: the difference fits a Duration, as it does between a deadline and now.
  friend constexpr Duration operator-(Time a, Time b) {
    return Duration(static_cast<std::int64_t>(a.ns - b.ns));
  }
};

// Locks and semaphores are separate namespaces: the same name may be both.
enum class Kind : std::uint8_t { lock, semaphore };

// How a lock is held: alone, or by any number who share it. A semaphore is held by permits.
enum class Mode : std::uint8_t { exclusive, shared };

// The fencing token: a number that strictly increases with every grant of a key, across expiry and
// restarts. Hand it to whatever the lock protects; that refuses a smaller one than it has seen.
using Fence = std::uint64_t;

// Fences stay below 2^53, so that JavaScript and JSON read them exactly.
inline constexpr Fence kFenceMax = (Fence{1} << 53) - 1;

inline constexpr std::size_t kKeySizeMax = 256;
inline constexpr std::size_t kHolderSizeMax = 256;
inline constexpr std::size_t kNoteSizeMax = 256;
inline constexpr std::size_t kPeerSizeMax = 64;
inline constexpr std::uint32_t kLimitMax = 2'147'483'647;
// How many keys one request may name.
inline constexpr std::size_t kKeysPerSetMax = 64;

// What a holder receives.
struct Grant {
  Fence fence = 0;
  Duration ttl{};            // how long the lease is, from this grant or renewal on
  Time expires_at{};         // engine time
  std::uint64_t secret = 0;  // the holder's own, when it is a session's
};

// How a request ended. Everything that is expected to happen is one of these, never an exception.
enum class Outcome : std::uint8_t {
  ok,                // granted, renewed, released, cancelled: what was asked for was done
  queued,            // in the queue; the wait will be settled exactly once
  held,              // someone holds it, and the request did not want to wait
  timeout,           // the wait ended first
  cancelled,         // the wait was given up
  taken_over,        // a session that came later has asked for it by the same secret
  closed,            // the engine is closed: nothing new is granted
  not_holder,        // held, by someone else
  stale,             // held, under a larger fence; to an admin, under another
  expired,           // not held: the lease ran out, or it was released
  max_keys,          // the engine has as many keys as it may
  max_waiters,       // the key has as many waiters as it may
  max_holds,         // the engine has as many holds and places in queues as it may
  max_client_holds,  // this session, or name, has as many of them as it may
  limit_mismatch,    // the semaphore has another limit
  already_enqueued,  // this session is in this key's queue, or has a grant it has not awaited
  not_enqueued,      // this session has no place to await
  storage,           // the journal cannot take it: the disk is full, or failed
  not_leader,        // another server leads
  fences_exhausted,  // the shard has granted 2^53 fences
  invalid_key,       // empty, longer than 256 bytes, not UTF-8, or with a control character
  invalid_holder,    // likewise, or a session's id of 2^56 or more
  invalid_ttl,       // zero or negative
  invalid_wait,      // negative
  invalid_limit,     // zero, more than 2,147,483,647, or not 1 for a lock
  mode_mismatch,     // this name holds the lock in the other mode
  permits_mismatch,  // this name holds the semaphore with another number of permits
  invalid_mode,      // a semaphore is not held shared or alone
  invalid_permits,   // zero, more than the limit, or not 1 for a lock
  invalid_set,       // no key, more than 64, or one twice
  invalid_note,      // longer than 256 bytes, not UTF-8, or with a control character; or the peer,
                     // of more than 64, or what the session's client says of itself, or an admin's
                     // reason or name
};

// A short phrase for people: "held by someone else", "the wait timed out".
std::string_view describe(Outcome outcome) noexcept;

// Names one client connection, or whatever else must leave its queues when it goes away.
// From 1; 0 is no session. Below 2^56.
using SessionId = std::uint64_t;
inline constexpr SessionId kSessionIdMax = (SessionId{1} << 56) - 1;

// Who a client says it is, and where it comes from. For people: no rule reads it. What is not known
// is empty. Holds and places share one, however many they are.
struct ClientIdentity {
  std::string name;  // like a key
  std::string peer;  // "10.0.0.7:51234"
  std::string note;  // like a name, or empty

  friend bool operator==(const ClientIdentity&, const ClientIdentity&) = default;
};
using ClientRef = std::shared_ptr<const ClientIdentity>;

// The same, of texts that somebody else owns.
struct ClientView {
  std::string_view name{};
  std::string_view peer{};
  std::string_view note{};

  ClientView() = default;
  ClientView(std::string_view name, std::string_view peer, std::string_view note)
      : name(name), peer(peer), note(note) {}
  ClientView(const ClientIdentity& c) : name(c.name), peer(c.peer), note(c.note) {}  // NOLINT

  bool empty() const { return name.empty() && peer.empty() && note.empty(); }

  friend bool operator==(const ClientView&, const ClientView&) = default;
};

// One session as its owner keeps it: its name, and which shards know of it. Used by one thread at a
// time. The engine writes `shards`; Batch::end_session reads it to visit only those.
struct Session {
  SessionId id = 0;
  std::uint64_t shards = 0;
  // Of what it asks for from now on; null: it has not said. Its name, note and peer are UTF-8
  // without control characters and within their limits; what is longer is refused.
  ClientRef client{};
};

// Who holds or wants to hold. Either a name, or the secret of one session. A name that already
// holds a key and asks again gets its own grant back, and so does a secret that its client chose;
// any other is made for one grant and never asks twice. No name ever equals a secret. A view: it
// must not outlive the name it was made from.
class Holder {
 public:
  Holder(std::string_view name) : name_(name) {}    // NOLINT: a name is a holder
  Holder(const std::string& name) : name_(name) {}  // NOLINT
  Holder(const char* name) : name_(name) {}         // NOLINT
  // `session` may be null: a secret whose session is gone, as after a restart.
  Holder(Session* session, std::uint64_t secret) : session_(session), secret_(secret) {
    if (session != nullptr) session_id_ = session->id;
    is_secret_ = true;
  }
  static Holder of_secret(std::uint64_t secret, SessionId session_id = 0) {
    Holder holder(nullptr, secret);
    holder.session_id_ = session_id;
    return holder;
  }

  // The same, of a secret that the client chose.
  Holder chosen() const {
    Holder holder = *this;
    holder.is_chosen_ = is_secret_;
    return holder;
  }

  bool is_secret() const { return is_secret_; }
  bool may_ask_again() const { return !is_secret_ || is_chosen_; }
  std::string_view name() const { return name_; }
  std::uint64_t secret() const { return secret_; }
  SessionId session_id() const { return session_id_; }
  Session* session() const { return session_; }

  friend bool operator==(const Holder& a, const Holder& b) {
    return a.is_secret_ == b.is_secret_ && a.secret_ == b.secret_ && a.name_ == b.name_;
  }

 private:
  std::string_view name_;
  Session* session_ = nullptr;
  std::uint64_t secret_ = 0;
  SessionId session_id_ = 0;
  bool is_secret_ = false;
  bool is_chosen_ = false;
};

}  // namespace lockd
