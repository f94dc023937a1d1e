// Random histories: a LockTable and the LockModel get the same calls, and after every call they
// must have answered the same, caused the same, and be the same. An onlooker, who knows of nothing
// but the occurrences, must have come to believe the same, and count the same.
//
// A history is a setup and a list of operations. An operation names what it is about by small
// numbers (the third hold of this key, the second session), so that it still means something when
// operations before it are taken away: a failing history shrinks to a few lines.
//
//   RC_PARAMS="seed=1"                 to choose the histories
//   LOCKD_PROPERTY_OPERATIONS=10000000 to choose how many operations there are
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "core/lock_model.h"
#include "core/lock_onlooker.h"
#include "core/lock_table.h"

namespace lockd {
namespace {

// Histories.

enum class Verb : std::uint8_t {
  acquire,
  enqueue,
  await_turn,
  renew,
  release,
  withdraw,
  cancel,
  fence,
  explain,
  end_session,
  advance,
  forget_idle,
  reclaim_idle,
  end_waits
};
constexpr std::array kVerbs = {"acquire",  "enqueue",     "await_turn",   "renew",    "release",
                               "withdraw", "cancel",      "fence",        "explain",  "end_session",
                               "advance",  "forget_idle", "reclaim_idle", "end_waits"};
// Out of a thousand.
constexpr std::array<unsigned, kVerbs.size()> kShares = {370, 110, 110, 70, 120, 20, 40,
                                                         20,  10,  35,  40, 30,  20, 5};

constexpr unsigned kPlenty = 1000;  // of fences: more than any history uses

struct Setup {
  Fence last_fence() const { return fences_left == kPlenty ? 0 : kFenceMax - fences_left; }
  bool operator==(const Setup&) const = default;

  unsigned keys = 4;  // that are asked for; keys_max is how many there may be
  std::uint64_t keys_max = 6;
  std::uint32_t waiters_max = 0;
  unsigned fences_left = kPlenty;
  std::uint64_t start = 100;
  std::uint64_t hash_seed = 0;
};

struct Op {
  Verb verb = Verb::acquire;
  std::int64_t step = 0;  // of time, before the call; less than 0: the caller's clock is late
  unsigned key = 0;       // from kBadTexts: one that is refused
  unsigned who = 0;       // a name, a session, or a bad name
  std::int64_t ttl = 1;
  std::int64_t wait = 0;
  std::uint32_t limit = 1;
  unsigned pick = 0;  // whatever else there is to choose

  bool operator==(const Op&) const = default;
};

struct History {
  Setup setup;
  std::vector<Op> ops;
};

constexpr unsigned kNames = 3;
constexpr unsigned kSessions = 3;
constexpr unsigned kNoSession = kNames + kSessions;  // a secret of nobody's
constexpr unsigned kBadTexts = 1000;

std::string bad_text(unsigned which) {
  const std::array<std::string, 5> bad = {"", std::string(257, 'x'), "a\x1f", "a\xc3", "\x7f"};
  return bad[which % bad.size()];
}

// Even numbers are locks, odd ones semaphores of the same name.
Kind kind_of(unsigned key) { return key % 2 == 0 ? Kind::lock : Kind::semaphore; }

std::string name_of(unsigned key) {
  if (key >= kBadTexts) return bad_text(key - kBadTexts);
  return key / 2 == 2 ? std::string(256, 'k') : "k" + std::to_string(key / 2);
}

std::uint32_t usual_limit(unsigned key) {
  return kind_of(key) == Kind::lock ? 1 : 1 + (key / 2 + 1) % 3;
}

// Splitmix64: RapidCheck's own numbers are too slow to take eight for every operation.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  unsigned roll(unsigned sides) {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return static_cast<unsigned>((x ^ (x >> 31)) % sides);
  }
  bool chance(unsigned percent) { return roll(100) < percent; }

 private:
  std::uint64_t state_;
};

// What a history is like. Each leaves out some things and does others often: that leads further
// than doing a little of everything.
struct Mood {
  Mood(Dice& dice, bool crowd) : crowd(crowd) {
    for (unsigned& share : shares) share *= dice.roll(4);
    shares[0] += 1;
    moves = crowd ? 2 + dice.roll(6) : std::array{3u, 10u, 30u, 60u}[dice.roll(4)];
    lasting = std::array{0u, 15u, 50u, 80u}[dice.roll(4)];
    tries = std::array{2u, 10u, 30u, 70u}[dice.roll(4)];
    owners = dice.chance(40) ? kNames : kNoSession + 1;
    favourite = dice.roll(owners);
    favourite_key = dice.chance(50) ? 1 : dice.roll(4);
  }

  const bool crowd;  // many keys, that fall due together
  std::array<unsigned, kShares.size()> shares = kShares;
  unsigned moves;      // percent of the calls that come later than the one before
  unsigned lasting;    // percent of the leases and waits that are long
  unsigned tries;      // percent of the requests that do not wait
  unsigned owners;     // how many there are: some names, or everybody
  unsigned favourite;  // who asks most
  unsigned favourite_key;
};

std::int64_t some_jump(Dice& dice) { return std::int64_t{1} << (4 + dice.roll(36)); }

std::int64_t some_duration(Dice& dice, const Mood& mood) {
  if (!dice.chance(mood.lasting)) return 1 + dice.roll(20);
  return dice.chance(70) ? some_jump(dice) : kDurationMax.count();
}

Verb some_verb(Dice& dice, const Mood& mood) {
  unsigned rest = dice.roll(std::accumulate(mood.shares.begin(), mood.shares.end(), 0u));
  std::uint8_t verb = 0;
  while (rest >= mood.shares[verb]) rest -= mood.shares[verb++];
  return Verb{verb};
}

// One flaw at a time, and no other trouble: which of several is told is nobody's promise.
void spoil(Dice& dice, Op& op) {
  const bool is_lock = kind_of(op.key) == Kind::lock;
  op.who %= kNoSession;
  switch (dice.roll(5)) {
    case 0:
      op.key = kBadTexts + dice.roll(5);
      op.limit = 1;
      break;
    case 1: op.who = kBadTexts + dice.roll(5); break;
    case 2: op.ttl = -std::int64_t{dice.roll(2)}; break;
    case 3: op.wait = -1 - std::int64_t{dice.roll(2)}; break;
    case 4: op.limit = is_lock ? 2 : dice.roll(2) * (kLimitMax + 1); break;
  }
}

bool is_flawed(const Op& op) {
  const std::uint32_t limit_max = kind_of(op.key) == Kind::lock ? 1 : kLimitMax;
  return op.key >= kBadTexts || op.who >= kBadTexts || op.ttl < 1 || op.wait < 0 || op.limit < 1 ||
         op.limit > limit_max || (op.verb == Verb::enqueue && op.who == kNoSession);
}

Op some_op(Dice& dice, const Setup& setup, const Mood& mood) {
  Op op;
  op.verb = some_verb(dice, mood);
  op.key = dice.chance(mood.crowd ? 5 : 40) ? mood.favourite_key : dice.roll(setup.keys);
  op.who = dice.chance(40) ? mood.favourite : dice.roll(mood.owners);
  if (dice.chance(mood.moves)) op.step = dice.chance(90) ? 1 + dice.roll(10) : some_jump(dice);
  if (mood.crowd && op.step > 0 && dice.chance(50)) op.step = 10;
  if (dice.chance(2)) op.step = -1 - std::int64_t{dice.roll(5)};
  op.ttl = mood.crowd && dice.chance(60) ? 10 : some_duration(dice, mood);
  op.wait = dice.chance(mood.tries) ? 0 : some_duration(dice, mood);
  op.limit = dice.chance(94) ? usual_limit(op.key) : dice.chance(90) ? 1 + dice.roll(3) : kLimitMax;
  if (kind_of(op.key) == Kind::lock) op.limit = 1;
  op.pick = dice.roll(256);
  if (dice.chance(2) && setup.fences_left == kPlenty) spoil(dice, op);
  return op;
}

Setup some_setup(Dice& dice, bool crowd) {
  constexpr std::array<std::uint64_t, 4> kStarts = {100, 1000, (std::uint64_t{1} << 40) - 100,
                                                    1'700'000'000'000'000'000};
  Setup setup;
  setup.keys = crowd ? 40 : 2 + dice.roll(4);
  setup.keys_max = crowd ? 30 + dice.roll(20) : 2 + dice.roll(5);
  setup.waiters_max = dice.roll(4);
  if (dice.chance(8)) setup.fences_left = dice.roll(20);
  setup.start = kStarts[dice.roll(4)];
  setup.hash_seed = dice.roll(1 << 30);
  return setup;
}

// Shrinking: first the end is cut off, which cannot matter; then the rest is thinned out; then what
// is left becomes simpler.

template <typename Value, typename Field>
void simplify(std::vector<Value>& simpler, Value value, Field Value::*field, Field simplest) {
  const Field was = value.*field;
  std::vector<Field> steps = {simplest, static_cast<Field>(was / 2)};
  if (was > simplest && was < 32) steps.push_back(static_cast<Field>(was - 1));
  for (Field to : steps) {
    value.*field = to;
    if (to != was && (to == simplest || (to > simplest && to < was))) simpler.push_back(value);
  }
}

rc::Seq<Op> simpler_ops(const Op& op) {
  std::vector<Op> simpler;
  simplify(simpler, op, &Op::step, std::int64_t{0});
  simplify(simpler, op, &Op::ttl, std::int64_t{1});
  simplify(simpler, op, &Op::wait, std::int64_t{0});
  simplify(simpler, op, &Op::key, 0u);
  simplify(simpler, op, &Op::who, 0u);
  simplify(simpler, op, &Op::limit, std::uint32_t{1});
  simplify(simpler, op, &Op::pick, 0u);
  return rc::seq::fromContainer(std::move(simpler));
}

rc::Seq<History> simpler_histories(const History& history) {
  std::vector<Setup> setups;
  simplify(setups, history.setup, &Setup::waiters_max, std::uint32_t{0});
  simplify(setups, history.setup, &Setup::hash_seed, std::uint64_t{0});
  if (history.setup.fences_left != kPlenty) {
    simplify(setups, history.setup, &Setup::fences_left, 0u);
  }
  simplify(setups, history.setup, &Setup::start, std::uint64_t{100});
  std::vector<std::vector<Op>> beginnings;
  for (std::size_t cut = history.ops.size() / 2; cut > 0; cut /= 2) {
    beginnings.emplace_back(history.ops.begin(),
                            history.ops.end() - static_cast<std::ptrdiff_t>(cut));
  }
  const auto with_ops = [setup = history.setup](std::vector<Op> ops) {
    return History{setup, std::move(ops)};
  };
  const auto with_setup = [ops = history.ops](const Setup& setup) { return History{setup, ops}; };
  return rc::seq::concat(rc::seq::map(rc::seq::fromContainer(std::move(beginnings)), with_ops),
                         rc::seq::map(rc::shrink::removeChunks(history.ops), with_ops),
                         rc::seq::map(rc::shrink::eachElement(history.ops, &simpler_ops), with_ops),
                         rc::seq::map(rc::seq::fromContainer(std::move(setups)), with_setup));
}

rc::Gen<History> some_history(bool crowd) {
  return [crowd](const rc::Random& random, int size) {
    Dice dice(rc::Random(random).next());
    const Mood mood(dice, crowd);
    History history{some_setup(dice, crowd), {}};
    const unsigned length = 1 + dice.roll(static_cast<unsigned>(size) + 1);
    for (unsigned i = 0; i < length; ++i) history.ops.push_back(some_op(dice, history.setup, mood));
    return rc::shrinkable::shrinkRecur(std::move(history), &simpler_histories);
  };
}

void showValue(const History& history, std::ostream& out) {
  const Setup& s = history.setup;
  out << "keys " << s.keys << ", keys_max " << s.keys_max << ", waiters_max " << s.waiters_max
      << ", fences_left " << s.fences_left << ", start " << s.start << ", hash_seed "
      << s.hash_seed;
  for (const Op& op : history.ops) {
    out << "\n  " << kVerbs[static_cast<std::size_t>(op.verb)] << " key " << op.key << " who "
        << op.who << " ttl " << op.ttl << " wait " << op.wait << " limit " << op.limit << " pick "
        << op.pick << " step " << op.step;
  }
}

// Running.

struct Deaf final : Listener {
  void settled(const Settled&) noexcept override {}
};

// A table that is built from events alone.
struct Replica {
  explicit Replica(std::uint64_t hash_seed) : table({.hash_seed = hash_seed}, budget) {}

  bool apply(const std::vector<Event>& events) {
    return std::ranges::all_of(events, [&](const Event& event) { return table.apply(event); });
  }
  // Events are idempotent.
  bool apply_twice(const std::vector<Event>& events) {
    return std::ranges::all_of(
        events, [&](const Event& event) { return table.apply(event) && table.apply(event); });
  }
  bool apply_floor(Fence fence) {
    return table.apply({.type = Event::Type::fence_floor, .fence = fence});
  }
  std::string difference(const LockModel& model) const {
    const std::string broken = table.check();
    return broken.empty() ? model.difference_of_holds(table) : broken;
  }
  // The next few keys of `other`. A walk comes to a key once, however the table grows or shrinks.
  std::string describe(const LockTable& other, std::size_t keys_max) {
    std::vector<Event> events;
    other.describe(cursor, keys_max, events);
    for (const Event& event : events) {
      if (!described.insert(event.fence).second) return "a hold is described twice";
    }
    return apply(events) ? "" : "a description is refused";
  }

  KeyBudget budget{0};
  LockTable table;
  Cursor cursor;
  std::set<Fence> described;
};

bool is_refusal(Outcome outcome) {
  return outcome != Outcome::ok && outcome != Outcome::queued && outcome != Outcome::timeout;
}

// One history as it happens. Stops at the first complaint.
class Trial {
 public:
  Trial(const Setup& setup, std::ostream* log)
      : setup_(setup),
        options_{.waiters_max = setup.waiters_max,
                 .last_fence = setup.last_fence(),
                 .hash_seed = setup.hash_seed},
        log_(log),
        budget_(setup.keys_max),
        table_(options_, budget_),
        model_(options_, setup.keys_max),
        now_{setup.start},
        highest_(setup.last_fence()),
        standby_(setup.hash_seed + 1) {
    table_.observe(true);
    for (SessionId& session : sessions_) session = ++last_session_;
    standby_.apply_floor(setup.last_fence());
    digest_ = digest();
  }

  // What is wrong, or an empty string.
  std::string step(const Op& op);
  std::string finish();

 private:
  std::string call(const Op& op, Time now);
  std::string acquire(const Op& op, Time now);
  std::string enqueue(const Op& op, Time now);
  std::string await_turn(const Op& op, Time now);
  std::string end_or_renew(const Op& op, Time now);
  std::string cancel(const Op& op, Time now);
  std::string look(const Op& op, Time now);
  std::string end_session(const Op& op, Time now);
  std::string advance(const Op& op, Time now);
  std::string forget(const Op& op);
  std::string end_waits();

  Holder holder_of(const Op& op);
  KeyUnit spare_for(const Op& op);
  LockModel::Happened choose_hold(const Op& op) const;
  void note_wait(std::uint32_t slot, unsigned listener) {
    pending_.insert(waits_.size());
    waits_.push_back({slot, listener});
  }
  std::string compare(const LockTable::Reply& reply, const LockModel::Answer& answer);
  std::string compare(const Conflict& its, const std::optional<Conflict>& mine) const;
  std::string check_effects();
  std::string check_occurrences();
  std::string check_state();
  std::string check_replicas();
  std::string describe_some();
  std::uint64_t digest() const;
  template <typename... Parts>
  void say(const Parts&... parts) {
    if (log_ != nullptr) (*log_ << ... << parts);
  }

  const Setup setup_;
  const TableOptions options_;
  std::ostream* const log_;
  KeyBudget budget_;
  LockTable table_;
  LockModel model_;
  Time now_;

  std::array<Deaf, 2> listeners_;
  std::array<SessionId, kSessions> sessions_{};
  SessionId last_session_ = 0;
  std::uint64_t last_secret_ = 100;
  std::string name_;                       // of the holder in use
  std::vector<LockModel::Happened> past_;  // grants
  struct Wait {
    std::uint32_t slot;
    unsigned listener;
  };
  std::vector<Wait> waits_;          // by id
  std::set<std::uint64_t> pending_;  // ids

  bool refused_ = false;
  LockOnlooker onlooker_;
  std::uint64_t renewals_ = 0;
  Figures::Refusals refusals_;
  const LockModel::IsLeft is_left_ = [this](const LockModel::Key& key) {
    bool found = false;
    Cursor cursor;
    table_.walk(cursor, SIZE_MAX, [&](const Semaphore& s) {
      found = found || (s.kind == key.kind && s.key() == key.name);
    });
    return found;
  };
  Fence highest_;
  std::uint64_t digest_ = 0;
  unsigned steps_ = 0;
  Replica standby_;                    // has applied every event
  std::unique_ptr<Replica> snapshot_;  // is being described while the calls go on
};

std::string Trial::step(const Op& op) {
  now_.ns += static_cast<std::uint64_t>(std::max(op.step, std::int64_t{0}));
  Time now{now_.ns + static_cast<std::uint64_t>(std::min(op.step, std::int64_t{0}))};
  // Whether a request that is refused for its form is looked at before the clock is left open.
  if (is_flawed(op)) now = table_.now();
  if (std::string wrong = describe_some(); !wrong.empty()) return wrong;

  const bool nothing_due = model_.next_deadline() > std::max(now, model_.now());
  refused_ = false;
  table_.effects().clear();
  model_.watch(table_.effects());
  say("\n  ", now.ns, ": ");
  std::string wrong = call(op, now);
  for (const Event& event : table_.effects().events) {
    if (event.type == Event::Type::granted) past_.emplace_back(event);
  }
  if (wrong.empty()) wrong = check_effects();
  if (wrong.empty()) wrong = check_occurrences();
  if (wrong.empty()) wrong = check_state();
  const std::uint64_t before = std::exchange(digest_, digest());
  if (wrong.empty() && refused_ && nothing_due && digest_ != before) {
    wrong = "failed-changes-nothing: a refusal changed the table";
  }
  if (wrong.empty() && ++steps_ % 16 == 0) wrong = check_replicas();
  return wrong;
}

// Everything that is due ends, in small steps; every wait is settled.
std::string Trial::finish() {
  std::string wrong = check_replicas();
  for (int calls = 0; wrong.empty() && model_.next_deadline() <= model_.now(); ++calls) {
    if (calls > 10'000) return "advance() does not come to an end";
    wrong = step({.verb = Verb::advance, .pick = 7});
  }
  if (wrong.empty()) wrong = step({.verb = Verb::advance, .step = 100, .pick = 0});
  if (wrong.empty()) wrong = step({.verb = Verb::end_waits});
  if (wrong.empty() && !pending_.empty()) wrong = "settled-once: a wait never ended";
  if (wrong.empty()) wrong = check_replicas();
  return wrong;
}

std::string Trial::call(const Op& op, Time now) {
  say(kVerbs[static_cast<std::size_t>(op.verb)], ' ', text(kind_of(op.key), name_of(op.key)));
  switch (op.verb) {
    case Verb::acquire: return acquire(op, now);
    case Verb::enqueue: return enqueue(op, now);
    case Verb::await_turn: return await_turn(op, now);
    case Verb::renew:
    case Verb::release:
    case Verb::withdraw: return end_or_renew(op, now);
    case Verb::cancel: return cancel(op, now);
    case Verb::fence:
    case Verb::explain: return look(op, now);
    case Verb::end_session: return end_session(op, now);
    case Verb::advance: return advance(op, now);
    case Verb::forget_idle:
    case Verb::reclaim_idle: return forget(op);
    case Verb::end_waits: return end_waits();
  }
  return "no such call";
}

// A secret is a new one, or sometimes the session's first: that gives no claim to what it holds.
Holder Trial::holder_of(const Op& op) {
  constexpr std::array kPlain = {"ann", "bob", "a name that does not fit inside"};
  name_ = op.who >= kBadTexts ? bad_text(op.who - kBadTexts)
          : op.who < kNames   ? kPlain[op.who]
                              : "";
  if (op.who < kNames || op.who >= kBadTexts) return Holder(name_);
  const std::uint64_t secret = op.pick % 8 == 0 ? op.who : ++last_secret_;
  return Holder::of_secret(secret, op.who == kNoSession ? 0 : sessions_[op.who - kNames]);
}

// Sometimes a request comes with a unit of its own, if need be that of an idle key.
KeyUnit Trial::spare_for(const Op& op) {
  if (op.pick % 4 != 1) return {};
  KeyUnit unit = budget_.take();
  if (!unit) {
    unit = table_.reclaim_idle();
    model_.reclaim_idle(is_left_);
    digest_ = digest();
  }
  return unit;
}

std::string Trial::acquire(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  const AcquireRequest request{.key = key,
                               .holder = holder_of(op),
                               .ttl = Duration(op.ttl),
                               .wait = Duration(op.wait),
                               .kind = kind_of(op.key),
                               .limit = op.limit};
  Listener* const listener = &listeners_[op.pick % 2];
  KeyUnit spare = spare_for(op);
  const bool has_spare{spare};
  say(" by ", text(LockModel::Owner(request.holder)), " ttl ", op.ttl, " wait ", op.wait, " limit ",
      op.limit, has_spare ? " with a spare unit" : "");
  Conflict conflict;
  const auto reply =
      table_.acquire(now, request, listener, waits_.size(), std::move(spare), &conflict);
  const auto answer = model_.acquire(now, request, listener, waits_.size(), has_spare);
  if (std::string wrong = compare(reply, answer); !wrong.empty()) return wrong;
  if (reply.outcome == Outcome::queued) note_wait(reply.slot, op.pick % 2);
  const bool in_the_way = reply.outcome == Outcome::held || reply.outcome == Outcome::max_waiters ||
                          reply.outcome == Outcome::limit_mismatch;
  if (!in_the_way) return {};
  return compare(conflict, LockModel::conflict(model_.find(request.kind, key)));
}

std::string Trial::enqueue(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  Op mine = op;
  if (op.who < kNoSession) mine.who = kNames + op.who % kSessions;
  const EnqueueRequest request{.key = key,
                               .holder = holder_of(mine),
                               .ttl = Duration(op.ttl),
                               .kind = kind_of(op.key),
                               .limit = op.limit};
  KeyUnit spare = spare_for(op);
  const bool has_spare{spare};
  say(" by ", text(LockModel::Owner(request.holder)), " ttl ", op.ttl, " limit ", op.limit,
      has_spare ? " with a spare unit" : "");
  const auto reply = table_.enqueue(now, request, std::move(spare));
  return compare(reply, model_.enqueue(now, request, has_spare));
}

std::string Trial::await_turn(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  const Kind kind = kind_of(op.key);
  const SessionId session = sessions_[op.who % kSessions];
  Listener* const listener = &listeners_[op.pick % 2];
  say(" by session ", session, " wait ", op.wait);
  const auto reply =
      table_.await_turn(now, session, kind, key, Duration(op.wait), listener, waits_.size());
  const auto answer =
      model_.await_turn(now, session, kind, key, Duration(op.wait), listener, waits_.size());
  if (std::string wrong = compare(reply, answer); !wrong.empty()) return wrong;
  if (reply.outcome == Outcome::expired) refused_ = false;  // that is told once
  if (reply.outcome == Outcome::queued) note_wait(reply.slot, op.pick % 2);
  return {};
}

// Mostly a hold that is there; else one that was, or another key's, or a fence that never was.
LockModel::Happened Trial::choose_hold(const Op& op) const {
  const std::string name = name_of(op.key);
  const unsigned which = op.pick / 8;
  LockModel::Happened chosen(
      Event{.type = Event::Type::granted, .kind = kind_of(op.key), .key = name, .fence = which});
  const LockModel::Key* key = model_.find(kind_of(op.key), name);
  const unsigned choice = op.pick % 8;
  if (choice < 6 && key != nullptr && !key->holds.empty()) {
    const LockModel::Held& hold = key->holds[which % key->holds.size()];
    chosen.fence = hold.fence;
    chosen.owner = hold.owner;
  } else if (choice < 7 && !past_.empty()) {
    chosen = past_[past_.size() - 1 - which % past_.size()];
    if (choice == 6) chosen.key = name;
  }
  return chosen;
}

std::string Trial::end_or_renew(const Op& op, Time now) {
  const LockModel::Happened chosen = choose_hold(op);
  const HoldId id{.key = chosen.key,
                  .holder = op.pick % 8 == 5 ? holder_of(op) : chosen.owner.view(),
                  .fence = chosen.fence,
                  .kind = chosen.kind};
  say(": ", text(id.kind, id.key), " #", id.fence, " of ", text(LockModel::Owner(id.holder)));
  if (op.verb == Verb::release) {
    const LockTable::Reply reply{table_.release(now, id)};
    return compare(reply, {model_.release(now, id)});
  }
  if (op.verb == Verb::withdraw) {
    const bool done = table_.withdraw(now, id);
    say(done ? " -> ok" : " -> no");
    refused_ = !done;
    return done == model_.withdraw(now, id) ? "" : "another answer to withdraw";
  }
  std::optional<Duration> ttl;
  if (op.wait != 0) ttl = Duration(op.ttl);
  if (ttl.has_value()) say(" ttl ", ttl->count());
  const LockTable::Reply reply = table_.renew(now, id, ttl);
  return compare(reply, model_.renew(now, id, ttl));
}

// Mostly a wait that is there; else one that was, or another under its slot.
std::string Trial::cancel(const Op& op, Time now) {
  if (waits_.empty()) return {};
  std::uint64_t id = op.pick % waits_.size();
  if (op.pick % 8 < 6 && !pending_.empty()) {
    const auto chosen = static_cast<std::ptrdiff_t>(op.pick % pending_.size());
    id = *std::next(pending_.begin(), chosen);
  }
  const std::uint32_t slot = waits_[id].slot;
  const Listener* const listener = &listeners_[waits_[id].listener ^ (op.pick % 8 == 7)];
  say(": wait ", id);
  const bool done = table_.cancel(now, slot, listener, id);
  say(done ? " -> ok" : " -> no");
  refused_ = !done;
  return done == model_.cancel(now, listener, id) ? "" : "another answer to cancel";
}

std::string Trial::look(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  refused_ = true;
  if (op.verb == Verb::fence) {
    const FenceStatus its = table_.fence(now, key);
    say(its.held ? " -> held #" : " -> free #", its.fence);
    const FenceStatus mine = model_.fence(now, key);
    return its.held == mine.held && its.fence == mine.fence ? "" : "another fence";
  }
  Conflict conflict;
  const bool is_held = table_.explain(now, kind_of(op.key), key, &conflict);
  const std::optional<Conflict> mine = model_.explain(now, kind_of(op.key), key);
  if (is_held != mine.has_value()) return "another answer to explain";
  return is_held ? compare(conflict, mine) : "";
}

// In a few small steps, with nothing between them: the session asks for nothing more.
std::string Trial::end_session(const Op& op, Time now) {
  SessionId& session = sessions_[op.who % kSessions];
  const bool keep_holds = op.pick % 2 == 1;
  const int budget = 1 + static_cast<int>(op.pick / 2 % 8);
  say(": session ", session, keep_holds ? " keeps its holds" : "");
  for (int calls = 0; !table_.end_session(now, session, keep_holds, budget); ++calls) {
    if (calls > 10'000) return "end_session() does not come to an end";
  }
  model_.end_session(now, session, keep_holds);
  session = ++last_session_;
  return {};
}

std::string Trial::advance(const Op& op, Time now) {
  const int budget = op.pick == 0 ? 1 << 30 : static_cast<int>(op.pick % 24);
  say(": ", budget, " steps");
  const bool done = table_.advance(now, budget);
  model_.advance(now);
  if (!done && op.pick == 0) return "advance() does not come to an end";
  if (done && model_.next_deadline() <= model_.now()) return "advance() left something that is due";
  return {};
}

std::string Trial::forget(const Op& op) {
  if (op.verb == Verb::reclaim_idle) {
    const KeyUnit unit = table_.reclaim_idle();
    return bool{unit} == model_.reclaim_idle(is_left_) ? "" : "another answer to reclaim_idle";
  }
  const Time since{now_.ns - std::min<std::uint64_t>(now_.ns, op.pick % 16)};
  const std::size_t keys_max = 1 + op.pick / 16 * 3;
  say(": ", keys_max, " keys since ", since.ns);
  const std::size_t forgotten = table_.forget_idle(since, keys_max);
  if (forgotten == model_.forget_idle(since, keys_max, is_left_)) return {};
  return "another number of keys forgotten";
}

std::string Trial::end_waits() {
  for (Cursor cursor; !cursor.done;) table_.end_waits(cursor, Outcome::closed);
  model_.end_waits(Outcome::closed);
  return {};
}

// Checking.

std::string Trial::compare(const LockTable::Reply& reply, const LockModel::Answer& answer) {
  say(" -> ", describe(reply.outcome));
  if (reply.outcome == Outcome::ok)
    say(" #", reply.grant.fence, " until ", reply.grant.expires_at.ns);
  refused_ = is_refusal(reply.outcome);
  refusals_.held += reply.outcome == Outcome::held;
  refusals_.max_waiters += reply.outcome == Outcome::max_waiters;
  refusals_.limit_mismatch += reply.outcome == Outcome::limit_mismatch;
  if (reply.outcome != answer.outcome) {
    return "the model says " + std::string(describe(answer.outcome));
  }
  return LockModel::is_same(reply.grant, answer.grant) ? "" : "another grant";
}

std::string Trial::compare(const Conflict& its, const std::optional<Conflict>& mine) const {
  const auto fields = [](const Conflict& c) {
    return std::tuple(c.holder, c.fence, c.expires_at, c.limit, c.holders, c.waiters);
  };
  return mine.has_value() && fields(its) == fields(*mine) ? "" : "another conflict";
}

std::string Trial::check_effects() {
  const Effects& effects = table_.effects();
  for (const Event& event : effects.events) {
    if (event.type != Event::Type::granted) continue;
    if (event.fence <= highest_) return "fences-rise: a fence that is not larger than all before";
    highest_ = event.fence;
  }
  for (const Settled& settled : effects.settled) {
    if (pending_.erase(settled.id) != 1) return "settled-once: a wait that nobody waits";
  }
  if (!standby_.apply(effects.events)) return "replay-equals: an event is refused";
  if (!snapshot_->apply_twice(effects.events)) return "replay-equals: a snapshot refuses an event";
  return model_.difference_of_effects(effects);
}

std::string Trial::check_occurrences() {
  const Effects& effects = table_.effects();
  for (const Occurrence& occurrence : effects.occurrences) {
    if (occurrence.at > table_.now()) return "an occurrence from the future";
    if (std::string wrong = onlooker_.see(occurrence); !wrong.empty()) return wrong;
  }
  for (const Event& event : effects.events) renewals_ += event.type == Event::Type::renewed;
  const Figures figures = table_.figures();
  if (figures.renewals != renewals_) return "counted: renewals";
  const Figures::Refusals& refusals = figures.refusals;
  if (refusals.held != refusals_.held || refusals.max_waiters != refusals_.max_waiters ||
      refusals.limit_mismatch != refusals_.limit_mismatch) {
    return "counted: refusals";
  }
  // What was missed shows later; the gauges are looked at by check() after every call.
  if (effects.occurrences.empty() && steps_ % 16 != 0) return {};
  if (std::string wrong = onlooker_.difference(figures); !wrong.empty()) return wrong;
  return onlooker_.difference(model_);
}

std::string Trial::check_state() {
  if (std::string broken = table_.check(); !broken.empty()) return broken;
  const auto keys = static_cast<std::int64_t>(table_.keys());
  if (budget_.left() != static_cast<std::int64_t>(setup_.keys_max) - keys) {
    return "bounded: keys and units do not add up";
  }
  for (SessionId session : sessions_) {
    if (table_.knows_session(session) != model_.knows_session(session)) {
      return "a session that is known, or not";
    }
  }
  if (table_.next_deadline() > model_.next_deadline()) return "next_deadline() comes too late";
  if (model_.next_deadline() == Time::never() && table_.next_deadline() != Time::never()) {
    return "next_deadline() of nothing";
  }
  return model_.difference_of_state(table_);
}

// A few keys are described before every call; what the calls cause comes after.
std::string Trial::describe_some() {
  if (snapshot_ != nullptr && snapshot_->cursor.done) {
    snapshot_->apply_floor(table_.last_fence());
    const std::string difference = snapshot_->difference(model_);
    if (!difference.empty()) return "replay-equals: described meanwhile: " + difference;
    snapshot_ = nullptr;
  }
  if (snapshot_ == nullptr) snapshot_ = std::make_unique<Replica>(setup_.hash_seed + 2);
  const std::string wrong = snapshot_->describe(table_, 1 + steps_ % 3);
  return wrong.empty() ? "" : "replay-equals: " + wrong;
}

std::string Trial::check_replicas() {
  if (std::string difference = standby_.difference(model_); !difference.empty()) {
    return "replay-equals: " + difference;
  }
  Replica copy(setup_.hash_seed + 3);
  copy.apply_floor(table_.last_fence());
  std::string wrong;
  while (wrong.empty() && !copy.cursor.done) wrong = copy.describe(table_, 2);
  if (wrong.empty()) wrong = copy.difference(model_);
  return wrong.empty() ? "" : "replay-equals: described: " + wrong;
}

// Everything of the table that can be seen from outside.
std::uint64_t Trial::digest() const {
  std::uint64_t all = table_.last_fence();
  const auto add = [&](std::uint64_t value) { all = (all ^ value) * 0x9e3779b97f4a7c15 + all / 7; };
  Cursor cursor;
  table_.walk(cursor, SIZE_MAX, [&](const Semaphore& s) {
    add(hash_bytes(s.key(), static_cast<std::uint64_t>(s.kind)));
    add(s.limit);
    add(s.first.fence);
    add(s.first.since.ns);
    for (const Hold* h = s.holds.front(); h != nullptr; h = s.holds.next(h)) {
      add(h->fence);
      add(h->deadline.ns);
      add(static_cast<std::uint64_t>(h->ttl.count()));
      add(h->two_phase + 2u * h->untold);
    }
    for (const Waiter* w = s.line.front(); w != nullptr; w = s.line.next(w)) {
      add(w->id);
      add(w->armed() ? w->deadline.ns : 0);
      add(w->since.ns);
    }
  });
  return all;
}

// Counting.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif
constexpr std::uint64_t kOperations = kSanitized ? 200'000 : 4'000'000;

class LockTableProperty : public testing::Test {
 protected:
  static void TearDownTestSuite() {
    std::cout << "LockTable against LockModel: " << operations_ << " operations\n";
  }

  static std::uint64_t wanted() {
    const char* set = std::getenv("LOCKD_PROPERTY_OPERATIONS");
    return set == nullptr ? kOperations : std::strtoull(set, nullptr, 10);
  }

  static std::string play(const History& history, std::ostream* log = nullptr) {
    Trial trial(history.setup, log);
    std::string wrong;
    for (const Op& op : history.ops) {
      ++operations_;
      wrong = trial.step(op);
      if (!wrong.empty()) return wrong;
    }
    return trial.finish();
  }

  // Plays histories until there were as many operations.
  static void play_many(std::uint64_t operations, bool crowd, int length_max) {
    const std::uint64_t until = operations_ + operations;
    rc::detail::TestParams params = rc::detail::configuration().testParams;
    params.maxSuccess = 100;
    params.maxSize = length_max;
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    const rc::detail::TestMetadata metadata{info->name(), info->name()};
    for (; operations_ < until; ++params.seed) {
      const auto result = rc::detail::checkTestable(
          [crowd] {
            const History history = *some_history(crowd);
            const std::string wrong = play(history);
            std::ostringstream log;
            if (!wrong.empty()) play(history, &log);
            return wrong + log.str();
          },
          metadata, params);
      if (result.template is<rc::detail::SuccessResult>()) continue;
      std::ostringstream message;
      rc::detail::printResultMessage(result, message);
      FAIL() << "RC_PARAMS=\"seed=" << params.seed << "\"\n" << message.str();
    }
    EXPECT_GE(operations_, until);
  }

 private:
  static inline std::uint64_t operations_ = 0;
};

TEST_F(LockTableProperty, FewKeys) { play_many(wanted() / 4 * 3, false, 200); }

// More falls due at once than one call ends: the table is behind, and must not show it.
TEST_F(LockTableProperty, ManyKeysFallDueTogether) { play_many(wanted() / 4, true, 400); }

}  // namespace
}  // namespace lockd
