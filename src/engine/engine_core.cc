#include "engine/engine_core.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/history_reading.h"

namespace lockd::detail {
namespace {

// The most entries copied under one lock of a shard.
constexpr std::size_t kEntriesPerLocking = kEntriesMax;

// The attempts to find an idle key while other threads keep taking them.
constexpr int kPassesMax = 1000;

void check_options(const EngineOptions& options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("lockd: ") + what);
  };
  require(std::has_single_bit(options.shards) && options.shards <= 64,
          "shards must be a power of two from 1 to 64");
  require(options.keys_max > 0 && options.keys_max <= KeyBudget::kKeysMax,
          "keys_max must be from 1 to 2147483647");
  require(options.holds_max <= HoldBudget::kHoldsMax, "holds_max must be less than 2^62");
  require(options.ttl_max >= Duration::zero(), "ttl_max must not be negative");
  require(options.fence_floor <= kFenceMax, "fence_floor must be less than 2^53");
  require(options.idle_max >= Duration::zero(), "idle_max must not be negative");
  require(options.gc_interval > Duration::zero(), "gc_interval must be more than zero");
  require(options.sweep_interval > Duration::zero(), "sweep_interval must be more than zero");
  require(options.age_interval >= Duration::zero(), "age_interval must not be negative");
  require(options.slow_wait >= Duration::zero(), "slow_wait must not be negative");
  require(options.slow_hold >= Duration::zero(), "slow_hold must not be negative");
}

bool has_room(Journal::State state, EngineCore::OperationKind kind) {
  switch (state) {
    case Journal::State::full: return kind < EngineCore::OperationKind::grant;
    case Journal::State::scarce: return kind < EngineCore::OperationKind::renewal;
    case Journal::State::exhausted: return kind < EngineCore::OperationKind::release;
    default: return true;
  }
}

}  // namespace

EngineCore::EngineCore(const EngineOptions& options)
    : options_((check_options(options), options)),
      own_clock_(options.clock == nullptr ? std::make_unique<SystemClock>() : nullptr),
      clock_(options.clock == nullptr ? *own_clock_ : *options.clock),
      journal_(options.journal),
      hash_key_(options.hash_seed != 0 ? HashKey::of_seed(options.hash_seed) : HashKey::random()),
      budget_(options.keys_max),
      holds_({options.holds_max, options.holds_per_client_max}, hash_key_),
      shards_(hash_key_),
      notifier_(options.journal),
      source_(journal_, shards_, clock_, notifier_,
              {.on_failed = [this] { end_waits(Outcome::storage); },  // no waiter will be granted
               .on_lead =
                   [this] {
                     if (sweeper_) sweeper_->notice(Time{});
                   },
               .on_durable = options.on_durable}),
      age_scanner_(shards_, options.age_interval) {
  const Time now = clock_.now();
  const TableOptions table{
      .waiters_max = options.waiters_max,
      .refuses_tries_at_full_queue = options.refuses_tries_at_full_queue,
      .keeps_idle_limits = options.keeps_idle_limits,
      .ttl_max = options.ttl_max,
      .last_fence = std::max(options.fence_floor,
                             journal_ == nullptr ? JournalSource::fence_from_clock(now) : 0),
      .hash_key = hash_key_,
      .events = journal_ != nullptr,
      .history_size = (options.history_size + options.shards - 1) / options.shards,
      .refusals = &refusals_,
      .slow_wait = options.slow_wait,
      .slow_hold = options.slow_hold,
  };
  for (std::uint32_t i = 0; i < options.shards; ++i) {
    shards_.add(std::make_unique<Shard>(table, budget_, holds_, journal_, options.observer));
  }
  source_.recover();
  next_gc_ns_ = (now + options_.gc_interval).ns;
  if (options_.sweeper) {
    sweeper_.emplace(clock_, options_.sweep_interval, [this] { return sweep_some(); });
  }
  // Last, because the journal's thread may call from here on, and make the engine lead.
  source_.attach();
}

EngineCore::~EngineCore() {
  close();
  blocked_calls_.wait_until_none();
  source_.detach();
  sweeper_.reset();
  notifier_.close();  // no other thread posts results any more
}

Outcome EngineCore::refusal_of_journal(OperationKind kind) const {
  const Journal::State state = journal_->state();
  if (state == Journal::State::following) return Outcome::not_leader;
  if (state == Journal::State::failed) return Outcome::storage;
  return has_room(state, kind) ? Outcome::ok : Outcome::storage;
}

// Returns the unit of an idle key, or a free one. Returns none only if at some instant there was
// none: a pass that finds nothing is repeated if a key became idle meanwhile, perhaps in a shard
// already visited, or if another thread held a unit.
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

KeyUnit EngineCore::find_unit_at_once() {
  for (const auto& shard : shards_) {
    if (KeyUnit unit = reclaim_idle(*shard)) return unit;
  }
  return budget_.take();
}

// While the number of keys exceeds the budget, it takes several reclaimed keys to get a unit. The
// lock is released between them.
KeyUnit EngineCore::reclaim_idle(Shard& shard) {
  KeyUnit unit;
  bool more = shard.may_have_idle();
  while (more && !unit) {
    shard.with_table([&](LockTable& table) {
      unit = table.reclaim_idle();
      more = table.idle().oldest() != nullptr;
    });
  }
  return unit;
}

std::uint64_t EngineCore::idlings() const {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->idlings();
  return sum;
}

// Settling one set may make another grantable.
void EngineCore::settle_sets(Turn& turn) noexcept {
  while (!turn.sets.empty()) {
    const std::shared_ptr<KeySet> set = turn.sets.front();
    std::erase(turn.sets, set);  // listed once per key
    std::vector<std::uint32_t> numbers;
    for (const KeySet::Part& part : set->parts) numbers.push_back(part.table);
    ShardLocks locks(shards_.select(numbers), turn);
    std::vector<SetRules::TableRef> refs;
    for (const std::uint32_t n : numbers) {
      refs.push_back({&ShardLocks::table_of(shards_[n]), n});
    }
    SetRules(time(), [&] { locks.flush(); }).settle(*set, refs);
  }
}

Position EngineCore::commit(Turn& turn) noexcept {
  if (!turn.sets.empty()) settle_sets(turn);
  const Position position = std::exchange(turn.position, 0);
  turn.answers = 0;
  notifier_.post(position, turn.wait_results);
  return position;
}

void EngineCore::wake_sweeper(Turn& turn) {
  if (sweeper_.has_value()) sweeper_->notice(std::exchange(turn.earliest, Time::never()));
}

Time EngineCore::sweep() {
  const Time began = time();
  Time next;
  do {
    next = sweep_some();
  } while (next <= began);
  return next;
}

// Round-robin over the shards: neither a due lease of another shard nor one that becomes due
// meanwhile must wait for a large backlog.
Time EngineCore::sweep_some() {
  if (source_.is_following()) return Time::never();
  const Time now = time();
  Sweep sweep;
  const Time next = end_some_due(now, sweep);
  if (now.ns >= next_gc_ns_.load(std::memory_order_relaxed) && forget_some_idle(now, sweep)) {
    next_gc_ns_.store((now + options_.gc_interval).ns, std::memory_order_relaxed);
  }
  const Time ages = age_scanner_.scan_some(now);
  report(sweep, now);
  return std::min({next, Time{next_gc_ns_.load(std::memory_order_relaxed)}, ages});
}

// Returns the earliest remaining deadline.
Time EngineCore::end_some_due(Time now, Sweep& sweep) {
  const InFlight::Call call(notifier_.in_flight());
  Turn turn;
  Time next = Time::never();
  for (const auto& shard : shards_) {
    if (shard->due() <= now) {
      shard->advance(now, Shard::kStepsPerLocking, turn);
      ++sweep.shards;
      sweep.waits_ended += turn.wait_results.size();
      commit(turn);
    }
    next = std::min(next, shard->due());
  }
  return next;
}

// Returns true if no idle key is left.
bool EngineCore::forget_some_idle(Time now, Sweep& sweep) {
  if (now.ns < static_cast<std::uint64_t>(options_.idle_max.count())) return true;
  const Time since = now - options_.idle_max;
  bool all = true;
  for (const auto& shard : shards_) {
    if (!shard->may_have_idle()) continue;
    const auto forget = [&](LockTable& table) {
      return table.forget_idle(since, Shard::kKeysPerLocking);
    };
    const std::size_t forgotten = shard->with_table(forget);
    sweep.keys_forgotten += forgotten;
    all = forgotten < Shard::kKeysPerLocking && all;
  }
  return all;
}

void EngineCore::report(Sweep& sweep, Time began) const {
  if (!options_.on_sweep || (sweep.shards == 0 && sweep.keys_forgotten == 0)) return;
  sweep.took = time() - began;
  options_.on_sweep(sweep);
}

void EngineCore::close() {
  const InFlight::Call call(notifier_.in_flight());
  if (!closed_.exchange(true, std::memory_order_acq_rel)) end_waits(Outcome::closed);
}

// Precondition: refusal() rejects new waits. Ended sets leave their queues after all waits have
// ended: earlier, their removal would grant to the waiters behind them.
void EngineCore::end_waits(Outcome why) {
  Turn turn;
  std::vector<std::shared_ptr<KeySet>> sets;
  for (const auto& shard : shards_) {
    for (Cursor cursor; !cursor.done;) {
      Shard::Access(*shard, turn)->end_waits(cursor, why);
      std::ranges::move(std::exchange(turn.sets, {}), std::back_inserter(sets));
      commit(turn);
    }
  }
  turn.sets = std::move(sets);
  commit(turn);
}

Journal::State EngineCore::journal_state() const {
  return journal_ == nullptr ? Journal::State::accepting : journal_->state();
}

HoldStatus EngineCore::status_of(const LockTable& table, const Hold& hold, Time now) {
  return {.holder = hold.holder.display_name(),
          .session = hold.holder.session_id(),
          .client = table.client_of(hold),
          .fence = hold.fence,
          .mode = hold.mode(),
          .permits = hold.permits(),
          .held = hold.held_at(now),
          .ttl = hold.ttl,
          .remaining = std::max(hold.deadline - now, Duration::zero())};
}

KeyStatus EngineCore::status_of(const LockTable& table, const Key& key, Time now,
                                std::size_t entries_max) {
  KeyStatus status{.kind = key.kind,
                   .key = std::string(key.name()),
                   .limit = key.limit(),
                   .holders = key.holders,
                   .waiters = key.waiters(),
                   .permits = key.permits_in_use(),
                   .fence = key.holds.empty() ? key.first.fence : key.holds.back()->fence};
  entries_max = std::min(entries_max, kEntriesMax);
  if (key.idle()) status.idle = now - key.first.since;
  const Hold* hold = key.holds.front();
  for (; hold != nullptr && status.holds.size() < entries_max; hold = key.holds.next(hold)) {
    status.holds.push_back(status_of(table, *hold, now));
  }
  const QueuePlace* place = key.queue.front();
  for (; place != nullptr && status.queue.size() < entries_max; place = key.queue.next(place)) {
    status.queue.push_back({.holder = place->holder.display_name(),
                            .session = place->holder.session_id(),
                            .client = place->client,
                            .mode = mode_of(key.kind, place->takes),
                            .permits = permits_of(key.kind, place->takes),
                            .keys = keys_of(*place),
                            .waited = now - place->since});
  }
  return status;
}

Position EngineCore::list_some(ListCursor& cursor, std::size_t keys_max,
                               const std::function<void(const KeyStatus&)>& visit,
                               std::size_t entries_max) {
  const std::size_t keys_per_hold = std::clamp<std::size_t>(
      kEntriesPerLocking / std::max<std::size_t>(entries_max, 1), 1, Shard::kKeysPerLocking);
  std::vector<KeyStatus> some;
  Turn turn;
  while (keys_max > 0 && cursor.shard < shards_.size()) {
    Cursor in_shard{.rank = cursor.rank};
    {
      Shard::Access table(shards_[cursor.shard], turn);
      const Time now = std::max(table->now(), clock_.now());
      table->walk(in_shard, std::min(keys_max, keys_per_hold), [&](const Key& key) {
        some.push_back(status_of(*table, key, now, entries_max));
      });
    }
    cursor.rank = in_shard.rank;
    if (in_shard.done) ++cursor.shard;
    keys_max -= std::min(keys_max, some.size());
    for (const KeyStatus& status : some) visit(status);
    some.clear();
  }
  cursor.done = cursor.shard >= shards_.size();
  return turn.position;
}

Owned EngineCore::owned(SessionId session) {
  Owned sum;
  Turn turn;
  for (const auto& shard : shards_) {
    const Owned here = Shard::Access(*shard, turn)->sessions().owned(session);
    sum.holds += here.holds;
    sum.places += here.places;
  }
  sum.position = turn.position;
  return sum;
}

Stats EngineCore::stats() {
  Stats sum;
  for (const auto& shard : shards_) {
    sum += shard->with_table([](const LockTable& table) { return table.stats(); });
  }
  sum.refusals.max_keys = max_keys_refusals_.load(std::memory_order_relaxed);
  return sum;
}

Position EngineCore::history(const HistoryQuery& query,
                             const std::function<void(const KeyEvent&)>& visit) {
  HistoryReading reading(query);
  Turn turn;
  if (query.key.empty()) {
    for (std::uint32_t i = 0; i < shards_.size(); ++i) reading.read(shards_[i], i, turn);
  } else {
    const ShardRef ref = shards_.of(query.key);
    reading.read(ref.shard, ref.number, turn);
  }
  reading.visit(visit);
  return turn.position;
}

std::string EngineCore::check() {
  for (const auto& shard : shards_) {
    std::string broken = shard->with_table([](const LockTable& table) { return table.check(); });
    if (!broken.empty()) return broken;
  }
  std::vector<Shard*> all;
  std::vector<const LockTable*> tables;
  for (const auto& shard : shards_) {
    all.push_back(shard.get());
    tables.push_back(&ShardLocks::table_of(*shard));
  }
  Turn turn;
  const ShardLocks locks(std::move(all), turn);
  return SetRules::check_all(tables);
}

}  // namespace lockd::detail
