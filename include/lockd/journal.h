// The interface to durable storage.
//
// The engine appends what happened, in order, and tells nobody of it before the journal says that
// it is durable. The journal holds outcomes, never requests, so replaying it needs no clock, no
// randomness and no rules: `LockTable::apply` of each event, in order, gives the table back.
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
  expired,       // the lease ran out
  disconnected,  // its session ended
  revoked,       // an admin ended it
};

// One thing that happened to one hold, or to a key. The views are valid only during the call that
// passes it.
struct Event {
  enum class Type : std::uint8_t {
    granted,      // a hold began: every field but `cause`
    resized,      // a semaphore that is held has another limit, until it is idle: key, limit
    renewed,      // its lease was moved: kind, key, fence, ttl, expires_at
    ended,        // it ended: kind, key, fence, cause
    fence_floor,  // every fence up to and including `fence` may have been granted; of 0, a mark
  };

  Type type;
  Kind kind = Kind::lock;
  EndCause cause = EndCause::released;
  std::uint32_t limit = 1;
  std::uint32_t first_limit = 0;  // of a semaphore that was resized: its first acquirer's; else 0
  std::string_view key{};
  Holder holder = Holder::of_secret(0);
  ClientView client{};  // who the holder's client says it is
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  Fence fence = 0;
  Duration ttl{};
  Time expires_at{};
};

// A place in the journal. Larger is later; 0 is before everything.
using Position = std::uint64_t;

// Storage that has not answered for so long hangs.
inline constexpr Duration kStorageWaitMax = std::chrono::seconds(5);

class Journal {
 public:
  enum class State : std::uint8_t {
    accepting,
    full,       // no room for new grants; releases, renewals and expiries still fit
    scarce,     // no room for renewals either
    exhausted,  // no room for releases either; what ends by itself waits for room, and its answers
    following,  // another engine appends; this one is told, until it leads. Only at the beginning
    failed,     // final: nothing appended since the last durable position will ever be durable
  };

  virtual ~Journal() = default;

  // Passes everything that earlier runs made durable to `apply`, in order. Called once, before
  // anything is appended. Returns false if there was nothing: the journal is new.
  virtual bool recover(const std::function<void(const Event&)>& apply) = 0;

  // Takes a copy of `events` and returns the position behind them. Of up to kKeysPerSetMax events
  // a crash leaves all or none. Called with the locks of their shards held, by any thread: it must
  // not wait for storage, nor call back into the engine. Events of one key arrive in the order in
  // which they happened. To throw is to end the process: what they tell has happened.
  virtual Position append(std::span<const Event> events) = 0;

  // Somebody waits for `position`: make it durable soon. Called with no lock held.
  virtual void commit(Position position) = 0;

  // Everything up to here may be told. It may be less than before, while a journal that is shared
  // is not certain that nobody else leads; progressed() says when it is certain again.
  virtual Position durable() const noexcept = 0;
  virtual State state() const noexcept = 0;

  // So much has been appended and is not written that whoever waits for an answer should ask for no
  // more before it has that. Nothing is refused for it.
  virtual bool is_behind() const noexcept { return false; }
  // How long the storage has not answered by now; zero when nothing is asked of it.
  virtual Duration storage_wait() const noexcept { return {}; }
  // Whether its disk is full, to whatever degree.
  static bool is_full(State state) {
    return state == State::full || state == State::scarce || state == State::exhausted;
  }

  // What the engine offers its journal. All are called from a thread of the journal's, one call at
  // a time, with no lock held that append(), commit(), durable() or state() take.
  class Source {
   public:
    // durable() or state() has changed.
    virtual void progressed() noexcept = 0;

    // Appends the next few hundred keys as they are, each under its shard's lock, and what the
    // fences have come to; from the beginning, or on from the last call. False when that was all:
    // what has been appended since the beginning then tells of everything, without what came
    // before it.
    virtual bool describe_some(bool from_start) = 0;

    // Whether all that it would append, from the beginning, comes to about `size` bytes or less.
    virtual bool fits(std::size_t size) = 0;

    // While the state is `following`: what the engine that leads has appended, in order. Its clock
    // means nothing here, so `expires_at` counts from the telling: what was left of the lease then,
    // behind Time{}. False when it contradicts what is there: the journal is not to be trusted.
    virtual bool apply(const Event& event) = 0;

    // Ends the following: from now on this engine appends. Of every lease that much has passed as
    // has since it was told; but `lease_min` is left of it, or all of it if that is less, so that
    // whoever could not renew it meanwhile can. All that it answers rests on `from`, at least. The
    // state leaves `following` when this has returned.
    virtual void lead(Position from, Duration lease_min) = 0;

   protected:
    ~Source() = default;
  };

  // Set by the engine when it has recovered, and taken back (by null) when it closes; the journal
  // makes no call once that has returned. Not called by the source itself.
  virtual void attach(Source* source) = 0;
};

}  // namespace lockd
