// Many requests, made durable together.
//
// A thread that serves many clients executes what arrived in one turn of its loop as one batch:
// each call answers at once, and commit() hands what they caused to the journal, once. The answers
// themselves rest on the position that commit() returns: nobody may be told of them before the
// engine says that it is durable. Listeners hear of the waits that the batch ended.
//
//   lockd::Batch batch(engine);
//   for (const Request& r : arrived) answers.push_back(batch.acquire(r.acquire, &listener, r.id));
//   engine.wait_durable(batch.commit());
//
// Used by one thread at a time, and usable again after commit(). Any number of batches may be open.
// A listener that is told within commit() may use the batch: that is for the next commit().
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

// What a thread has done and not yet committed, over all shards.
struct Turn {
  Position position = 0;                   // what all of it rests on
  Position answers = 0;                    // what its answers since take_position() rest on
  Time earliest = Time::never();           // the earliest deadline that it set
  std::vector<WaitResult> wait_results{};  // the waits that it ended
  // Requests for several keys that it has brought nearer to their turn, or ended in one of them.
  std::vector<std::shared_ptr<KeySet>> sets{};
};

}  // namespace detail

struct Answer {
  Outcome outcome = Outcome::ok;
  Grant grant{};  // when ok
  WaitId wait{};  // when queued: for cancel()
};

class Batch {
 public:
  explicit Batch(Engine& engine);
  ~Batch();  // commits what is left
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // A queued request is settled through `listener`, which outlives the wait; `id` is handed back to
  // it, and should be unique among the listener's waits. Without a listener nothing is queued: a
  // request that would wait is answered `held`.
  Answer acquire(const AcquireRequest& request, Listener* listener = nullptr, std::uint64_t id = 0,
                 Conflict* conflict = nullptr);
  Answer renew(const HoldId& hold, std::optional<Duration> ttl = {});
  Outcome release(const HoldId& hold);

  // Several keys in one step: as Engine's. A wait is settled through the listener as one, and given
  // up by cancel() as one. `conflicts`, if given, tells of each key that is in the way.
  Answer acquire_all(const AcquireSetRequest& request, Listener* listener = nullptr,
                     std::uint64_t id = 0, std::vector<SetConflict>* conflicts = nullptr);
  SetResult renew_all(const SetId& holds, std::optional<Duration> ttl = {});
  ReleaseSetResult release_all(const SetId& holds);
  // As withdraw(), whole or not at all.
  bool withdraw_all(const SetId& holds);
  // Which keys stand in the way of such a request by now.
  std::vector<SetConflict> explain_all(const AcquireSetRequest& request);

  // For an admin: as Engine's. With very many holders it lets others in between; whoever is granted
  // the key meanwhile keeps it.
  RevokeResult revoke(const RevokeRequest& request);
  Outcome resize(std::string_view key, std::uint32_t limit, std::string_view reason,
                 std::string_view by);

  // Takes back a grant that nobody was told of, because its client left while it was on its way,
  // and passes it on as if its session had ended. Not if its lease was moved since: a client that
  // lost its connection and asked again under the same name got the same grant, with the lease
  // refreshed, and must keep it. False if so, or if the hold has ended.
  bool withdraw(const HoldId& hold);

  // Two-phase acquisition. The holder is a secret of `session`; await_turn() is called by the same.
  Answer enqueue(const EnqueueRequest& request);
  Answer await_turn(Session& session, Kind kind, std::string_view key, Duration wait,
                    Listener* listener, std::uint64_t id = 0);

  // Gives up a wait, which is then settled as cancelled. False if it had ended before.
  bool cancel(const WaitId& wait);

  // The session leaves every queue at once; its holds are released and passed on, or, with
  // `keep_holds`, left to their leases, but for those that it was never told of.
  void end_session(Session& session, bool keep_holds = false);
  // And the same in pieces: about `budget` steps of it, which are taken from that. True when
  // nothing is left; until then it is called again, each time alike, and the session asks for
  // nothing more.
  bool end_session(Session& session, bool keep_holds, int* budget);
  // Likewise for a session that may come back: it leaves every queue, and its holds stay its own.
  // Until resume() it asks for nothing; forget() is called now and then, until it returns true:
  // leases have ended its holds.
  bool end_places(Session& session, int* budget);
  bool forget(Session& session);
  // It is back, by its id, whoever had it before.
  void resume(Session& session);

  // Whether the session holds or waits for anything.
  bool has_state(const Session& session);
  // Whether it holds anything that it was told of.
  bool has_acknowledged_hold(const Session& session);

  FenceStatus fence(std::string_view key);
  // Who holds the key and how many wait; false when nobody holds it.
  bool explain(Kind kind, std::string_view key, Conflict* conflict);
  // The hold of the key whose lease ends last; nothing when the key is free. Only the latest
  // kEntriesMax grants are compared, which bounds the time under the shard's lock.
  std::optional<HoldStatus> last_to_expire(Kind kind, std::string_view key);
  // As Engine::status.
  std::optional<KeyStatus> status(Kind kind, std::string_view key, std::size_t entries_max = 16);

  // Has the next answer rest on this engine's leading, where several share a journal: it is durable
  // when something that is appended from now on is in the journal. So whoever has been deposed,
  // however long it stood still and whatever its clock says, never gives that answer.
  void barrier();

  // What the answers since the last call rest on: for who tells each client as soon as it can,
  // instead of all of them when the whole batch is durable.
  Position take_position() { return std::exchange(turn_.answers, 0); }

  // Ends the batch. The answers given may be told when the returned position is durable.
  Position commit();

 private:
  template <typename Look>
  bool any_shard(const Session& session, Look look);
  template <typename Result, typename Operation>
  Result with_all(const std::vector<SetItem>& keys, Operation operation);
  template <typename Request, typename Operation>
  Answer take(const Request& request, Operation operation);

  detail::EngineCore& core_;
  detail::Turn turn_;
};

}  // namespace lockd
