#include "core/testing/model_check.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "base/hash.h"

namespace lockd {
namespace {

constexpr std::array kNotes = {"", "", "deploy", "backup of the night"};
// Longer than a history. The rules leave open when the wait of a set times out among other timeouts
// of the same instant in several keys.
constexpr Duration kSetWait = std::chrono::hours(24 * 365 * 100);
constexpr std::array kValidNames = {"ann", "bob", "a name that does not fit inside"};

bool is_refusal(Outcome outcome) {
  return outcome != Outcome::ok && outcome != Outcome::queued && outcome != Outcome::timeout;
}

// Whether the reply comes with a Conflict: the request was refused because of existing holds or
// waiters.
bool is_in_the_way(Outcome outcome) {
  return outcome == Outcome::held || outcome == Outcome::max_waiters ||
         outcome == Outcome::limit_mismatch || outcome == Outcome::mode_mismatch ||
         outcome == Outcome::permits_mismatch;
}

}  // namespace

ModelCheck::ModelCheck(const Setup& setup, std::ostream* log)
    : setup_(setup),
      options_{.waiters_max = setup.waiters_max,
               .refuses_tries_at_full_queue = setup.refuses_tries_at_full_queue,
               .keeps_idle_limits = setup.keeps_idle_limits,
               .ttl_max = Duration(setup.ttl_max),
               .last_fence = setup.last_fence(),
               .hash_key = HashKey::of_seed(setup.hash_seed)},
      log_(log),
      budget_(setup.keys_max),
      holds_({setup.holds_max, setup.holds_per_client_max}),
      table_(options_, budget_, &holds_),
      model_(options_, setup.keys_max, {setup.holds_max, setup.holds_per_client_max}),
      now_{setup.start},
      highest_fence_(setup.last_fence()),
      standby_(setup.hash_seed + 1) {
  table_.observe(Observed::everything);
  for (Session& session : sessions_) session = new_session();
  standby_.apply_floor(setup.last_fence());
  digest_ = digest();
}

std::string ModelCheck::step(const Op& op) {
  now_.ns += static_cast<std::uint64_t>(std::max(op.step, std::int64_t{0}));
  Time now{now_.ns + static_cast<std::uint64_t>(std::min(op.step, std::int64_t{0}))};
  // The rules leave open whether an invalid request advances the table's time.
  if (is_flawed(op)) now = table_.now();
  if (std::string wrong = describe_some(); !wrong.empty()) return wrong;

  const bool nothing_due = model_.next_deadline() > std::max(now, model_.now());
  refused_ = false;
  table_.effects().clear();
  model_.watch(table_.effects());
  log("\n  ", now.ns, ": ");
  call_time_ = now;
  std::string wrong = call(op, now);
  settle_sets();
  for (const Event& event : table_.effects().events) {
    if (event.type == Event::Type::granted) past_grants_.emplace_back(event);
  }
  if (wrong.empty()) wrong = check_effects();
  if (wrong.empty()) wrong = check_events();
  if (wrong.empty()) wrong = check_state();
  const std::uint64_t before = std::exchange(digest_, digest());
  if (wrong.empty() && refused_ && nothing_due && digest_ != before) {
    wrong = "failed-changes-nothing: a refusal changed the table";
  }
  if (wrong.empty() && ++steps_ % 16 == 0) wrong = check_replicas();
  return wrong;
}

// Ends everything that is due, in small steps, and then all waits.
std::string ModelCheck::finish() {
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

std::string ModelCheck::call(const Op& op, Time now) {
  log(kVerbNames[static_cast<std::size_t>(op.verb)], ' ', text(kind_of(op.key), name_of(op.key)));
  switch (op.verb) {
    case Verb::acquire: return acquire(op, now);
    case Verb::enqueue: return enqueue(op, now);
    case Verb::await_turn: return await_turn(op, now);
    case Verb::renew:
    case Verb::release:
    case Verb::withdraw: return renew_or_end(op, now);
    case Verb::cancel: return cancel(op, now);
    case Verb::fence:
    case Verb::explain: return query(op, now);
    case Verb::end_session: return end_session(op, now);
    case Verb::advance: return advance(op, now);
    case Verb::forget_idle:
    case Verb::reclaim_idle: return forget(op);
    case Verb::end_waits: return end_waits();
    case Verb::revoke: return revoke(op, now);
    case Verb::resize: return resize(op, now);
    case Verb::acquire_set: return acquire_set(op, now);
    case Verb::renew_set:
    case Verb::release_set:
    case Verb::withdraw_set: return renew_or_end_set(op, now);
  }
  return "no such call";
}

// Two of three sessions have an identity, and some identities are equal.
Session ModelCheck::new_session() {
  const SessionId id = ++last_session_;
  if (id % 3 == 0) return {.id = id};
  return {.id = id,
          .client = std::make_shared<const ClientIdentity>(
              ClientIdentity{"ann@build-" + std::to_string(id % 2), "10.0.0.7:1", ""})};
}

// A secret is usually new. Sometimes it is the session's first, which gives no claim to its hold;
// and sometimes the client chose it from a few, which repeats a request of this or another session.
Holder ModelCheck::holder_of(const Op& op) {
  name_ = op.owner >= kBadTexts ? bad_text(op.owner - kBadTexts)
          : op.owner < kNames   ? kValidNames[op.owner]
                                : "";
  if (op.owner < kNames || op.owner >= kBadTexts) return Holder(name_);
  const bool is_chosen = op.pick % 8 == 2 || op.pick % 8 >= 6;
  const std::uint64_t secret = is_chosen          ? kNames + op.pick / 8 % 4
                               : op.pick % 8 == 0 ? op.owner
                                                  : ++last_secret_;
  const Holder holder = op.owner == kNoSession ? Holder::of_secret(secret)
                                               : Holder(&sessions_[op.owner - kNames], secret);
  return is_chosen ? holder.chosen() : holder;
}

// Some requests bring their own unit, which may come from an idle key.
KeyUnit ModelCheck::spare_for(const Op& op) {
  if (op.pick % 4 != 1) return {};
  KeyUnit unit = budget_.take();
  if (!unit) {
    unit = table_.reclaim_idle();
    model_.reclaim_idle(is_left_);
    digest_ = digest();
  }
  return unit;
}

void ModelCheck::log_terms(const Op& op, bool has_spare) {
  log(" limit ", op.limit, " permits ", op.permits, op.shared ? " shared" : "",
      has_spare ? " with a spare unit" : "");
}

std::string ModelCheck::acquire(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  const KeyRequest request{.key = key,
                           .holder = holder_of(op),
                           .ttl = Duration(op.ttl),
                           .wait = Duration(op.wait),
                           .kind = kind_of(op.key),
                           .limit = op.limit,
                           .note = kNotes[op.pick % 4],
                           .peer = op.pick % 8 == 3 ? "10.0.0.9:1" : "",
                           .mode = op.shared ? Mode::shared : Mode::exclusive,
                           .permits = op.permits};
  Listener* const listener = &listeners_[op.pick % 2];
  KeyUnit spare = spare_for(op);
  const bool has_spare{spare};
  log(" by ", text(LockModel::Owner(request.holder)), " ttl ", op.ttl, " wait ", op.wait);
  log_terms(op, has_spare);
  std::vector<Conflict> conflicts;
  const auto reply =
      table_.acquire(now, request, listener, waits_.size(), std::move(spare), &conflicts);
  const auto answer = model_.acquire(now, request, listener, waits_.size(), has_spare);
  const LockModel::ModelKey* asked = model_.find(request.kind, key);
  const Conflict acknowledged = asked == nullptr ? Conflict{} : LockModel::conflict(*asked);
  if (std::string wrong = compare(reply, answer); !wrong.empty()) return wrong;
  if (reply.outcome == Outcome::queued) add_wait(reply.slot, op.pick % 2);
  if (!is_in_the_way(reply.outcome)) return {};
  return conflicts.size() == 1 ? compare(conflicts.front(), acknowledged) : "no conflict";
}

std::string ModelCheck::enqueue(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  Op with_session = op;
  if (op.owner < kNoSession) with_session.owner = kNames + op.owner % kSessions;
  const KeyRequest request{.key = key,
                           .holder = holder_of(with_session),
                           .ttl = Duration(op.ttl),
                           .kind = kind_of(op.key),
                           .limit = op.limit,
                           .mode = op.shared ? Mode::shared : Mode::exclusive,
                           .permits = op.permits};
  KeyUnit spare = spare_for(op);
  const bool has_spare{spare};
  log(" by ", text(LockModel::Owner(request.holder)), " ttl ", op.ttl);
  log_terms(op, has_spare);
  const auto reply = table_.enqueue(now, request, std::move(spare));
  return compare(reply, model_.enqueue(now, request, has_spare));
}

std::string ModelCheck::await_turn(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  const Kind kind = kind_of(op.key);
  const SessionId session = sessions_[op.owner % kSessions].id;
  Listener* const listener = &listeners_[op.pick % 2];
  log(" by session ", session, " wait ", op.wait);
  const auto reply =
      table_.await_turn(now, session, kind, key, Duration(op.wait), listener, waits_.size());
  const auto answer =
      model_.await_turn(now, session, kind, key, Duration(op.wait), listener, waits_.size());
  if (std::string wrong = compare(reply, answer); !wrong.empty()) return wrong;
  if (reply.outcome == Outcome::expired) refused_ = false;  // the table forgets the lapsed grant
  if (reply.outcome == Outcome::queued) add_wait(reply.slot, op.pick % 2);
  return {};
}

// Usually an existing hold; otherwise a past hold, a hold of another key, or a fence never granted.
LockModel::OwnedEvent ModelCheck::choose_hold(const Op& op) const {
  const std::string name = name_of(op.key);
  const unsigned which = op.pick / 8;
  LockModel::OwnedEvent chosen(
      Event{.type = Event::Type::granted, .kind = kind_of(op.key), .key = name, .fence = which});
  const LockModel::ModelKey* key = model_.find(kind_of(op.key), name);
  const unsigned choice = op.pick % 8;
  if (choice < 6 && key != nullptr && !key->holds.empty()) {
    const LockModel::ModelHold& hold = key->holds[which % key->holds.size()];
    chosen.fence = hold.fence;
    chosen.owner = hold.owner;
  } else if (choice < 7 && !past_grants_.empty()) {
    chosen = past_grants_[past_grants_.size() - 1 - which % past_grants_.size()];
    if (choice == 6) chosen.key = name;
  } else if (choice == 7 && key != nullptr && !key->queue.empty()) {
    // A hold that may be granted within the call.
    chosen.fence = table_.last_fence() + 1 + which % 2;
    chosen.owner = key->queue.front().owner;
  }
  return chosen;
}

std::string ModelCheck::renew_or_end(const Op& op, Time now) {
  const LockModel::OwnedEvent chosen = choose_hold(op);
  const KeyHold id{.key = chosen.key,
                   .holder = op.pick % 8 == 5 ? holder_of(op) : chosen.owner.view(),
                   .fence = chosen.fence,
                   .kind = chosen.kind};
  log(": ", text(id.kind, id.key), " #", id.fence, " of ", text(LockModel::Owner(id.holder)));
  if (op.verb == Verb::release) {
    const LockTable::Reply reply{table_.release(now, id)};
    return compare(reply, {model_.release(now, id)});
  }
  if (op.verb == Verb::withdraw) {
    const bool done = table_.withdraw(now, id);
    log(done ? " -> ok" : " -> no");
    refused_ = !done;
    return done == model_.withdraw(now, id) ? "" : "another answer to withdraw";
  }
  std::optional<Duration> ttl;
  if (op.wait != 0) ttl = Duration(op.ttl);
  if (ttl.has_value()) log(" ttl ", ttl->count());
  const LockTable::Reply reply = table_.renew(now, id, ttl);
  return compare(reply, model_.renew(now, id, ttl));
}

// Usually a pending wait; otherwise an ended wait, or another listener for its slot.
std::string ModelCheck::cancel(const Op& op, Time now) {
  if (waits_.empty()) return {};
  std::uint64_t id = op.pick % waits_.size();
  if (op.pick % 8 < 6 && !pending_.empty()) {
    const auto chosen = static_cast<std::ptrdiff_t>(op.pick % pending_.size());
    id = *std::next(pending_.begin(), chosen);
  }
  const std::uint32_t slot = waits_[id].slot;
  const Listener* const listener = &listeners_[waits_[id].listener ^ (op.pick % 8 == 7)];
  log(": wait ", id);
  const bool done = table_.cancel(now, slot, listener, id);
  log(done ? " -> ok" : " -> no");
  refused_ = !done;
  return done == model_.cancel(now, listener, id) ? "" : "another answer to cancel";
}

std::string ModelCheck::query(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  refused_ = true;
  if (op.verb == Verb::fence) {
    const FenceStatus actual = table_.fence(now, key);
    log(actual.held ? " -> held #" : " -> free #", actual.fence);
    const FenceStatus expected = model_.fence(now, key);
    return actual.held == expected.held && actual.fence == expected.fence ? "" : "another fence";
  }
  Conflict conflict;
  const bool is_held = table_.explain(now, kind_of(op.key), key, &conflict);
  const std::optional<Conflict> expected = model_.explain(now, kind_of(op.key), key);
  if (is_held != expected.has_value()) return "another answer to explain";
  return is_held ? compare(conflict, expected) : "";
}

// In small steps without calls between them, because an ending session sends no more requests.
std::string ModelCheck::end_session(const Op& op, Time now) {
  const SessionId session = sessions_[op.owner % kSessions].id;
  const bool keep_holds = op.pick % 2 == 1;
  const int steps = 1 + static_cast<int>(op.pick / 2 % 8);
  log(": session ", session, keep_holds ? " keeps its holds" : "");
  int budget = steps;
  for (int calls = 0; !table_.end_session(now, session, keep_holds, &budget); ++calls) {
    if (calls > 10'000) return "end_session() does not come to an end";
    if (budget != 0) return "end_session() stops before its budget is spent";
    budget = steps;
  }
  model_.end_session(now, session, keep_holds);
  sessions_[op.owner % kSessions] = new_session();
  return {};
}

std::string ModelCheck::advance(const Op& op, Time now) {
  const int budget = op.pick == 0 ? 1 << 30 : static_cast<int>(op.pick % 24);
  log(": ", budget, " steps");
  const bool done = table_.advance(now, budget);
  model_.advance(now);
  if (!done && op.pick == 0) return "advance() does not come to an end";
  if (done && model_.next_deadline() <= model_.now()) return "advance() left something that is due";
  return {};
}

std::string ModelCheck::forget(const Op& op) {
  if (op.verb == Verb::reclaim_idle) {
    const KeyUnit unit = table_.reclaim_idle();
    return bool{unit} == model_.reclaim_idle(is_left_) ? "" : "another answer to reclaim_idle";
  }
  const Time since{now_.ns - std::min<std::uint64_t>(now_.ns, op.pick % 16)};
  const std::size_t keys_max = 1 + op.pick / 16 * 3;
  log(": ", keys_max, " keys since ", since.ns);
  const std::size_t forgotten = table_.forget_idle(since, keys_max);
  if (forgotten == model_.forget_idle(since, keys_max, is_left_)) return {};
  return "another number of keys forgotten";
}

std::string ModelCheck::end_waits() {
  call_time_ = table_.now();
  for (Cursor cursor; !cursor.done;) table_.end_waits(cursor, Outcome::closed);
  model_.end_waits(Outcome::closed);
  return {};
}

// Revokes one hold, or all holds of the key in steps. No request comes between the steps, so only
// the holds that existed before the first step may end.
std::string ModelCheck::revoke(const Op& op, Time now) {
  const LockModel::OwnedEvent chosen = choose_hold(op);
  LockTable::Revocation revocation{chosen.kind, chosen.key, chosen.fence, table_.last_fence()};
  if (op.owner % 4 == 0) revocation.fence.reset();
  const std::size_t holds_max = 1 + op.pick / 8 % 3;
  log(": ", text(chosen.kind, chosen.key), " #", revocation.fence.value_or(0));
  std::vector<Fence> actual;
  const auto note = [&](const Hold& hold) { actual.push_back(hold.fence); };
  const Outcome first = table_.revoke(now, revocation, holds_max, note);
  while (!actual.empty() && table_.revoke(now, revocation, holds_max, note) == Outcome::ok) {
  }
  std::vector<Fence> expected;
  const Outcome outcome = model_.revoke(now, revocation, &expected);
  if (actual != expected) return "other holds are revoked";
  revocations_ += actual.size();
  return compare({first}, {outcome});
}

std::string ModelCheck::resize(const Op& op, Time now) {
  const std::string key = name_of(op.key);
  const std::uint32_t limit = is_flawed(op) ? op.limit : 1 + op.pick % 6;
  log(" to ", limit);
  const LockTable::Reply reply{table_.resize(now, key, limit, {})};
  return compare(reply, {model_.resize(now, key, limit)});
}

// One to four distinct keys.
std::vector<unsigned> ModelCheck::choose_keys(const Op& op) const {
  std::vector<unsigned> keys;
  const unsigned step = 1 + op.pick / 4 % 2;
  for (unsigned i = 0; i <= op.pick % 4; ++i) {
    const unsigned key = i == 0 ? op.key : (op.key + i * step) % setup_.keys;
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

// The engine does the same at the end of every call.
void ModelCheck::settle_sets() {
  std::vector<std::shared_ptr<KeySet>>& sets = table_.effects().sets;
  const Time now = sets.empty() ? model_.now() : call_time_;
  while (!sets.empty()) {
    const std::shared_ptr<KeySet> set = sets.front();
    std::erase(sets, set);
    const std::vector<SetRules::TableRef> places(set->parts.size(), {&table_, 0});
    SetRules(call_time_, [] {}).settle(*set, places);
  }
  model_.settle_sets(now);
}

// The operation's mode, limit and permits apply to its own key; the other keys get usual values.
std::string ModelCheck::acquire_set(const Op& op, Time now) {
  std::vector<std::string> names;
  const std::vector<unsigned> keys = choose_keys(op);
  for (const unsigned key : keys) names.push_back(name_of(key));
  Op asker = op;
  if (op.owner < kBadTexts && op.pick % 16 != 15) asker.owner = op.owner % kNames;
  std::vector<KeyItem> items;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool is_lock = kind_of(keys[i]) == Kind::lock;
    const std::uint32_t limit = i == 0 ? op.limit : usual_limit(keys[i]);
    const bool is_shared = i == 0 ? op.shared : is_lock && (op.pick >> i) % 2 == 1;
    items.emplace_back(names[i], kind_of(keys[i]), is_shared ? Mode::shared : Mode::exclusive,
                       limit,
                       i == 0    ? op.permits
                       : is_lock ? 1
                                 : std::min(limit, op.permits));
    log(" + ", text(kind_of(keys[i]), names[i]), is_shared ? " shared" : "");
  }
  const AcquireRequest request{.keys = items,
                               .holder = holder_of(asker),
                               .ttl = Duration(op.ttl),
                               .wait = op.wait <= 0 ? Duration(op.wait) : kSetWait,
                               .note = kNotes[op.pick / 8 % 4]};
  log(" by ", text(LockModel::Owner(request.holder)), " ttl ", op.ttl, " wait ", op.wait);
  if (const Outcome flaw = SetRules::check(request); flaw != Outcome::ok) {
    const bool is_known = is_flawed(op) || asker.owner >= kNames;
    return is_known ? "" : "the model sees nothing wrong with it";
  }
  const std::vector<SetRules::TableRef> places(keys.size(), {&table_, 0});
  std::vector<KeyUnit> units;
  std::vector<Conflict> conflicts;
  Listener* const listener = &listeners_[op.pick % 2];
  const auto reply =
      SetRules(now, [] {}).acquire(request, places, listener, waits_.size(), units, &conflicts);
  const Fence last = table_.last_fence();
  std::vector<std::size_t> in_the_way;
  const auto answer = model_.acquire_set(now, request, listener, waits_.size(), last, &in_the_way);
  if (std::string wrong = compare(reply, answer); !wrong.empty()) return wrong;
  if (reply.outcome == Outcome::queued) add_wait(reply.slot, op.pick % 2);
  if (!is_in_the_way(reply.outcome)) return {};
  const bool is_same = std::ranges::equal(in_the_way, conflicts, {}, {}, &Conflict::item);
  return is_same ? "" : "other keys are in the way";
}

// Usually the keys of one grant; sometimes with a key of another grant.
std::string ModelCheck::renew_or_end_set(const Op& op, Time now) {
  if (is_flawed(op)) return {};
  const LockModel::ModelKey* picked = model_.find(kind_of(op.key), name_of(op.key));
  if (picked == nullptr || picked->holds.empty()) return {};
  const LockModel::ModelHold chosen = picked->holds[op.pick / 8 % picked->holds.size()];
  std::vector<std::pair<Kind, std::string>> names;
  for (const LockModel::ModelKey& key : model_.keys()) {
    const auto is_match = [&](const LockModel::ModelHold& hold) {
      return hold.fence == chosen.fence;
    };
    const bool is_one = std::ranges::any_of(key.holds, is_match);
    if (is_one || (op.pick % 8 == 7 && names.size() < 4)) names.emplace_back(key.kind, key.name);
  }
  std::vector<KeyItem> items;
  for (const auto& [kind, name] : names) items.emplace_back(name, kind);
  const HoldId id{.keys = items, .holder = chosen.owner.view(), .fence = chosen.fence};
  const std::vector<SetRules::TableRef> places(names.size(), {&table_, 0});
  log(": ", names.size(), " keys #", id.fence, " of ", text(chosen.owner));
  SetRules rules(now, [] {});
  if (op.verb == Verb::release_set) {
    const ReleaseResult actual{Outcome::ok, rules.release(id, places)};
    const std::vector<bool> expected = model_.release_set(now, id);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (actual.has_released(i) != expected[i]) return "other keys are released";
    }
    return "";
  }
  if (op.verb == Verb::withdraw_set) {
    const bool done = rules.withdraw(id, places);
    const bool is_same = done == model_.withdraw_set(now, id);
    refused_ = !done;
    return is_same ? "" : "another answer to withdraw";
  }
  std::optional<Duration> ttl;
  if (op.wait != 0) ttl = Duration(op.ttl);
  std::size_t missing = 0;
  const LockTable::Reply reply = rules.renew(id, places, ttl, &missing);
  const LockModel::ModelReply answer = model_.renew_set(now, id, ttl);
  return compare(reply, answer);
}

std::string ModelCheck::compare(const LockTable::Reply& reply,
                                const LockModel::ModelReply& answer) {
  log(" -> ", describe(reply.outcome));
  if (reply.outcome == Outcome::ok)
    log(" #", reply.grant.fence, " until ", reply.grant.expires_at.ns);
  refused_ = is_refusal(reply.outcome);
  refusals_.held += reply.outcome == Outcome::held;
  refusals_.max_waiters += reply.outcome == Outcome::max_waiters;
  refusals_.max_holds +=
      reply.outcome == Outcome::max_holds || reply.outcome == Outcome::max_client_holds;
  refusals_.limit_mismatch += reply.outcome == Outcome::limit_mismatch;
  if (reply.outcome != answer.outcome) {
    return "the model says " + std::string(describe(answer.outcome));
  }
  return LockModel::is_same(reply.grant, answer.grant) ? "" : "another grant";
}

std::string ModelCheck::compare(const Conflict& actual,
                                const std::optional<Conflict>& expected) const {
  const auto fields = [](const Conflict& c) {
    const ClientIdentity client = identity_of(c.client);
    return std::tuple(c.holder, c.session, client.name, client.peer, client.note, c.fence,
                      c.expires_at, c.limit, c.holders, c.waiters, c.mode, c.permits);
  };
  return expected.has_value() && fields(actual) == fields(*expected) ? "" : "another conflict";
}

std::string ModelCheck::check_effects() {
  const Effects& effects = table_.effects();
  for (const Event& event : effects.events) {
    if (event.type != Event::Type::granted) continue;
    const LockModel::Owner owner(event.holder);
    const bool is_of_set =
        event.fence == highest_fence_ && owner == highest_owner_ && !owner.is_secret;
    if (event.fence <= highest_fence_ && !is_of_set) {
      return "fences-rise: a fence that is not larger than all before";
    }
    highest_fence_ = event.fence;
    highest_owner_ = owner;
  }
  for (const WaitResult& result : effects.wait_results) {
    if (pending_.erase(result.id) != 1) return "settled-once: a wait that is not pending";
  }
  if (!standby_.apply(effects.events)) return "replay-equals: an event is refused";
  if (!snapshot_->apply_twice(effects.events)) return "replay-equals: a snapshot refuses an event";
  return model_.difference_of_effects(effects);
}

std::string ModelCheck::check_events() {
  const Effects& effects = table_.effects();
  for (const KeyEvent& event : effects.key_events) {
    if (event.at > table_.now()) return "an event from the future";
    if (std::string wrong = event_model_.see(event); !wrong.empty()) return wrong;
  }
  for (const Event& event : effects.events) renewals_ += event.type == Event::Type::renewed;
  const Stats stats = table_.stats();
  if (stats.renewals != renewals_) return "counted: renewals";
  if (stats.revocations != revocations_) return "counted: revocations";
  const Stats::Refusals& refusals = stats.refusals;
  if (refusals.held != refusals_.held || refusals.max_waiters != refusals_.max_waiters ||
      refusals.max_holds != refusals_.max_holds ||
      refusals.limit_mismatch != refusals_.limit_mismatch) {
    return "counted: refusals";
  }
  // A missed event shows in a later comparison. table_.check() checks the gauges after every call.
  if (effects.key_events.empty() && steps_ % 16 != 0) return {};
  if (std::string wrong = event_model_.difference(stats); !wrong.empty()) return wrong;
  return check_observed();
}

// Compares the state derived from key events with the model.
std::string ModelCheck::check_observed() const {
  using Entry = EventModel::Entry;
  std::ptrdiff_t in_use = 0;
  for (const LockModel::ModelKey& key : model_.keys()) {
    if (key.idle()) continue;
    ++in_use;
    const auto seen = event_model_.keys().find({key.kind, key.name});
    if (seen == event_model_.keys().end()) return "nothing was seen of " + text(key.kind, key.name);
    std::map<Fence, Entry> holds;
    for (const LockModel::ModelHold& hold : key.holds) {
      holds.emplace(hold.fence, Entry{hold.owner.display_name(), hold.client, hold.mode,
                                      hold.permits, hold.since});
    }
    const bool is_same_queue = std::ranges::equal(
        seen->second.queue, key.queue,
        [](const auto& place, const LockModel::ModelPlace& expected) {
          return place.second == Entry{expected.owner.display_name(), expected.client,
                                       expected.mode, expected.permits, expected.since};
        });
    if (seen->second.holds != holds || !is_same_queue) {
      return "the key events differ in " + text(key.kind, key.name);
    }
  }
  const auto seen_in_use = std::ranges::count_if(event_model_.keys(), [](const auto& entry) {
    return !entry.second.holds.empty() || !entry.second.queue.empty();
  });
  return in_use == seen_in_use ? "" : "a key was seen in use that is not";
}

std::string ModelCheck::check_state() {
  if (std::string broken = table_.check(); !broken.empty()) return broken;
  const LockTable* const all[] = {&table_};
  if (std::string broken = SetRules::check_all(all); !broken.empty()) return broken;
  const auto keys = static_cast<std::int64_t>(table_.keys());
  if (budget_.left() != static_cast<std::int64_t>(setup_.keys_max) - keys) {
    return "bounded: keys and units do not add up";
  }
  if (std::string wrong = check_holds(); !wrong.empty()) return wrong;
  for (const Session& session : sessions_) {
    const Owned actual = table_.sessions().owned(session.id);
    const Owned expected = model_.owned(session.id);
    if (actual.holds != expected.holds || actual.places != expected.places)
      return "what a session has";
    if (table_.sessions().has(session.id) != model_.has_session(session.id)) {
      return "a session that is known, or not";
    }
  }
  if (table_.next_deadline() > model_.next_deadline()) return "next_deadline() comes too late";
  if (model_.next_deadline() == Time::never() && table_.next_deadline() != Time::never()) {
    return "next_deadline() of nothing";
  }
  return model_.difference_of_state(table_);
}

std::string ModelCheck::check_holds() {
  const auto all = static_cast<std::int64_t>(model_.count_holds());
  if (setup_.holds_max != 0 && holds_.left() != static_cast<std::int64_t>(setup_.holds_max) - all) {
    return "bounded: holds and units do not add up";
  }
  if (setup_.holds_per_client_max == 0) return {};
  std::vector<Holder> clients(kValidNames.begin(), kValidNames.end());
  for (const Session& session : sessions_) clients.push_back(Holder::of_secret(0, session.id));
  for (const Holder& client : clients) {
    if (holds_.clients().count(client) != model_.count_holds(client)) {
      return "bounded: a client's holds are miscounted";
    }
  }
  return {};
}

// Describes a few keys before every call, so that a snapshot is written while the table changes.
std::string ModelCheck::describe_some() {
  if (snapshot_ != nullptr && snapshot_->cursor.done) {
    snapshot_->apply_floor(table_.last_fence());
    const std::string difference = snapshot_->difference(model_);
    if (!difference.empty()) return "replay-equals: described meanwhile: " + difference;
    snapshot_ = nullptr;
  }
  if (snapshot_ == nullptr) snapshot_ = std::make_unique<TableReplica>(setup_.hash_seed + 2);
  const std::string wrong = snapshot_->describe(table_, 1 + steps_ % 3);
  return wrong.empty() ? "" : "replay-equals: " + wrong;
}

std::string ModelCheck::check_replicas() {
  if (std::string difference = standby_.difference(model_); !difference.empty()) {
    return "replay-equals: " + difference;
  }
  TableReplica copy(setup_.hash_seed + 3);
  copy.apply_floor(table_.last_fence());
  std::string wrong;
  while (wrong.empty() && !copy.cursor.done) wrong = copy.describe(table_, 2);
  if (wrong.empty()) wrong = copy.difference(model_);
  return wrong.empty() ? "" : "replay-equals: described: " + wrong;
}

// A hash of the table's visible state.
std::uint64_t ModelCheck::digest() const {
  std::uint64_t all = table_.last_fence();
  const auto add = [&](std::uint64_t value) { all = (all ^ value) * 0x9e3779b97f4a7c15 + all / 7; };
  Cursor cursor;
  table_.walk(cursor, SIZE_MAX, [&](const Key& s) {
    add(hash_bytes(s.name(), HashKey::of_seed(static_cast<std::uint64_t>(s.kind))));
    add(s.limit());
    add(s.first.fence);
    add(s.first.since.ns);
    for (const Hold* h = s.holds.front(); h != nullptr; h = s.holds.next(h)) {
      add(h->fence);
      add(h->takes);
      add(h->deadline.ns);
      add(static_cast<std::uint64_t>(h->ttl.count()));
      add(h->two_phase + 2u * h->unacknowledged);
    }
    for (const QueuePlace* w = s.queue.front(); w != nullptr; w = s.queue.next(w)) {
      add(w->id);
      add(w->takes);
      add(w->armed() ? w->deadline.ns : 0);
      add(w->since.ns);
    }
  });
  return all;
}

}  // namespace lockd
