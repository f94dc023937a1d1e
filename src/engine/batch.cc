#include "lockd/batch.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/engine_core.h"

namespace lockd {

using detail::EngineCore;
using OperationKind = EngineCore::OperationKind;

Batch::Batch(Engine& engine) : core_(*engine.core_) {}

Batch::~Batch() {
  // Listeners may use the batch.
  while (turn_.position != 0 || !turn_.wait_results.empty() || !turn_.sets.empty()) commit();
}

// Executes a request that may create a key. If the key budget is exhausted, reclaims an idle key of
// any shard.
template <typename Request, typename Operation>
Answer Batch::grant_or_queue(const Request& request, Operation operation) {
  if (core_.has_no_room(OperationKind::grant)) return {Outcome::storage};
  const ShardRef at_shard = core_.shard_of(request.key, turn_);
  if (Session* session = request.holder.session())
    session->shards |= std::uint64_t{1} << at_shard.number;
  LockTable::Reply reply;
  KeyUnit unit;
  do {
    const LockTable::At at = core_.now_at(at_shard);
    Shard::Access table(at_shard.shard, turn_);
    reply.outcome = core_.refusal(OperationKind::grant);
    if (reply.outcome == Outcome::ok) reply = operation(*table, at, std::move(unit));
  } while (reply.outcome == Outcome::max_keys && (unit = core_.find_unit()));
  if (reply.outcome == Outcome::max_keys) {
    core_.count_max_keys_refusal();
    Shard::Access(at_shard.shard, turn_)->record_max_keys(core_.time(), request);
  }
  return {reply.outcome, reply.grant, {nullptr, 0, reply.slot, at_shard.number}};
}

Answer Batch::acquire(const AcquireRequest& request, Listener* listener, std::uint64_t id,
                      Conflict* conflict) {
  Answer answer = grant_or_queue(request, [&](LockTable& table, LockTable::At at, KeyUnit unit) {
    return table.acquire(at, request, listener, id, std::move(unit), conflict);
  });
  answer.wait.listener = listener;
  answer.wait.id = id;
  return answer;
}

// Executes an operation on several keys, under the locks of all their shards.
template <typename Result, typename Operation>
Result Batch::with_all(const std::vector<SetItem>& keys, Operation operation) {
  std::vector<SetRules::TableRef> refs;
  std::vector<std::uint32_t> numbers;
  for (const SetItem& item : keys) {
    const ShardRef at_shard = core_.shard_of(item.key, turn_);
    refs.push_back({&ShardLocks::table_of(at_shard.shard), at_shard.number, at_shard.key_hash});
    numbers.push_back(at_shard.number);
  }
  ShardLocks locks(core_.shards().select(std::move(numbers)), turn_);
  SetRules rules(core_.time(), [&] { locks.flush(); });
  return operation(rules, refs);
}

Answer Batch::acquire_all(const AcquireSetRequest& asked, Listener* listener, std::uint64_t id,
                          std::vector<SetConflict>* conflicts) {
  if (Outcome bad = SetRules::check(asked); bad != Outcome::ok) return {bad};
  if (core_.has_no_room(OperationKind::grant)) return {Outcome::storage};
  AcquireSetRequest request = asked;
  request.wait = std::min(request.wait, core_.set_wait_max());
  std::vector<KeyUnit> units;
  LockTable::Reply reply;
  const auto ask = [&](SetRules& rules, const std::vector<SetRules::TableRef>& refs) {
    if (Outcome no = core_.refusal(OperationKind::grant); no != Outcome::ok)
      return LockTable::Reply{no};
    return rules.acquire(request, refs, listener, id, units, conflicts);
  };
  while (true) {
    reply = with_all<LockTable::Reply>(request.keys, ask);
    if (reply.outcome != Outcome::max_keys) break;
    KeyUnit unit = core_.find_unit_at_once();
    if (!unit) break;
    units.push_back(std::move(unit));
  }
  if (reply.outcome == Outcome::max_keys) core_.count_max_keys_refusal();
  const std::uint32_t shard = core_.shards().of(request.keys.front().key).number;
  return {reply.outcome, reply.grant, {listener, id, reply.slot, shard}};
}

SetResult Batch::renew_all(const SetId& holds, std::optional<Duration> ttl) {
  if (Outcome bad = SetRules::check(holds); bad != Outcome::ok) return {bad};
  if (ttl.has_value() && *ttl <= Duration::zero()) return {Outcome::invalid_ttl};
  if (core_.has_no_room(OperationKind::renewal)) return {Outcome::storage};
  return with_all<SetResult>(holds.keys, [&](SetRules& rules, const auto& refs) -> SetResult {
    if (Outcome no = core_.refusal(OperationKind::renewal); no != Outcome::ok) return {no};
    SetConflict missing;
    const LockTable::Reply reply = rules.renew(holds, refs, ttl, &missing.item);
    SetResult result{reply.outcome, reply.grant};
    if (!result) result.conflicts.push_back(std::move(missing));
    return result;
  });
}

ReleaseSetResult Batch::release_all(const SetId& holds) {
  if (Outcome bad = SetRules::check(holds); bad != Outcome::ok) return {bad};
  if (core_.has_no_room(OperationKind::release)) return {Outcome::storage};
  using Result = ReleaseSetResult;
  return with_all<Result>(holds.keys, [&](SetRules& rules, const auto& refs) -> Result {
    if (Outcome no = core_.refusal(OperationKind::release); no != Outcome::ok) return {no};
    return {Outcome::ok, rules.release(holds, refs)};
  });
}

bool Batch::withdraw_all(const SetId& holds) {
  if (SetRules::check(holds) != Outcome::ok) return false;
  return with_all<bool>(holds.keys, [&](SetRules& rules, const auto& refs) {
    return core_.refusal(OperationKind::nothing) == Outcome::ok && rules.withdraw(holds, refs);
  });
}

std::vector<SetConflict> Batch::explain_all(const AcquireSetRequest& request) {
  using Result = std::vector<SetConflict>;
  if (SetRules::check(request) != Outcome::ok) return {};
  return with_all<Result>(request.keys, [&](SetRules& rules, const auto& refs) {
    Result conflicts;
    rules.explain(request, refs, conflicts);
    return conflicts;
  });
}

Answer Batch::enqueue(const EnqueueRequest& request) {
  return grant_or_queue(request, [&](LockTable& table, LockTable::At at, KeyUnit unit) {
    return table.enqueue(at, request, std::move(unit));
  });
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

Answer Batch::renew(const HoldId& hold, std::optional<Duration> ttl) {
  if (core_.has_no_room(OperationKind::renewal)) return {Outcome::storage};
  const ShardRef at_shard = core_.shard_of(hold.key, turn_);
  const LockTable::At at = core_.now_at(at_shard);
  Shard::Access table(at_shard.shard, turn_);
  const Outcome refusal = core_.refusal(OperationKind::renewal);
  if (refusal != Outcome::ok) return {refusal};
  const LockTable::Reply reply = table->renew(at, hold, ttl);
  return {reply.outcome, reply.grant};
}

Outcome Batch::release(const HoldId& hold) {
  if (core_.has_no_room(OperationKind::release)) return Outcome::storage;
  const ShardRef at_shard = core_.shard_of(hold.key, turn_);
  const LockTable::At at = core_.now_at(at_shard);
  Shard::Access table(at_shard.shard, turn_);
  const Outcome refusal = core_.refusal(OperationKind::release);
  return refusal == Outcome::ok ? table->release(at, hold) : refusal;
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
  if (core_.has_no_room(OperationKind::grant)) return Outcome::storage;
  const ShardRef at_shard = core_.shard_of(key, turn_);
  const LockTable::At at = core_.now_at(at_shard);
  Shard::Access table(at_shard.shard, turn_);
  const Outcome refusal = core_.refusal(OperationKind::grant);
  return refusal == Outcome::ok ? table->resize(at, key, limit, {reason, by}) : refusal;
}

bool Batch::withdraw(const HoldId& hold) {
  const ShardRef at_shard = core_.shard_of(hold.key, turn_);
  const LockTable::At at = core_.now_at(at_shard);
  Shard::Access table(at_shard.shard, turn_);
  return core_.refusal(OperationKind::nothing) == Outcome::ok && table->withdraw(at, hold);
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

// Whether `condition` holds for the table of any shard that the session has used.
template <typename Condition>
bool Batch::any_shard(const Session& session, Condition condition) {
  for (std::uint64_t left = session.shards; left != 0; left &= left - 1) {
    Shard::Access table(*core_.shards().find(static_cast<std::uint32_t>(std::countr_zero(left))),
                        turn_);
    table->advance(core_.time(), Shard::kStepsPerLocking);
    if (condition(*table)) return true;
  }
  return false;
}

bool Batch::has_state(const Session& session) {
  return any_shard(session,
                   [&](const LockTable& table) { return table.sessions().has(session.id); });
}

bool Batch::has_acknowledged_hold(const Session& session) {
  return any_shard(session, [&](const LockTable& table) {
    return table.sessions().has_acknowledged_hold(session.id);
  });
}

FenceStatus Batch::fence(std::string_view key) {
  const ShardRef at_shard = core_.shard_of(key, turn_);
  return Shard::Access(at_shard.shard, turn_)->fence(core_.now_at(at_shard), key);
}

bool Batch::explain(Kind kind, std::string_view key, Conflict* conflict) {
  const ShardRef at_shard = core_.shard_of(key, turn_);
  return Shard::Access(at_shard.shard, turn_)->explain(core_.now_at(at_shard), kind, key, conflict);
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
