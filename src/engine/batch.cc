#include "lockd/batch.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/engine_core.h"

namespace lockd {

using detail::EngineCore;
using detail::Turn;
using OperationKind = EngineCore::OperationKind;

namespace {

using TableRefs = std::vector<SetRules::TableRef>;

// Executes an operation on one key, under the lock of its shard.
template <typename Result, typename Operation>
Result with_key(EngineCore& core, Turn& turn, OperationKind kind, std::string_view key,
                const Operation& operation) {
  if (core.has_no_room(kind)) return {Outcome::storage};
  const ShardRef at_shard = core.shard_of(key, turn);
  const LockTable::At at = core.now_at(at_shard);
  Shard::Access table(at_shard.shard, turn);
  if (Outcome no = core.refusal(kind); no != Outcome::ok) return {no};
  return operation(*table, at);
}

// Executes an operation on several keys, under the locks of all their shards. Not inlined, because
// that would slow down the path of one key.
template <typename Result, typename Operation>
[[gnu::noinline]] Result with_keys(EngineCore& core, Turn& turn, OperationKind kind,
                                   const KeyItems& keys, const Operation& operation) {
  if (core.has_no_room(kind)) return {Outcome::storage};
  TableRefs refs;
  std::vector<std::uint32_t> numbers;
  for (const KeyItem& item : keys) {
    const ShardRef at_shard = core.shard_of(item.key, turn);
    refs.push_back({&ShardLocks::table_of(at_shard.shard), at_shard.number, at_shard.key_hash});
    numbers.push_back(at_shard.number);
  }
  ShardLocks locks(core.shards().select(std::move(numbers)), turn);
  if (Outcome no = core.refusal(kind); no != Outcome::ok) return {no};
  SetRules rules(core.time(), [&] { locks.flush(); });
  return operation(rules, refs);
}

// Executes `one` if the request has one key, `several` otherwise.
template <typename Result, typename Request, typename One, typename Several>
Result execute(EngineCore& core, Turn& turn, OperationKind kind, const Request& request,
               const One& one, const Several& several) {
  const KeyItems& keys = request.keys;
  if (keys.size() == 1) return with_key<Result>(core, turn, kind, keys.front().key, one);
  if (Outcome bad = SetRules::check(request); bad != Outcome::ok) return {bad};
  return with_keys<Result>(core, turn, kind, keys, several);
}

// Executes a request for one key that may create it. If the key budget is exhausted, reclaims an
// idle key of any shard.
template <typename Operation>
[[gnu::always_inline]] inline Answer grant_or_queue(EngineCore& core, Turn& turn,
                                                    const AcquireRequest& request,
                                                    Listener* listener, std::uint64_t id,
                                                    const Operation& operation) {
  if (core.has_no_room(OperationKind::grant)) return {Outcome::storage};
  const ShardRef at_shard = core.shard_of(request.keys.front().key, turn);
  if (Session* session = request.holder.session())
    session->shards |= std::uint64_t{1} << at_shard.number;
  LockTable::Reply reply;
  KeyUnit unit;
  do {
    const LockTable::At at = core.now_at(at_shard);
    Shard::Access table(at_shard.shard, turn);
    reply.outcome = core.refusal(OperationKind::grant);
    if (reply.outcome == Outcome::ok) reply = operation(*table, at, std::move(unit));
  } while (reply.outcome == Outcome::max_keys && (unit = core.find_unit()));
  if (reply.outcome == Outcome::max_keys) {
    core.count_max_keys_refusal();
    Shard::Access(at_shard.shard, turn)
        ->record_max_keys(core.time(), request_for(request.keys.front(), request));
  }
  return {reply.outcome, reply.grant, {listener, id, reply.slot, at_shard.number}};
}

// Whether `condition` holds for the table of any shard that the session has used.
template <typename Condition>
bool any_shard(EngineCore& core, Turn& turn, const Session& session, const Condition& condition) {
  for (std::uint64_t left = session.shards; left != 0; left &= left - 1) {
    Shard::Access table(*core.shards().find(static_cast<std::uint32_t>(std::countr_zero(left))),
                        turn);
    table->advance(core.time(), Shard::kStepsPerLocking);
    if (condition(*table)) return true;
  }
  return false;
}

}  // namespace

Batch::Batch(Engine& engine) : core_(*engine.core_) {}

Batch::~Batch() {
  // Listeners may use the batch.
  while (turn_.position != 0 || !turn_.wait_results.empty() || !turn_.sets.empty()) commit();
}

Answer Batch::acquire(const AcquireRequest& request, Listener* listener, std::uint64_t id,
                      std::vector<Conflict>* conflicts) {
  if (request.keys.size() != 1) return acquire_several(request, listener, id, conflicts);
  const auto acquire = [&](LockTable& table, LockTable::At at, KeyUnit unit) {
    return table.acquire(at, request_for(request.keys.front(), request), listener, id,
                         std::move(unit), conflicts);
  };
  return grant_or_queue(core_, turn_, request, listener, id, acquire);
}

Answer Batch::acquire_several(const AcquireRequest& asked, Listener* listener, std::uint64_t id,
                              std::vector<Conflict>* conflicts) {
  if (Outcome bad = SetRules::check(asked); bad != Outcome::ok) return {bad};
  AcquireRequest request = asked;
  request.wait = std::min(request.wait, core_.set_wait_max());
  std::vector<KeyUnit> units;
  const auto acquire = [&](SetRules& rules, const TableRefs& refs) {
    return rules.acquire(request, refs, listener, id, units, conflicts);
  };
  LockTable::Reply reply;
  while (true) {
    reply = with_keys<LockTable::Reply>(core_, turn_, OperationKind::grant, request.keys, acquire);
    if (reply.outcome != Outcome::max_keys) break;
    KeyUnit unit = core_.find_unit_at_once();
    if (!unit) break;
    units.push_back(std::move(unit));
  }
  if (reply.outcome == Outcome::max_keys) core_.count_max_keys_refusal();
  const std::uint32_t shard = core_.shards().of(request.keys.front().key).number;
  return {reply.outcome, reply.grant, {listener, id, reply.slot, shard}};
}

Answer Batch::renew(const HoldId& hold, std::optional<Duration> ttl, std::size_t* missing) {
  std::size_t first_missing = 0;
  const LockTable::Reply reply = execute<LockTable::Reply>(
      core_, turn_, OperationKind::renewal, hold,
      [&](LockTable& table, LockTable::At at) {
        return table.renew(at, hold_for(hold.keys.front(), hold), ttl);
      },
      [&](SetRules& rules, const TableRefs& refs) {
        return rules.renew(hold, refs, ttl, &first_missing);
      });
  if (missing != nullptr) *missing = first_missing;
  return {reply.outcome, reply.grant};
}

Outcome Batch::release(const HoldId& hold, std::uint64_t* released) {
  return execute<Outcome>(
      core_, turn_, OperationKind::release, hold,
      [&](LockTable& table, LockTable::At at) {
        const Outcome outcome = table.release(at, hold_for(hold.keys.front(), hold));
        *released = outcome == Outcome::ok ? 1 : 0;
        return outcome;
      },
      [&](SetRules& rules, const TableRefs& refs) {
        *released = rules.release(hold, refs);
        return Outcome::ok;
      });
}

bool Batch::withdraw(const HoldId& hold) {
  const auto outcome_of = [](bool is_done) { return is_done ? Outcome::ok : Outcome::expired; };
  const Outcome outcome = execute<Outcome>(
      core_, turn_, OperationKind::nothing, hold,
      [&](LockTable& table, LockTable::At at) {
        return outcome_of(table.withdraw(at, hold_for(hold.keys.front(), hold)));
      },
      [&](SetRules& rules, const TableRefs& refs) {
        return outcome_of(rules.withdraw(hold, refs));
      });
  return outcome == Outcome::ok;
}

std::vector<Conflict> Batch::explain(const AcquireRequest& request) {
  std::vector<Conflict> conflicts;
  execute<Outcome>(
      core_, turn_, OperationKind::nothing, request,
      [&](LockTable& table, LockTable::At at) {
        const KeyItem& item = request.keys.front();
        Conflict conflict;
        if (table.explain(at, item.kind, item.key, &conflict)) {
          conflicts.push_back(std::move(conflict));
        }
        return Outcome::ok;
      },
      [&](SetRules& rules, const TableRefs& refs) {
        rules.explain(request, refs, conflicts);
        return Outcome::ok;
      });
  return conflicts;
}

Answer Batch::enqueue(const AcquireRequest& request) {
  if (request.keys.size() != 1) return {Outcome::invalid_set};
  const auto enqueue = [&](LockTable& table, LockTable::At at, KeyUnit unit) {
    return table.enqueue(at, request_for(request.keys.front(), request), std::move(unit));
  };
  return grant_or_queue(core_, turn_, request, nullptr, 0, enqueue);
}

Answer Batch::await_turn(Session& session, Kind kind, std::string_view key, Duration wait,
                         Listener* listener, std::uint64_t id) {
  if (core_.has_no_room(OperationKind::turn)) return {Outcome::storage};
  const ShardRef at_shard = core_.shard_of(key, turn_);
  const LockTable::At at = core_.now_at(at_shard);
  Shard::Access table(at_shard.shard, turn_);
  const Outcome refusal = core_.refusal(OperationKind::turn);
  if (refusal != Outcome::ok) return {refusal};
  const auto reply = table->await_turn(at, session.id, kind, key, wait, listener, id);
  return {reply.outcome, reply.grant, {listener, id, reply.slot, at_shard.number}};
}

// Works in pieces, because other requests wait for the lock. Holds that began after the first piece
// have larger fences and are not revoked.
RevokeResult Batch::revoke(const RevokeRequest& request) {
  if (core_.has_no_room(OperationKind::release)) return {Outcome::storage};
  constexpr std::size_t kHoldsPerPiece = Shard::kStepsPerLocking;
  const ShardRef at_shard = core_.shard_of(request.key, turn_);
  LockTable::Revocation revocation{
      request.kind, request.key, request.fence, kFenceMax, {request.reason, request.by}};
  RevokeResult result;
  for (std::size_t ended = kHoldsPerPiece; ended == kHoldsPerPiece;) {
    ended = 0;
    const LockTable::At at = core_.now_at(at_shard);
    Shard::Access table(at_shard.shard, turn_);
    if (Outcome no = core_.refusal(OperationKind::release); no != Outcome::ok) {
      result.outcome = no;
      return result;
    }
    revocation.last = std::min(revocation.last, table->last_fence());
    const auto note = [&](const Hold& hold) {
      ++ended;
      if (result.holds.size() >= kEntriesMax) return;
      result.holds.push_back(EngineCore::status_of(*table, hold, table->now()));
    };
    const Outcome outcome = table->revoke(at, revocation, kHoldsPerPiece, note);
    if (result.count == 0) result.outcome = outcome;
    result.count += ended;
  }
  return result;
}

Outcome Batch::resize(std::string_view key, std::uint32_t limit, std::string_view reason,
                      std::string_view by) {
  return with_key<Outcome>(core_, turn_, OperationKind::grant, key,
                           [&](LockTable& table, LockTable::At at) {
                             return table.resize(at, key, limit, {reason, by});
                           });
}

bool Batch::cancel(const WaitId& wait) {
  Shard* const shard = core_.shards().find(wait.shard);
  if (shard == nullptr) return false;
  return Shard::Access(*shard, turn_)->cancel(core_.time(), wait.slot, wait.listener, wait.id);
}

void Batch::end_session(Session& session, bool keep_holds) {
  int budget = 0;
  do {
    budget = std::numeric_limits<int>::max();
  } while (!end_session(session, keep_holds, &budget));
}

// Round-robin over the shards: a place in the queue of one shard must not wait for many holds of
// another.
bool Batch::end_session(Session& session, bool keep_holds, int* budget) {
  while (session.shards != 0 && *budget > 0) {
    const int share =
        std::clamp(*budget / std::popcount(session.shards), 1, Shard::kStepsPerLocking);
    for (std::uint64_t left = session.shards; left != 0; left &= left - 1) {
      Shard& shard = *core_.shards().find(static_cast<std::uint32_t>(std::countr_zero(left)));
      int steps = share;
      const bool is_done =
          Shard::Access(shard, turn_)->end_session(core_.time(), session.id, keep_holds, &steps);
      if (is_done) session.shards &= ~(left & -left);
      *budget -= std::max(share - steps, 1);
    }
  }
  return session.shards == 0;
}

bool Batch::has_state(const Session& session) {
  const auto has = [&](const LockTable& table) { return table.sessions().has(session.id); };
  return any_shard(core_, turn_, session, has);
}

bool Batch::has_acknowledged_hold(const Session& session) {
  const auto has = [&](const LockTable& table) {
    return table.sessions().has_acknowledged_hold(session.id);
  };
  return any_shard(core_, turn_, session, has);
}

FenceStatus Batch::fence(std::string_view key) {
  const ShardRef at_shard = core_.shard_of(key, turn_);
  return Shard::Access(at_shard.shard, turn_)->fence(core_.now_at(at_shard), key);
}

std::optional<HoldStatus> Batch::last_to_expire(Kind kind, std::string_view name) {
  const ShardRef at_shard = core_.shard_of(name, turn_);
  Shard::Access table(at_shard.shard, turn_);
  const Key* key = table->find(core_.now_at(at_shard), kind, name);
  if (key == nullptr || key->holds.empty()) return {};
  const Hold* last = key->holds.back();
  const Hold* hold = last;
  for (std::size_t left = kEntriesMax; hold != nullptr && left > 0; --left) {
    if (hold->deadline > last->deadline) last = hold;
    hold = key->holds.prev(hold);
  }
  return EngineCore::status_of(*table, *last, std::max(table->now(), core_.now()));
}

std::optional<KeyStatus> Batch::status(Kind kind, std::string_view name, std::size_t entries_max) {
  const ShardRef at_shard = core_.shard_of(name, turn_);
  Shard::Access table(at_shard.shard, turn_);
  const Key* key = table->find(core_.now_at(at_shard), kind, name);
  if (key == nullptr) return {};
  const Time now = std::max(table->now(), core_.now());
  return EngineCore::status_of(*table, *key, now, entries_max);
}

void Batch::barrier() {
  turn_.answers = std::max(turn_.answers, core_.journal_source().append_mark());
  turn_.position = std::max(turn_.position, turn_.answers);
}

Position Batch::commit() {
  core_.wake_sweeper(turn_);
  return core_.commit(turn_);
}

}  // namespace lockd
