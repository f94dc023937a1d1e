// Batch executes many requests without blocking and makes them durable with one journal commit.
//
// A server thread executes the requests of one turn of its event loop as one batch. Each call
// returns its answer at once. The answers depend on the position that commit() returns: the caller
// must not send them before the engine reports that position as durable. commit() notifies the
// listeners of the waits that the batch ended.
//
//   lockd::Batch batch(engine);
//   for (const Request& r : arrived) answers.push_back(batch.acquire(r.acquire, &listener, r.id));
//   engine.wait_durable(batch.commit());
//
// Used by one thread at a time; reusable after commit(). Any number of batches may be open. A
// listener that is called inside commit() may use the batch; the next commit() covers its requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lockd/engine.h"
#include "lockd/journal.h"
#include "lockd/requests.h"

namespace lockd {

struct KeySet;

namespace detail {

// The uncommitted effects of one thread, over all shards.
struct Turn {
  Position position = 0;                   // all effects are durable at this position
  Position answers = 0;                    // the answers since take_position() are durable at this
  Time earliest = Time::never();           // the earliest new deadline
  std::vector<WaitResult> wait_results{};  // the waits that ended
  // Requests for several keys that may be grantable now, or that ended in one of their queues.
  std::vector<std::shared_ptr<KeySet>> sets{};
};

}  // namespace detail

struct Answer {
  Outcome outcome = Outcome::ok;
  Grant grant{};  // if ok
  WaitId wait{};  // if queued: for cancel()
};

class Batch {
 public:
  explicit Batch(Engine& engine);
  ~Batch();  // commits
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // A queued request ends with one WaitResult for `listener`, which must outlive the wait. `id` is
  // copied to the result and should be unique among the listener's waits. Without a listener the
  // request is never queued: a key in use then yields `held`. `conflicts`, if given, receives each
  // key that prevents the grant.
  Answer acquire(const AcquireRequest& request, Listener* listener = nullptr, std::uint64_t id = 0,
                 std::vector<Conflict>* conflicts = nullptr);
  // Renews all holds or none. If one is not held (see is_not_held()), `missing` receives the index
  // of the first such key.
  Answer renew(const HoldId& hold, std::optional<Duration> ttl = {},
               std::size_t* missing = nullptr);
  // Releases the keys that are held.
  ReleaseResult release(const HoldId& hold) {
    std::uint64_t released = 0;
    const Outcome outcome = release(hold, &released);
    return {outcome, released};
  }
  // The keys that prevent a grant of the request at this time. One key is listed if it is held.
  std::vector<Conflict> explain(const AcquireRequest& request);

  // For admins, as in Engine. revoke() of very many holds releases the shard's lock in between; it
  // does not end holds that are granted meanwhile.
  RevokeResult revoke(const RevokeRequest& request);
  Outcome resize(std::string_view key, std::uint32_t limit, std::string_view reason,
                 std::string_view by);

  // Revokes a grant that was not delivered because its client disconnected, as if its session had
  // ended. Returns false if the hold has ended, or if its lease was renewed since the grant: a
  // client that reconnected and repeated the request under the same name must keep it. Withdraws
  // all holds of several keys or none.
  bool withdraw(const HoldId& hold);

  // Two-phase acquisition joins the queue now and waits later, or never. The place ends with its
  // session. At most one place per session, kind and key. The holder is a secret of the session
  // that calls await_turn(). Several keys yield invalid_set.
  Answer enqueue(const AcquireRequest& request);
  Answer await_turn(Session& session, Kind kind, std::string_view key, Duration wait,
                    Listener* listener, std::uint64_t id = 0);

  // Ends a wait with the outcome cancelled. Returns false if the wait had already ended.
  bool cancel(const WaitId& wait);

  // Removes the session from every queue and releases its holds. With `keep_holds`, acknowledged
  // holds remain until their leases expire.
  void end_session(Session& session, bool keep_holds = false);
  // The same in pieces: executes about `*budget` steps and subtracts them. Returns true when the
  // session has ended. Until then the caller repeats the call with the same arguments and sends no
  // other request for the session.
  bool end_session(Session& session, bool keep_holds, int* budget);

  // Whether the session has holds or places.
  bool has_state(const Session& session);
  // Whether the session has a hold that was delivered to it.
  bool has_acknowledged_hold(const Session& session);

  FenceStatus fence(std::string_view key);
  // The hold of the key whose lease ends last; none if the key is free. Compares only the latest
  // kEntriesMax grants, which bounds the time under the shard's lock.
  std::optional<HoldStatus> last_to_expire(Kind kind, std::string_view key);
  std::optional<KeyStatus> status(Kind kind, std::string_view key, std::size_t entries_max = 16);

  // With a shared journal, makes the next answer depend on this engine's leadership: the answer is
  // durable once an event that is appended now is durable. A deposed leader therefore never sends
  // the answer, no matter how long it was paused or what its clock says.
  void barrier();

  // The position at which the answers since the last call are durable, for servers that send each
  // answer as early as possible instead of waiting for the whole batch.
  Position take_position() { return std::exchange(turn_.answers, 0); }

  // Ends the batch. The caller may send the answers once the returned position is durable.
  Position commit();

 private:
  Outcome release(const HoldId& hold, std::uint64_t* released);
  Answer acquire_several(const AcquireRequest& asked, Listener* listener, std::uint64_t id,
                         std::vector<Conflict>* conflicts);

  detail::EngineCore& core_;
  detail::Turn turn_;
};

}  // namespace lockd
