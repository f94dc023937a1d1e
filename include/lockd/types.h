// The types that every layer shares: time, kinds of keys, fences, holders, grants, outcomes.
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

// A length of time. Nanoseconds, because a coarser unit would round the time of a grant down and
// end its lease early.
using Duration = std::chrono::nanoseconds;

// The longest lease or wait of a request: 292 years, which is the line protocol's limit of
// 9,223,372,036 seconds.
inline constexpr Duration kDurationMax = Duration::max();

// Engine time: nanoseconds since 1970, monotonic (see lockd/clock.h). Unsigned, so that any
// permitted lease can be added to any date before 2262.
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
  // Precondition: the difference fits a Duration.
  friend constexpr Duration operator-(Time a, Time b) {
    return Duration(static_cast<std::int64_t>(a.ns - b.ns));
  }
};

// Locks and semaphores are separate namespaces: one name may be used for both.
enum class Kind : std::uint8_t { lock, semaphore };

// How a lock is held: by one holder, or by any number of sharing holders. Semaphores use permits.
enum class Mode : std::uint8_t { exclusive, shared };

// The fencing token: a number that strictly increases with every grant of a key, across expiry and
// restarts. Pass it to the protected resource, which must reject a smaller fence than it has seen.
using Fence = std::uint64_t;

// Fences stay below 2^53, so that JavaScript and JSON represent them exactly.
inline constexpr Fence kFenceMax = (Fence{1} << 53) - 1;

inline constexpr std::size_t kKeySizeMax = 256;
inline constexpr std::size_t kHolderSizeMax = 256;
inline constexpr std::size_t kNoteSizeMax = 256;
inline constexpr std::size_t kPeerSizeMax = 64;
inline constexpr std::uint32_t kLimitMax = 2'147'483'647;
// The most keys that one request may name.
inline constexpr std::size_t kKeysPerSetMax = 64;

struct Grant {
  Fence fence = 0;
  Duration ttl{};            // length of the lease, counted from this grant or renewal
  Time expires_at{};         // engine time
  std::uint64_t secret = 0;  // the secret of a holder that belongs to a session; else 0
};

// How a request ended. Every expected result is an Outcome, never an exception.
enum class Outcome : std::uint8_t {
  ok,                // the request was executed: granted, renewed, released or cancelled
  queued,            // in the queue; the wait ends with exactly one WaitResult
  held,              // the key is in use, and the request has no wait
  timeout,           // not granted within the wait
  cancelled,         // the caller cancelled the wait
  taken_over,        // a later session has sent the same request with the same secret
  closed,            // the engine is closed and grants nothing
  not_holder,        // held by another holder
  stale,             // held under a larger fence; revoke(): under another fence
  expired,           // not held: the lease expired, or the hold was released
  max_keys,          // EngineOptions::keys_max is reached
  max_waiters,       // EngineOptions::waiters_max is reached for this key
  max_holds,         // EngineOptions::holds_max is reached
  max_client_holds,  // EngineOptions::holds_per_client_max is reached for this session or name
  limit_mismatch,    // the semaphore has another limit
  already_enqueued,  // this session is in this key's queue, or has a grant it has not awaited
  not_enqueued,      // this session has no place to await
  storage,           // the journal rejects the event: the disk is full, or has failed
  not_leader,        // another server leads
  fences_exhausted,  // the shard has granted 2^53 fences
  invalid_key,       // empty, longer than 256 bytes, not UTF-8, or with a control character
  invalid_holder,    // a name that breaks the rules of a key, or a session id of 2^56 or more
  invalid_ttl,       // zero or negative
  invalid_wait,      // negative
  invalid_limit,     // zero, more than 2,147,483,647, or not 1 for a lock
  mode_mismatch,     // this name holds the lock in the other mode
  permits_mismatch,  // this name holds the semaphore with another number of permits
  invalid_mode,      // a semaphore has no shared mode
  invalid_permits,   // zero, more than the limit, or not 1 for a lock
  invalid_set,       // no key, more than 64, or a key twice
  invalid_note,      // a note, client name, admin or reason of more than 256 bytes, or a peer of
                     // more than 64; or not UTF-8, or with a control character
};

// Whether a renewal or a release found that the hold does not exist.
inline bool is_not_held(Outcome outcome) {
  return outcome == Outcome::expired || outcome == Outcome::stale || outcome == Outcome::not_holder;
}

// A short phrase for people, such as "the wait timed out".
std::string_view describe(Outcome outcome) noexcept;

// Identifies one client connection, or another owner of places in queues that end with it.
// From 1 to 2^56 - 1; 0 is no session.
using SessionId = std::uint64_t;
inline constexpr SessionId kSessionIdMax = (SessionId{1} << 56) - 1;

// How a client identifies itself, and its address. Shown to people; no rule depends on it. Unknown
// fields are empty. All holds and places of a session share one object.
struct ClientIdentity {
  std::string name;
  std::string peer;  // "10.0.0.7:51234"
  std::string note;

  friend bool operator==(const ClientIdentity&, const ClientIdentity&) = default;
};
using ClientRef = std::shared_ptr<const ClientIdentity>;

// A ClientIdentity that does not own its strings.
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

// The owner's record of one session. Used by one thread at a time. The engine adds each shard that
// the session uses to `shards`; Batch::end_session() visits only those.
struct Session {
  SessionId id = 0;
  std::uint64_t shards = 0;
  // Applies to later requests; null: not identified. Its strings must be UTF-8 without control
  // characters and within their limits, else requests end with invalid_note.
  ClientRef client{};
};

// The owner of a hold or of a place in a queue: a name, or the secret of one session. A repeated
// request with a name, or with a secret that the client chose, returns the existing grant. Any
// other secret is made for one grant and is never repeated. No name equals a secret. A view: it
// must not outlive the name it was made from.
class Holder {
 public:
  Holder(std::string_view name) : name_(name) {}    // NOLINT: a name is a holder
  Holder(const std::string& name) : name_(name) {}  // NOLINT
  Holder(const char* name) : name_(name) {}         // NOLINT
  // `session` is null for a secret whose session has ended, as after a restart.
  Holder(Session* session, std::uint64_t secret) : session_(session), secret_(secret) {
    if (session != nullptr) session_id_ = session->id;
    is_secret_ = true;
  }
  static Holder of_secret(std::uint64_t secret, SessionId session_id = 0) {
    Holder holder(nullptr, secret);
    holder.session_id_ = session_id;
    return holder;
  }

  // This holder, with its secret marked as chosen by the client.
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
