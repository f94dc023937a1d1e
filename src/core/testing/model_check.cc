#include "core/testing/model_check.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/hash.h"

namespace lockd {
namespace {

bool is_refusal(Outcome outcome) {
  return outcome != Outcome::ok && outcome != Outcome::queued && outcome != Outcome::timeout;
}

}  // namespace

ModelCheck::ModelCheck(const Setup& setup, std::ostream* log)
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

std::string ModelCheck::step(const Op& op) {
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

// Checking.

std::string ModelCheck::compare(const LockTable::Reply& reply, const LockModel::Answer& answer) {
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

std::string ModelCheck::compare(const Conflict& its, const std::optional<Conflict>& mine) const {
  const auto fields = [](const Conflict& c) {
    return std::tuple(c.holder, c.fence, c.expires_at, c.limit, c.holders, c.waiters);
  };
  return mine.has_value() && fields(its) == fields(*mine) ? "" : "another conflict";
}

std::string ModelCheck::check_effects() {
  const Effects& effects = table_.effects();
  for (const Event& event : effects.events) {
    if (event.type != Event::Type::granted) continue;
    if (event.fence <= highest_) return "fences-rise: a fence that is not larger than all before";
    highest_ = event.fence;
  }
  for (const WaitResult& settled : effects.wait_results) {
    if (pending_.erase(settled.id) != 1) return "settled-once: a wait that nobody waits";
  }
  if (!standby_.apply(effects.events)) return "replay-equals: an event is refused";
  if (!snapshot_->apply_twice(effects.events)) return "replay-equals: a snapshot refuses an event";
  return model_.difference_of_effects(effects);
}

std::string ModelCheck::check_occurrences() {
  const Effects& effects = table_.effects();
  for (const KeyEvent& occurrence : effects.key_events) {
    if (occurrence.at > table_.now()) return "an occurrence from the future";
    if (std::string wrong = onlooker_.see(occurrence); !wrong.empty()) return wrong;
  }
  for (const Event& event : effects.events) renewals_ += event.type == Event::Type::renewed;
  const Stats stats = table_.stats();
  if (stats.renewals != renewals_) return "counted: renewals";
  const Stats::Refusals& refusals = stats.refusals;
  if (refusals.held != refusals_.held || refusals.max_waiters != refusals_.max_waiters ||
      refusals.limit_mismatch != refusals_.limit_mismatch) {
    return "counted: refusals";
  }
  // What was missed shows later; the gauges are looked at by check() after every call.
  if (effects.key_events.empty() && steps_ % 16 != 0) return {};
  if (std::string wrong = onlooker_.difference(stats); !wrong.empty()) return wrong;
  return onlooker_.difference(model_);
}

std::string ModelCheck::check_state() {
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

// Everything of the table that can be seen from outside.
std::uint64_t ModelCheck::digest() const {
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

}  // namespace lockd
