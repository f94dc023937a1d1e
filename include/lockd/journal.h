// Journal: the interface to durable storage.
//
// The engine appends events in order and acknowledges none before the journal reports it as
// durable. Events are outcomes, never requests, so replay needs no clock, randomness or rules:
// applying each event in order (LockTable::apply) rebuilds the table.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "lockd/types.h"

namespace lockd {

enum class EndCause : std::uint8_t {
  released,      // by its holder
  expired,       // its lease
  disconnected,  // its session ended
  revoked,       // an admin ended it
};

// A change of one hold or key. The views are valid only during the call that passes the event.
struct Event {
  enum class Type : std::uint8_t {
    granted,      // a hold began: every field except `cause`
    resized,      // a held semaphore has a new limit until it is idle: key, limit
    renewed,      // a hold's lease was moved: kind, key, fence, ttl, expires_at
    ended,        // a hold ended: kind, key, fence, cause
    fence_floor,  // all fences up to `fence` may have been granted; 0: a mark that changes nothing
  };

  Type type;
  Kind kind = Kind::lock;
  EndCause cause = EndCause::released;
  std::uint32_t limit = 1;
  std::uint32_t first_limit = 0;  // a resized semaphore's original limit; else 0
  std::string_view key{};
  Holder holder = Holder::of_secret(0);
  ClientView client{};
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  Fence fence = 0;
  Duration ttl{};
  Time expires_at{};
};

// A position in the journal. Larger is later; 0 precedes all events.
using Position = std::uint64_t;

// Storage that has not completed an operation for this long is considered hung.
inline constexpr Duration kStorageWaitMax = std::chrono::seconds(5);

class Journal {
 public:
  enum class State : std::uint8_t {
    accepting,
    full,       // no space for grants; releases, renewals and expiries still fit
    scarce,     // no space for renewals either
    exhausted,  // no space for releases either; expiries and their results wait for space
    following,  // another engine leads and appends; only before this engine leads
    failed,     // final: events after the last durable position will never be durable
  };

  virtual ~Journal() = default;

  // Passes all durable events of earlier runs to `apply`, in order. Called once, before the first
  // append(). Returns false if the journal is new.
  virtual bool recover(const std::function<void(const Event&)>& apply) = 0;

  // Copies `events` and returns the position after them. A crash keeps all of up to kKeysPerSetMax
  // events or none. Called by any thread under the locks of the events' shards, so it must not wait
  // for storage or call the engine. Events of one key arrive in order. An exception terminates the
  // process, because the engine has already applied the events.
  virtual Position append(std::span<const Event> events) = 0;

  // Requests that `position` becomes durable soon. Called without locks.
  virtual void commit(Position position) = 0;

  // Results up to this position may be acknowledged. A shared journal returns a smaller position
  // than before while it is not certain that its engine still leads; progressed() reports when it
  // is certain again.
  virtual Position durable() const noexcept = 0;
  virtual State state() const noexcept = 0;

  // Whether so long a backlog is unwritten that clients should wait for their answers before they
  // send more requests. The journal rejects nothing for this reason.
  virtual bool is_behind() const noexcept { return false; }
  // The age of the oldest pending storage operation; zero if there is none.
  virtual Duration storage_wait() const noexcept { return {}; }
  // Whether the disk is full to any degree.
  static bool is_full(State state) {
    return state == State::full || state == State::scarce || state == State::exhausted;
  }

  // The engine's side. The journal makes one call at a time, on its own thread, without any lock
  // that append(), commit(), durable() or state() take.
  class Source {
   public:
    // durable() or state() has changed.
    virtual void progressed() noexcept = 0;

    // For a snapshot: appends events that describe the next few hundred keys, each under its
    // shard's lock, and each shard's largest fence; from the start, or after the previous call.
    // Returns false after the last piece: the events appended since the start then rebuild the
    // whole engine.
    virtual bool describe_some(bool from_start) = 0;

    // Whether a whole snapshot would take at most about `size` bytes.
    virtual bool fits(std::size_t size) = 0;

    // While `following`: applies an event that the leader appended. Clocks of different servers are
    // not comparable, so `expires_at` is Time{} plus the remaining lease. Returns false if the
    // event contradicts the engine's state: the journal is damaged.
    virtual bool apply(const Event& event) = 0;

    // Makes this engine the leader, which appends. Each lease has been running since its last event
    // was applied, but at least `lease_min` (or the whole lease, if shorter) remains, so that
    // holders that had no leader to renew with can do so now. All answers depend on `from` or a
    // later position. The state leaves `following` after this returns.
    virtual void lead(Position from, Duration lease_min) = 0;

   protected:
    ~Source() = default;
  };

  // The engine attaches itself after recovery and detaches (null) in its destructor. Afterwards the
  // journal makes no more calls. Not called by the source itself.
  virtual void attach(Source* source) = 0;
};

}  // namespace lockd
