#include "core/testing/lock_model.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

using Key = LockModel::Key;
using Held = LockModel::Held;
using Place = LockModel::Place;
using Answer = LockModel::Answer;
using Owner = LockModel::Owner;

template <typename Request>  // AcquireRequest or EnqueueRequest
Outcome flaw_of(const Request& request) {
  if (!is_name(request.key)) return Outcome::invalid_key;
  if (!request.holder.is_secret() && !is_name(request.holder.name()))
    return Outcome::invalid_holder;
  if (request.holder.session_id() > kSessionIdMax) return Outcome::invalid_holder;
  if (request.ttl < Duration(1)) return Outcome::invalid_ttl;
  if (request.limit < 1 || request.limit > kLimitMax) return Outcome::invalid_limit;
  if (request.kind == Kind::lock && request.limit != 1) return Outcome::invalid_limit;
  if (request.kind == Kind::semaphore && request.mode == Mode::shared) return Outcome::invalid_mode;
  if (request.permits < 1 || request.permits > request.limit) return Outcome::invalid_permits;
  return Outcome::ok;
}

ClientIdentity client_of_session(const Holder& holder) {
  const Session* session = holder.session();
  return session == nullptr || session->client == nullptr ? ClientIdentity{} : *session->client;
}

ClientIdentity client_of(const AcquireRequest& request) {
  if (request.holder.is_secret()) return client_of_session(request.holder);
  return {"", std::string(request.peer), std::string(request.note)};
}

ClientIdentity client_of(const EnqueueRequest& request) {
  return client_of_session(request.holder);
}

Held* find_hold(Key& key, Fence fence) {
  for (Held& hold : key.holds) {
    if (hold.fence == fence) return &hold;
  }
  return nullptr;
}

Held* find_two_phase_hold(Key& key, SessionId session) {
  for (Held& hold : key.holds) {
    if (hold.two_phase && hold.session == session) return &hold;
  }
  return nullptr;
}

std::optional<std::size_t> find_two_phase_place(const Key& key, SessionId session) {
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    if (key.queue[i].two_phase && key.queue[i].session == session) return i;
  }
  return {};
}

// Whether a name that has the one may be told that it has the other; or why not.
Outcome compare_terms(Mode held, std::uint32_t permits_held, Mode asked, std::uint32_t permits) {
  if (asked != held) return Outcome::mode_mismatch;
  return permits == permits_held ? Outcome::ok : Outcome::permits_mismatch;
}

bool has_session(const Key& key, SessionId session) {
  const auto is_its = [&](const auto& item) { return item.session == session; };
  return std::ranges::any_of(key.holds, is_its) || std::ranges::any_of(key.queue, is_its);
}

}  // namespace

template <typename Request>
Answer LockModel::grant_new(Key* key, const Request& request, bool has_spare) {
  if (is_exhausted(request.kind, request.key)) return {Outcome::fences_exhausted};
  if (key == nullptr) {
    if (!has_spare && keys_.size() >= keys_max_) return {Outcome::max_keys};
  }
  if (Outcome no = why_no_more(request.holder); no != Outcome::ok) return {no};
  if (key == nullptr) {
    key = &keys_.emplace_back(Key{.kind = request.kind, .name = std::string(request.key)});
  }
  if (key->idle()) key->limit = request.limit;
  return {Outcome::ok, grant(*key, place_of(request)).grant()};
}

Answer LockModel::acquire(Time now, const AcquireRequest& request, Listener* listener,
                          std::uint64_t id, bool has_spare) {
  if (Outcome flaw = flaw_of(request); flaw != Outcome::ok) return refuse(now, flaw);
  if (request.wait < Duration(0)) return refuse(now, Outcome::invalid_wait);
  Key* key = at(now, request.kind, request.key);
  if (key != nullptr && !key->idle()) {
    if (!key->matches(request.limit)) return {Outcome::limit_mismatch};
    if (Held* own = key->find_named(Owner(request.holder))) {
      const Outcome no = compare_terms(own->mode, own->permits, request.mode, request.permits);
      if (no != Outcome::ok) return {no};
      own->ttl = capped(request.ttl);
      return {Outcome::ok, refresh(*key, *own, own->ttl)};
    }
    if (request.permits > key->limit) return {Outcome::limit_mismatch};
    if (!key->queue.empty() || !key->has_room(request.mode, request.permits)) {
      if (request.wait == Duration(0)) return {Outcome::held};
      if (is_full(*key)) return {Outcome::max_waiters};
      if (Outcome no = why_no_more(request.holder); no != Outcome::ok) return {no};
      key->queue.push_back(place_of(request));
      await(key->queue.back(), request.wait, listener, id);
      return {Outcome::queued};
    }
  }
  return grant_new(key, request, has_spare);
}

Answer LockModel::enqueue(Time now, const EnqueueRequest& request, bool has_spare) {
  const SessionId session = request.holder.session_id();
  if (Outcome flaw = flaw_of(request); flaw != Outcome::ok) return refuse(now, flaw);
  if (session == 0) return refuse(now, Outcome::invalid_holder);
  Key* key = at(now, request.kind, request.key);
  if (key != nullptr) {
    if (find_two_phase_hold(*key, session) || find_two_phase_place(*key, session)) {
      return {Outcome::already_enqueued};
    }
    const bool matches = key->matches(request.limit) && request.permits <= key->limit;
    if (!key->idle() && !matches) return {Outcome::limit_mismatch};
    const bool has_room = key->queue.empty() && key->has_room(request.mode, request.permits);
    if (!key->idle() && !has_room) {
      if (is_full(*key)) return {Outcome::max_waiters};
      if (Outcome no = why_no_more(request.holder); no != Outcome::ok) return {no};
      std::erase(key->lapsed, session);
      key->queue.push_back(place_of(request));
      key->queue.back().two_phase = true;
      return {Outcome::queued};
    }
  }
  const Answer answer = grant_new(key, request, has_spare);
  if (answer.outcome == Outcome::ok) {
    key = find_key(request.kind, request.key);
    std::erase(key->lapsed, session);
    key->holds.back().two_phase = true;
  }
  return answer;
}

Answer LockModel::await_turn(Time now, SessionId session, Kind kind, std::string_view name,
                             Duration wait, Listener* listener, std::uint64_t id) {
  if (!is_name(name)) return refuse(now, Outcome::invalid_key);
  if (wait < Duration(0)) return refuse(now, Outcome::invalid_wait);
  Key* key = at(now, kind, name);
  if (key == nullptr) return {Outcome::not_enqueued};
  if (Held* hold = find_two_phase_hold(*key, session)) {
    hold->two_phase = hold->untold = false;
    return {Outcome::ok, refresh(*key, *hold, hold->ttl)};
  }
  if (std::erase(key->lapsed, session) > 0) return {Outcome::expired};
  const auto place = find_two_phase_place(*key, session);
  if (!place.has_value()) return {Outcome::not_enqueued};
  if (key->queue[*place].listener != nullptr) return {Outcome::not_enqueued};
  if (wait == Duration(0)) {
    leave_queue(*key, *place, Outcome::timeout);
    return {Outcome::timeout};
  }
  await(key->queue[*place], wait, listener, id);
  return {Outcome::queued};
}

Answer LockModel::renew(Time now, const HoldId& id, std::optional<Duration> ttl) {
  if (!is_name(id.key)) return refuse(now, Outcome::invalid_key);
  if (ttl.has_value() && *ttl < Duration(1)) return refuse(now, Outcome::invalid_ttl);
  Key* key = at(now, id.kind, id.key);
  if (Outcome no = why_not(key, id); no != Outcome::ok) return {no};
  Held& hold = *find_hold(*key, id.fence);
  const Duration lease = capped(ttl.value_or(hold.ttl));
  Grant grant = refresh(*key, hold, lease);
  grant.ttl = lease;
  return {Outcome::ok, grant};
}

// Nobody knows the fence that is granted as they ask.
Outcome LockModel::why_not(Key* key, const HoldId& id) const {
  if (key == nullptr || key->holds.empty()) return Outcome::expired;
  if (const Held* hold = find_hold(*key, id.fence)) {
    const bool is_its = hold->owner == Owner(id.holder) && hold->fence <= known_;
    return is_its ? Outcome::ok : Outcome::not_holder;
  }
  const bool is_older =
      std::ranges::any_of(key->holds, [&](const Held& hold) { return hold.fence > id.fence; });
  return is_older ? Outcome::stale : Outcome::not_holder;
}

Outcome LockModel::release(Time now, const HoldId& id) {
  if (!is_name(id.key)) return refuse(now, Outcome::invalid_key).outcome;
  Key* key = at(now, id.kind, id.key);
  if (Outcome no = why_not(key, id); no != Outcome::ok) return no;
  end_hold(*key, id.fence, EndCause::released);
  pass_on(*key);
  return Outcome::ok;
}

bool LockModel::withdraw(Time now, const HoldId& id) {
  Key* key = at(now, id.kind, id.key);
  if (why_not(key, id) != Outcome::ok || find_hold(*key, id.fence)->renewed) return false;
  end_hold(*key, id.fence, EndCause::disconnected);
  pass_on(*key);
  return true;
}

bool LockModel::cancel(Time now, const Listener* listener, std::uint64_t id) {
  follow(now);
  const auto find_place = [&](const Key& key) {
    return std::ranges::find_if(key.queue, [&](const Place& place) {
      return place.listener == listener && place.id == id;
    });
  };
  for (Key& key : keys_) {
    if (find_place(key) == key.queue.end()) continue;
    run_all(key);
    const auto place = find_place(key);
    if (place == key.queue.end()) return false;
    leave_queue(key, static_cast<std::size_t>(place - key.queue.begin()), Outcome::cancelled);
    return true;
  }
  return false;
}

Outcome LockModel::revoke(Time now, const LockTable::Revocation& revocation,
                          std::vector<Fence>* ended) {
  if (!is_name(revocation.key)) return refuse(now, Outcome::invalid_key).outcome;
  Key* key = at(now, revocation.kind, revocation.key);
  if (key == nullptr || key->holds.empty()) return Outcome::expired;
  for (const Held& hold : key->holds) {
    const bool is_meant = revocation.fence.has_value() ? hold.fence == *revocation.fence
                                                       : hold.fence <= revocation.last;
    if (is_meant && hold.fence <= known_) ended->push_back(hold.fence);
  }
  for (const Fence fence : *ended) {
    end_hold(*key, fence, EndCause::revoked);
    pass_on(*key);
  }
  return ended->empty() ? Outcome::stale : Outcome::ok;
}

Outcome LockModel::resize(Time now, std::string_view name, std::uint32_t limit) {
  if (!is_name(name)) return refuse(now, Outcome::invalid_key).outcome;
  if (limit < 1 || limit > kLimitMax) return refuse(now, Outcome::invalid_limit).outcome;
  Key* key = at(now, Kind::semaphore, name);
  if (key == nullptr || key->idle()) return Outcome::expired;
  if (key->first_limit == 0) key->first_limit = key->limit;
  key->limit = limit;
  events_.emplace_back(Event{
      .type = Event::Type::resized, .kind = Kind::semaphore, .limit = limit, .key = key->name});
  for (std::size_t i = key->queue.size(); i-- > 0;) {
    if (key->queue[i].permits > limit) settle(*key, i, Outcome::limit_mismatch);
  }
  pass_on(*key);
  return Outcome::ok;
}

FenceStatus LockModel::fence(Time now, std::string_view name) {
  const Key* key = at(now, Kind::lock, name);
  if (key == nullptr) return {false, last_fence_};
  return {!key->holds.empty(), key->last_fence};
}

std::optional<Conflict> LockModel::explain(Time now, Kind kind, std::string_view name) {
  return conflict(at(now, kind, name));
}

std::optional<Conflict> LockModel::conflict(const Key* key) {
  if (key == nullptr || key->holds.empty()) return {};
  const Held& latest = key->holds.back();
  return Conflict{
      .holder = latest.owner.display_name(),
      .session = latest.owner.session,
      .client = std::make_shared<const ClientIdentity>(latest.client),
      .fence = latest.fence,
      .expires_at = latest.deadline,
      .limit = key->limit,
      .holders = static_cast<std::uint32_t>(key->holds.size()),
      .waiters = static_cast<std::uint32_t>(key->queue.size()),
      .mode = latest.mode,
      .permits = static_cast<std::uint32_t>(key->kind == Kind::lock ? 0 : key->permits_in_use())};
}

void LockModel::end_session(Time now, SessionId session, bool keep_holds) {
  follow(now);
  for (Key& key : keys_) {
    if (has_session(key, session)) end_session(key, session, keep_holds);
    std::erase(key.lapsed, session);
  }
}

// Places go first, all of them: what is left behind must not fall to the session that ends.
void LockModel::end_session(Key& key, SessionId session, bool keep_holds) {
  run_all(key);
  for (std::size_t i = key.queue.size(); i-- > 0;) {
    if (key.queue[i].session == session) settle(key, i, Outcome::cancelled);
  }
  pass_on(key);
  std::vector<Fence> ending;
  for (Held& hold : key.holds) {
    if (hold.session != session) continue;
    if (!keep_holds || hold.untold) ending.push_back(hold.fence);
    hold.two_phase = false;
    hold.session = 0;
  }
  for (Fence fence : ending) {
    end_hold(key, fence, EndCause::disconnected);
    pass_on(key);
  }
}

void LockModel::end_waits(Outcome why) {
  for (Key& key : keys_) {
    while (!key.queue.empty()) settle(key, 0, why);
  }
}

Owned LockModel::owned(SessionId session) const {
  const auto is_its = [&](const auto& item) { return item.session == session; };
  Owned all;
  for (const Key& key : keys_) {
    all.holds += static_cast<std::uint64_t>(std::ranges::count_if(key.holds, is_its));
    all.places += static_cast<std::uint64_t>(std::ranges::count_if(key.queue, is_its));
  }
  return all;
}

bool LockModel::knows_session(SessionId session) const {
  return std::ranges::any_of(keys_, [&](const Key& key) { return has_session(key, session); });
}

// Time: what falls due, and how far the model follows the table.

void LockModel::watch(const Effects& seen) {
  seen_ = &seen;
  events_.clear();
  settled_.clear();
  earliest_ = Time::never();
}

// What the table has ended by itself ends here too, as far as the table has come.
void LockModel::follow(Time now) {
  now_ = std::max(now_, now);
  if (seen_->events.empty() && seen_->wait_results.empty()) return;
  for (Key& key : keys_) {
    while (is_ahead(key) && run_next(key)) {
    }
  }
}

// Whether the table has ended something of this key that is still here.
bool LockModel::is_ahead(const Key& key) const {
  const auto has_settled = [&](const Place& place) {
    return turn_of(place) < seen_->wait_results.size();
  };
  return std::ranges::any_of(key.holds, [&](const Held& hold) { return has_ended(hold); }) ||
         std::ranges::any_of(key.queue, has_settled);
}

bool LockModel::has_ended(const Held& hold) const {
  return std::ranges::any_of(seen_->events, [&](const Event& event) {
    return event.type == Event::Type::ended && event.fence == hold.fence;
  });
}

// When the table has settled it: after how many others. Behind all of them if it has not.
std::size_t LockModel::turn_of(const Place& place) const {
  const auto is_its = [&](const WaitResult& settled) {
    return settled.listener == place.listener && settled.id == place.id;
  };
  const auto found = place.listener == nullptr ? seen_->wait_results.end()
                                               : std::ranges::find_if(seen_->wait_results, is_its);
  return static_cast<std::size_t>(found - seen_->wait_results.begin());
}

// Ends what comes first of all that is due: by deadline, leases before waits; among equals, leases
// that the table has ended first, and waits as the table has: who leaves first may let in the next.
// False when nothing is due.
bool LockModel::run_next(Key& key) {
  using Rank = std::tuple<Time, bool, std::size_t>;
  Rank first{Time::never(), true, SIZE_MAX};
  std::optional<Fence> lease;
  std::optional<std::size_t> wait;
  for (const Held& hold : key.holds) {
    const Rank rank{hold.deadline, false, !has_ended(hold)};
    if (hold.deadline > now_ || rank >= first) continue;
    first = rank;
    lease = hold.fence;
  }
  for (std::size_t i = 0; i < key.queue.size(); ++i) {
    const Rank rank{key.queue[i].deadline, true, turn_of(key.queue[i])};
    if (key.queue[i].deadline > now_ || rank >= first) continue;
    first = rank;
    wait = i;
  }
  if (wait.has_value()) {
    leave_queue(key, *wait, Outcome::timeout);
  } else if (lease.has_value()) {
    end_hold(key, *lease, EndCause::expired);
    pass_on(key);
  }
  return wait.has_value() || lease.has_value();
}

void LockModel::run_all(Key& key) {
  while (run_next(key)) {
  }
}

// The key that a call is about, with everything that is due there ended.
Key* LockModel::at(Time now, Kind kind, std::string_view name) {
  known_ = last_fence_;
  follow(now);
  Key* key = find_key(kind, name);
  if (key != nullptr) run_all(*key);
  return key;
}

void LockModel::advance(Time now) { follow(now); }

// What is refused for its form is about no key.
Answer LockModel::refuse(Time now, Outcome flaw) {
  follow(now);
  return {flaw};
}

Time LockModel::next_deadline() const {
  Time next = Time::never();
  for (const Key& key : keys_) {
    for (const Held& hold : key.holds) next = std::min(next, hold.deadline);
    for (const Place& place : key.queue) next = std::min(next, place.deadline);
  }
  return next;
}

// Keys.

Key* LockModel::find_key(Kind kind, std::string_view name) {
  for (Key& key : keys_) {
    if (key.kind == kind && key.name == name) return &key;
  }
  return nullptr;
}

const Key* LockModel::find(Kind kind, std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.kind == kind && key.name == name) return &key;
  }
  return nullptr;
}

std::size_t LockModel::forget_idle(Time since, std::size_t keys_max, const IsLeft& is_left) {
  std::size_t forgotten = 0;
  while (forgotten < keys_max) {
    const auto key = longest_idle(is_left);
    if (key == keys_.end() || key->idle_since > since) break;
    keys_.erase(key);
    ++forgotten;
  }
  return forgotten;
}

bool LockModel::reclaim_idle(const IsLeft& is_left) {
  const auto key = longest_idle(is_left);
  if (key == keys_.end()) return false;
  keys_.erase(key);
  return keys_.size() < keys_max_;
}

// Among keys that became idle at one instant, one that the table has forgotten.
std::vector<Key>::iterator LockModel::longest_idle(const IsLeft& is_left) {
  auto longest = keys_.end();
  for (auto key = keys_.begin(); key != keys_.end(); ++key) {
    if (!key->idle()) continue;
    if (longest == keys_.end() || key->idle_since < longest->idle_since ||
        (key->idle_since == longest->idle_since && !is_left(*key))) {
      longest = key;
    }
  }
  return longest;
}

// Holds.

Held* LockModel::Key::find_named(const Owner& owner) {
  for (Held& hold : holds) {
    if (!owner.is_secret && hold.owner == owner) return &hold;
  }
  return nullptr;
}

std::uint64_t LockModel::Key::permits_in_use() const {
  std::uint64_t permits = 0;
  for (const Held& hold : holds) permits += hold.permits;
  return permits;
}

bool LockModel::Key::has_room(Mode mode, std::uint32_t permits) const {
  if (kind == Kind::semaphore) return permits_in_use() + permits <= limit;
  const auto shares = [](const Held& hold) { return hold.mode == Mode::shared; };
  return holds.empty() || (mode == Mode::shared && std::ranges::all_of(holds, shares));
}

// Fences are the table's to number; a 0 is none, and no table grants it.
Fence LockModel::next_fence(Kind kind, std::string_view name) const {
  const Key* key = find(kind, name);
  for (const Event& event : seen_->events) {
    if (event.type != Event::Type::granted || event.kind != kind || event.key != name) continue;
    if (key == nullptr || event.fence > key->last_fence) return event.fence;
  }
  return 0;
}

// The last fence goes to whichever key comes first, so the whole call counts.
bool LockModel::is_exhausted(Kind kind, std::string_view name) const {
  Fence last = last_fence_;
  for (const Event& event : seen_->events) {
    if (event.type == Event::Type::granted) last = std::max(last, event.fence);
  }
  return last >= kFenceMax && next_fence(kind, name) == 0;
}

Held& LockModel::grant(Key& key, const Place& asked) {
  const Fence fence = next_fence(key.kind, key.name);
  last_fence_ = std::max(last_fence_, fence);
  key.last_fence = std::max(key.last_fence, fence);
  key.holds.push_back({.owner = asked.owner,
                       .client = asked.client,
                       .session = asked.session,
                       .mode = asked.mode,
                       .permits = asked.permits,
                       .fence = fence,
                       .ttl = asked.ttl,
                       .deadline = now_ + asked.ttl,
                       .since = now_});
  earliest_ = std::min(earliest_, now_ + asked.ttl);
  events_.emplace_back(Event{.type = Event::Type::granted,
                             .kind = key.kind,
                             .limit = key.limit,
                             .first_limit = key.first_limit,
                             .key = key.name,
                             .holder = asked.owner.view(),
                             .client = asked.client,
                             .mode = asked.mode,
                             .permits = asked.permits,
                             .fence = fence,
                             .ttl = asked.ttl,
                             .expires_at = now_ + asked.ttl});
  return key.holds.back();
}

Grant LockModel::refresh(const Key& key, Held& hold, Duration ttl) {
  hold.deadline = now_ + ttl;
  hold.renewed = true;
  earliest_ = std::min(earliest_, hold.deadline);
  events_.emplace_back(Event{.type = Event::Type::renewed,
                             .kind = key.kind,
                             .key = key.name,
                             .fence = hold.fence,
                             .ttl = hold.ttl,
                             .expires_at = hold.deadline});
  return hold.grant();
}

// pass_on() must follow.
void LockModel::end_hold(Key& key, Fence fence, EndCause cause) {
  const auto hold = std::ranges::find(key.holds, fence, &Held::fence);
  const bool lapses = cause == EndCause::expired || cause == EndCause::revoked;
  if (hold->two_phase && lapses) key.lapsed.push_back(hold->session);
  key.holds.erase(hold);
  events_.emplace_back(Event{.type = Event::Type::ended,
                             .kind = key.kind,
                             .cause = cause,
                             .key = key.name,
                             .fence = fence});
}

void LockModel::pass_on(Key& key) {
  while (!key.queue.empty() && key.has_room(key.queue[0].mode, key.queue[0].permits)) promote(key);
  if (!key.idle()) return;
  key.idle_since = now_;
  if (key.first_limit != 0) key.limit = std::exchange(key.first_limit, 0);
}

// Gives the first of the queue what it waits for. The other places of its name have that grant too;
// or end, where they ask for it in another way.
void LockModel::promote(Key& key) {
  const Place first = key.queue.front();
  if (is_exhausted(key.kind, key.name)) return settle(key, 0, Outcome::fences_exhausted);
  Held& hold = grant(key, first);
  hold.two_phase = hold.untold = first.two_phase && first.listener == nullptr;
  settle(key, 0, Outcome::ok, hold.grant());
  for (std::size_t i = key.queue.size(); i-- > 0;) {
    const Place& other = key.queue[i];
    if (first.owner.is_secret || other.owner != first.owner) continue;
    const Outcome no = compare_terms(hold.mode, hold.permits, other.mode, other.permits);
    hold.renewed = hold.renewed || no == Outcome::ok;
    settle(key, i, no, no == Outcome::ok ? hold.grant() : Grant{});
  }
}

// Queues.

bool LockModel::is_full(const Key& key) const {
  return options_.waiters_max != 0 && key.queue.size() >= options_.waiters_max;
}

// Why there may be no hold or place more of this holder, or ok.
Outcome LockModel::why_no_more(const Holder& holder) const {
  const bool is_somebody = !holder.is_secret() || holder.session_id() != 0;
  const std::uint32_t client_max = holds_.holds_per_client_max;
  if (is_somebody && client_max != 0 && count_holds(holder) >= client_max) {
    return Outcome::max_client_holds;
  }
  if (holds_.holds_max != 0 && count_holds() >= holds_.holds_max) return Outcome::max_holds;
  return Outcome::ok;
}

std::size_t LockModel::count_holds() const {
  std::size_t count = 0;
  for (const Key& key : keys_) count += key.holds.size() + key.queue.size();
  return count;
}

std::size_t LockModel::count_holds(const Holder& holder) const {
  const auto is_its = [&](const auto& item) {
    if (holder.is_secret()) return item.session == holder.session_id();
    return item.owner == Owner(holder);
  };
  std::ptrdiff_t count = 0;
  for (const Key& key : keys_) {
    count += std::ranges::count_if(key.holds, is_its) + std::ranges::count_if(key.queue, is_its);
  }
  return static_cast<std::size_t>(count);
}

Duration LockModel::capped(Duration ttl) const {
  return options_.ttl_max == Duration(0) ? ttl : std::min(ttl, options_.ttl_max);
}

template <typename Request>
Place LockModel::place_of(const Request& request) const {
  return {.owner = Owner(request.holder),
          .client = client_of(request),
          .session = request.holder.session_id(),
          .mode = request.mode,
          .permits = request.permits,
          .ttl = capped(request.ttl),
          .since = now_};
}

void LockModel::await(Place& place, Duration wait, Listener* listener, std::uint64_t id) {
  place.listener = listener;
  place.id = id;
  place.deadline = now_ + wait;
  earliest_ = std::min(earliest_, place.deadline);
}

// Whoever was behind it may fit where it did not.
void LockModel::leave_queue(Key& key, std::size_t at, Outcome why) {
  settle(key, at, why);
  pass_on(key);
}

// The place is gone; whoever waited is told.
void LockModel::settle(Key& key, std::size_t at, Outcome outcome, const Grant& grant) {
  const Place place = key.queue[at];
  key.queue.erase(key.queue.begin() + static_cast<std::ptrdiff_t>(at));
  if (place.listener == nullptr) return;
  settled_.push_back({place.listener, place.id, outcome, grant, now_ - place.since});
}

// What it is told in.

LockModel::Owner::Owner(const Holder& holder)
    : is_secret(holder.is_secret()),
      name(holder.name()),
      secret(holder.secret()),
      session(holder.session_id()) {}

std::string LockModel::Owner::display_name() const {
  return is_secret ? "tcp:" + std::to_string(session) : name;
}

LockModel::Happened::Happened(const Event& event)
    : type(event.type), kind(event.kind), key(event.key), fence(event.fence) {
  if (type == Event::Type::ended) {
    cause = event.cause;
    return;
  }
  ttl = event.ttl;
  expires_at = event.expires_at;
  if (type == Event::Type::granted || type == Event::Type::resized) limit = event.limit;
  if (type == Event::Type::granted) {
    owner = Owner(event.holder);
    client = {std::string(event.client.name), std::string(event.client.peer),
              std::string(event.client.note)};
    first_limit = event.first_limit;
    mode = event.mode;
    permits = event.permits;
  }
}

}  // namespace lockd
