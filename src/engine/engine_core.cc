// The requests, and what falls due between them.
#include "engine/engine_core.h"

#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/hash.h"

namespace lockd::detail {
namespace {

// How often to look for an idle key while others keep taking them.
constexpr int kPassesMax = 1000;

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void check_options(const EngineOptions& options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("lockd: ") + what);
  };
  require(std::has_single_bit(options.shards) && options.shards <= 64,
          "shards must be a power of two from 1 to 64");
  require(options.keys_max > 0 && options.keys_max <= KeyBudget::kKeysMax,
          "keys_max must be from 1 to 2147483647");
  require(options.idle_max >= Duration::zero(), "idle_max must not be negative");
  require(options.gc_interval > Duration::zero(), "gc_interval must be more than zero");
  require(options.sweep_interval > Duration::zero(), "sweep_interval must be more than zero");
}

// Where fences start when nothing is kept: ahead of all that an earlier process can have granted,
// unless the clock went back. Four a microsecond since 2020 stay below 2^53 until 2091.
Fence fence_from_clock(Time now) {
  constexpr std::uint64_t k2020_us = 1'577'836'800'000'000;
  const std::uint64_t us = now.ns / 1000;
  return us > k2020_us ? std::min(4 * (us - k2020_us), kFenceMax) : 0;
}

}  // namespace

EngineCore::EngineCore(const EngineOptions& options)
    : options_((check_options(options), options)),
      own_clock_(options.clock == nullptr ? std::make_unique<SystemClock>() : nullptr),
      clock_(options.clock == nullptr ? *own_clock_ : *options.clock),
      journal_(options.journal),
      hash_seed_(options.hash_seed != 0 ? options.hash_seed : random_seed()),
      budget_(options.keys_max),
      notifier_(options.journal) {
  const Time now = clock_.now();
  const TableOptions table{
      .waiters_max = options.waiters_max,
      .last_fence = journal_ == nullptr ? fence_from_clock(now) : 0,
      .hash_seed = hash_seed_,
      .events = journal_ != nullptr,
  };
  for (std::uint32_t i = 0; i < options.shards; ++i) {
    shards_.push_back(std::make_unique<Shard>(table, budget_, journal_, options.observer));
  }
  if (journal_ != nullptr) {
    following_ = journal_->state() == Journal::State::following;
    recover();
  }
  next_gc_ns_ = (now + options_.gc_interval).ns;
  if (options_.sweeper) {
    sweeper_.emplace(clock_, options_.sweep_interval, [this] { return sweep(); });
  }
  // Last: from here on the journal's thread calls, and may have the engine lead.
  if (journal_ != nullptr) {
    attachment_.emplace(*journal_, static_cast<Journal::Source&>(*this));
  }
}

EngineCore::~EngineCore() {
  close();
  blocked_calls_.wait_until_none();
  attachment_.reset();
  sweeper_.reset();
  notifier_.close();  // nobody else tells any more
}

EngineCore::Place EngineCore::place_of(std::string_view key) {
  const auto number =
      static_cast<std::uint32_t>(hash_bytes(key, hash_seed_) & (shards_.size() - 1));
  return {*shards_[number], number};
}

// Why nothing can be done at all, or ok.
Outcome EngineCore::refusal(Needs needs) const {
  if (closed_.load(std::memory_order_acquire)) return Outcome::closed;
  if (journal_ == nullptr) return Outcome::ok;
  const Journal::State state = journal_->state();
  if (state == Journal::State::following) return Outcome::not_leader;
  if (state == Journal::State::failed) return Outcome::storage;
  if (state == Journal::State::full && needs == Needs::grant) return Outcome::storage;
  return Outcome::ok;
}

// The life of a request: the time, the shard's lock, the rules, the journal's buffer. Then, with no
// lock held, the sweeper hears of a new deadline. What was settled waits in `turn` for commit().
template <typename Operation>
LockTable::Reply EngineCore::execute(Turn& turn, Shard& shard, Needs needs, Operation operation) {
  // This says nothing of what is held, so it rests on nothing: it can be told though what was
  // appended before waits for room, which may be for long.
  if (needs == Needs::grant && journal_state() == Journal::State::full &&
      refusal(needs) == Outcome::storage) {
    return {Outcome::storage};
  }
  const Time now = time();
  const LockTable::Reply reply = shard.run(turn, [&](LockTable& table) {
    const Outcome no = refusal(needs);
    return no == Outcome::ok ? operation(table, now) : LockTable::Reply{no};
  });
  if (sweeper_.has_value()) sweeper_->notice(turn.earliest);
  return reply;
}

// Executes what may need a new key, and finds it a unit among the idle keys, of any shard, when the
// budget has none left. No two shards are ever locked at once.
template <typename Operation>
Answer EngineCore::execute_creating(Turn& turn, std::string_view key, const Holder& holder,
                                    Operation operation) {
  const Place place = place_of(key);
  if (Session* session = holder.session()) session->shards |= std::uint64_t{1} << place.number;
  KeyUnit unit;
  while (true) {
    const LockTable::Reply reply =
        execute(turn, place.shard, Needs::grant,
                [&](LockTable& table, Time now) { return operation(table, now, std::move(unit)); });
    if (reply.outcome == Outcome::max_keys) {
      unit = find_unit();
      if (unit) continue;
      max_keys_refusals_.fetch_add(1, std::memory_order_relaxed);
    }
    return {reply.outcome, reply.grant, {nullptr, 0, reply.slot, place.number}};
  }
}

Answer EngineCore::acquire(Turn& turn, const AcquireRequest& request, Listener* listener,
                           std::uint64_t id, Conflict* conflict) {
  Answer answer = execute_creating(
      turn, request.key, request.holder, [&](LockTable& table, Time now, KeyUnit spare) {
        return table.acquire(now, request, listener, id, std::move(spare), conflict);
      });
  answer.wait.listener = listener;
  answer.wait.id = id;
  return answer;
}

Answer EngineCore::enqueue(Turn& turn, const EnqueueRequest& request) {
  return execute_creating(turn, request.key, request.holder,
                          [&](LockTable& table, Time now, KeyUnit spare) {
                            return table.enqueue(now, request, std::move(spare));
                          });
}

Answer EngineCore::await_turn(Turn& turn, Session& session, Kind kind, std::string_view key,
                              Duration wait, Listener* listener, std::uint64_t id) {
  const Place place = place_of(key);
  const auto reply = execute(turn, place.shard, Needs::nothing, [&](LockTable& table, Time now) {
    return table.await_turn(now, session.id, kind, key, wait, listener, id);
  });
  return {reply.outcome, reply.grant, {listener, id, reply.slot, place.number}};
}

Answer EngineCore::renew(Turn& turn, const HoldId& hold, std::optional<Duration> ttl) {
  const auto reply =
      execute(turn, place_of(hold.key).shard, Needs::nothing,
              [&](LockTable& table, Time now) { return table.renew(now, hold, ttl); });
  return {reply.outcome, reply.grant};
}

Outcome EngineCore::release(Turn& turn, const HoldId& hold) {
  const auto reply = execute(
      turn, place_of(hold.key).shard, Needs::nothing,
      [&](LockTable& table, Time now) { return LockTable::Reply{table.release(now, hold)}; });
  return reply.outcome;
}

bool EngineCore::withdraw(Turn& turn, const HoldId& hold) {
  const auto reply = execute(turn, place_of(hold.key).shard, Needs::nothing,
                             [&](LockTable& table, Time now) -> LockTable::Reply {
                               const bool done = table.withdraw(now, hold);
                               return {done ? Outcome::ok : Outcome::expired};
                             });
  return reply.outcome == Outcome::ok;
}

bool EngineCore::cancel(Turn& turn, const WaitId& wait) {
  if (wait.shard >= shards_.size()) return false;
  return shards_[wait.shard]->run(turn, [&](LockTable& table) {
    return table.cancel(time(), wait.slot, wait.listener, wait.id);
  });
}

void EngineCore::end_session(Turn& turn, Session& session, bool keep_holds) {
  for (std::uint64_t left = session.shards; left != 0; left &= left - 1) {
    Shard& shard = *shards_[static_cast<unsigned>(std::countr_zero(left))];
    while (!shard.run(turn, [&](LockTable& table) {
      return table.end_session(time(), session.id, keep_holds, kStepsPerHold);
    })) {
    }
  }
  session.shards = 0;
  if (sweeper_.has_value()) sweeper_->notice(turn.earliest);
}

bool EngineCore::owns_anything(Turn& turn, const Session& session) {
  for (std::uint64_t left = session.shards; left != 0; left &= left - 1) {
    const bool known =
        shards_[static_cast<unsigned>(std::countr_zero(left))]->run(turn, [&](LockTable& table) {
          table.advance(time(), kStepsPerHold);
          return table.knows_session(session.id);
        });
    if (known) return true;
  }
  return false;
}

FenceStatus EngineCore::fence(Turn& turn, std::string_view key) {
  return place_of(key).shard.run(turn, [&](LockTable& table) { return table.fence(time(), key); });
}

bool EngineCore::explain(Turn& turn, Kind kind, std::string_view key, Conflict* conflict) {
  return place_of(key).shard.run(
      turn, [&](LockTable& table) { return table.explain(time(), kind, key, conflict); });
}

// A unit of a key that is idle, or one that is free. None is found only if there was an instant
// when there was none: a pass that finds nothing counts if no key became idle while it lasted, in a
// shard that it had left behind, and no unit was in anybody's hand.
KeyUnit EngineCore::find_unit() {
  for (int pass = 0; pass < kPassesMax; ++pass) {
    const std::uint64_t before = idlings();
    for (const auto& shard : shards_) {
      if (KeyUnit unit = reclaim_idle(*shard)) return unit;
    }
    if (KeyUnit unit = budget_.take()) return unit;
    if (budget_.is_exhausted() && idlings() == before) break;
  }
  return {};
}

// While there are more keys than there may be, it takes more than one. The lock is let go between
// them.
KeyUnit EngineCore::reclaim_idle(Shard& shard) {
  KeyUnit unit;
  bool more = shard.may_have_idle();
  while (more && !unit) {
    shard.look([&](LockTable& table) {
      unit = table.reclaim_idle();
      more = table.has_idle();
    });
  }
  return unit;
}

std::uint64_t EngineCore::idlings() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->idlings();
  return sum;
}

Position EngineCore::commit(Turn& turn) {
  const Position position = turn.position;
  turn.position = 0;
  notifier_.post(position, turn.wait_results);
  return position;
}

Time EngineCore::sweep() {
  if (is_following()) return Time::never();
  const Time now = time();
  const Time next = end_what_is_due(now);
  if (now.ns >= next_gc_ns_.load(std::memory_order_relaxed)) forget_idle(now);
  return std::min(next, Time{next_gc_ns_.load(std::memory_order_relaxed)});
}

// Returns the earliest deadline that is left.
Time EngineCore::end_what_is_due(Time now) {
  const DurableNotifier::InFlight in_flight(notifier_);
  std::vector<WaitResult> settled;
  Position position = 0;
  Time next = Time::never();
  for (const auto& shard : shards_) {
    while (shard->due() <= now) {
      Turn turn{position, settled};
      const bool done = shard->advance(now, kStepsPerHold, turn);
      commit(turn);
      if (done) break;
    }
    next = std::min(next, shard->due());
  }
  return next;
}

void EngineCore::forget_idle(Time now) {
  next_gc_ns_.store((now + options_.gc_interval).ns, std::memory_order_relaxed);
  if (now.ns < static_cast<std::uint64_t>(options_.idle_max.count())) return;
  const Time since = now - options_.idle_max;
  for (const auto& shard : shards_) {
    while (shard->may_have_idle() && shard->look([&](LockTable& table) {
      return table.forget_idle(since, kKeysPerHold);
    }) == kKeysPerHold) {
    }
  }
}

void EngineCore::close() {
  const DurableNotifier::InFlight in_flight(notifier_);
  if (closed_.exchange(true, std::memory_order_acq_rel)) return;
  std::vector<WaitResult> settled;
  Position position = 0;
  for (const auto& shard : shards_) {
    for (Cursor cursor; !cursor.done;) {
      Turn turn{position, settled};
      shard->run(turn, [&](LockTable& table) {
        table.end_waits(cursor, Outcome::closed);
        return Outcome::ok;
      });
      commit(turn);
    }
  }
}

}  // namespace lockd::detail
