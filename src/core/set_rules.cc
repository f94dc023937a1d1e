#include "core/set_rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace lockd {
namespace {

Outcome check_keys(const KeyItems& keys) {
  if (keys.empty() || keys.size() > kKeysPerSetMax || keys.find_duplicate() < keys.size())
    return Outcome::invalid_set;
  const bool good = std::ranges::all_of(keys, [](const KeyItem& i) { return is_name(i.key); });
  return good ? Outcome::ok : Outcome::invalid_key;
}

// The request that joined the queue at this place.
KeyRequest request_of(const QueuePlace& place) {
  const Kind kind = place.key->kind;
  return {.key = place.key->name(),
          .holder = place.holder.view(),
          .ttl = place.ttl,
          .kind = kind,
          .mode = mode_of(kind, place.takes),
          .permits = permits_of(kind, place.takes)};
}

}  // namespace

Outcome SetRules::check(const AcquireRequest& request) {
  if (Outcome bad = check_keys(request.keys); bad != Outcome::ok) return bad;
  if (request.holder.is_secret()) return Outcome::invalid_holder;
  if (request.wait < Duration::zero()) return Outcome::invalid_wait;
  for (const KeyItem& item : request.keys) {
    const Outcome bad = LockTable::check_request(request_for(item, request));
    if (bad != Outcome::ok) return bad;
  }
  return Outcome::ok;
}

Outcome SetRules::check(const HoldId& id) { return check_keys(id.keys); }

// Acquiring and waiting.

LockTable::Reply SetRules::acquire(const AcquireRequest& request, std::span<const TableRef> refs,
                                   Listener* listener, std::uint64_t id,
                                   std::vector<KeyUnit>& units, std::vector<Conflict>* conflicts) {
  find(refs, request);
  for (const Part& part : parts_) {
    if (!part.fits_limit()) {
      list(conflicts);
      return {part.table->stats().refused(Outcome::limit_mismatch)};
    }
  }
  if (const std::optional<LockTable::Reply> reply = repeat(conflicts)) return *reply;
  const bool enters = std::ranges::all_of(parts_, &Part::may_enter);
  if (!enters) {
    if (Outcome no = queue_refusal(listener); no != Outcome::ok) {
      list(conflicts);
      return {no};
    }
  }
  if (enters && next_fence() > kFenceMax) return {Outcome::fences_exhausted};
  if (Outcome no = admit(units); no != Outcome::ok) return {no};
  make_keys(units);
  return enters ? LockTable::Reply{Outcome::ok, grant()} : join(refs, listener, id);
}

void SetRules::explain(const AcquireRequest& request, std::span<const TableRef> refs,
                       std::vector<Conflict>& conflicts) {
  find(refs, request);
  list(&conflicts);
}

// Ends what is due at the keys. All tables use the same time, so that the leases end together.
void SetRules::find(std::span<const TableRef> refs, const AcquireRequest& request) {
  for (const TableRef& ref : refs) now_ = std::max(now_, ref.table->now());
  parts_.reserve(refs.size());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const KeyItem& item = request.keys[i];
    At at(now_);
    at.key_hash = refs[i].key_hash;
    TableState& table = refs[i].table->state();
    Key* const key = table.find(at, item.kind, item.key);
    parts_.push_back({&table, request_for(item, request), key});
  }
  flush_();
}

bool SetRules::Part::fits_limit() const {
  return key == nullptr || !table->limits().has_binding_limit(*key) ||
         key->matches(request.limit, own() == nullptr ? takes_of(request) : 0);
}

bool SetRules::Part::may_enter() const {
  return key == nullptr || key->idle() || key->may_enter(takes_of(request));
}

Hold* SetRules::Part::own() const {
  return key == nullptr ? nullptr : table->find_own(*key, request.holder);
}

bool SetRules::Part::is_taken_by(const Hold& hold) const { return hold.takes == takes_of(request); }

// A name that holds all of the keys under one fence gets its grant again. A name that holds some of
// them would wait for itself. Empty if it holds none.
std::optional<LockTable::Reply> SetRules::repeat(std::vector<Conflict>* conflicts) {
  const PartHolds own = own_holds();
  if (own.empty()) return {};
  const Outcome outcome = outcome_for(own);
  if (outcome == Outcome::ok) {
    return LockTable::Reply{outcome, grant_again(own, parts_.front().request.ttl)};
  }
  list(conflicts);
  if (outcome == Outcome::held) parts_.front().table->stats().refused(outcome);
  return LockTable::Reply{outcome};
}

SetRules::PartHolds SetRules::own_holds() const {
  PartHolds holds;
  for (const Part& part : parts_) {
    if (Hold* own = part.own()) holds.push_back(own);
  }
  return holds;
}

// The outcome of the request for a name that has these holds.
Outcome SetRules::outcome_for(const PartHolds& own) const {
  if (!are_one_grant(own)) return Outcome::held;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (!parts_[i].is_taken_by(*own[i])) return mismatch_of(parts_[i].request.kind);
  }
  return Outcome::ok;
}

bool SetRules::are_one_grant(const PartHolds& holds) const {
  return holds.size() == parts_.size() && std::ranges::all_of(holds, [&](const Hold* hold) {
           return hold->fence == holds.front()->fence;
         });
}

Grant SetRules::grant_again(const PartHolds& holds, Duration ttl) {
  for (std::size_t i = 0; i < holds.size(); ++i) parts_[i].table->extend(*holds[i], ttl);
  flush_();
  return shortest_grant(holds);
}

// The keys may have been renewed apart, so their leases may differ.
Grant SetRules::shortest_grant(const PartHolds& holds) const {
  Grant grant = parts_.front().table->remaining_grant(*holds.front());
  for (std::size_t i = 1; i < holds.size(); ++i) {
    const Grant other = parts_[i].table->remaining_grant(*holds[i]);
    grant.ttl = std::min(grant.ttl, other.ttl);
    grant.expires_at = std::min(grant.expires_at, other.expires_at);
  }
  return grant;
}

// Why the request gets no places, or ok.
Outcome SetRules::queue_refusal(const Listener* listener) {
  const Part& first = parts_.front();
  const Duration wait = first.request.wait;
  const bool is_try = wait == Duration::zero();
  if (!is_try && listener == nullptr) return Outcome::held;  // not counted: the caller asks again
  for (const Part& part : parts_) {
    if (part.key == nullptr) continue;
    if (!part.table->limits().is_refused_by_queue(*part.key, wait)) continue;
    return part.table->limits().refuse(part.request, part.key, Outcome::max_waiters, now_);
  }
  return is_try ? first.table->stats().refused(Outcome::held) : Outcome::ok;
}

// Takes a unit for each key that does not exist and for each hold or place. Takes all of the holds'
// units or none.
Outcome SetRules::admit(std::vector<KeyUnit>& units) {
  const auto missing = std::ranges::count(parts_, nullptr, &Part::key);
  while (std::ssize(units) < missing) {
    KeyUnit unit = parts_.front().table->limits().keys().take();
    if (!unit) return Outcome::max_keys;
    units.push_back(std::move(unit));
  }
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const Outcome no = part.table->limits().admit(part.request, part.key, now_);
    if (no == Outcome::ok) continue;
    while (i-- > 0) parts_[i].table->limits().holds().give_back(parts_[i].request.holder);
    return no;
  }
  return Outcome::ok;
}

void SetRules::make_keys(std::vector<KeyUnit>& units) {
  for (Part& part : parts_) {
    const KeyRequest& request = part.request;
    if (part.key == nullptr) {
      part.key = &part.table->create(request.kind, request.key, std::move(units.back()));
      part.key->first.fence =
          part.table->fences().last;  // an earlier key of this name had no larger
      units.pop_back();
    }
    if (part.key->idle()) part.key->set_limit(request.limit);
  }
}

Fence SetRules::next_fence() const {
  Fence last = 0;
  for (const Part& part : parts_) last = std::max(last, part.table->fences().last);
  return last + 1;
}

Grant SetRules::grant() {
  const Fence fence = next_fence();
  Grant grant;
  for (const Part& part : parts_) {
    grant = TableState::grant_of(part.table->grant(*part.key, part.request, fence));
  }
  flush_();
  return grant;
}

LockTable::Reply SetRules::join(std::span<const TableRef> refs, Listener* listener,
                                std::uint64_t id) {
  const auto set = std::make_shared<KeySet>();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    QueuePlace& place =
        part.table->join(*part.key, part.request, std::make_unique<SetPlace>(set, i));
    set->parts.push_back({refs[i].number, &place});
    part.table->start_wait(place, part.request.wait, listener, id);
  }
  return {Outcome::queued, {}, set->parts.front().place->slot};
}

// Lists the keys that are in the way of the request. For a name that holds all of them, these are
// the keys that it holds otherwise than it now asks.
void SetRules::list(std::vector<Conflict>* conflicts) const {
  if (conflicts == nullptr) return;
  const bool has_all = are_one_grant(own_holds());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const Hold* const own = part.own();
    if (own == nullptr && part.fits_limit() && part.may_enter()) continue;
    if (has_all && part.fits_limit() && part.is_taken_by(*own)) continue;
    Conflict& conflict = conflicts->emplace_back(part.table->explain(*part.key, own));
    conflict.item = i;
    conflict.own = own != nullptr;
  }
}

// Renewing and ending.

// One entry for each key: null if the holder does not hold it under this fence.
SetRules::PartHolds SetRules::find_holds(const HoldId& id, std::span<const TableRef> refs) {
  find(refs, {.keys = id.keys, .holder = id.holder, .ttl = {}});
  PartHolds holds;
  for (const Part& part : parts_) {
    Hold* const hold = part.table->find_hold(part.key, id.fence);
    holds.push_back(hold != nullptr && hold->holder.equals(id.holder) ? hold : nullptr);
  }
  return holds;
}

LockTable::Reply SetRules::renew(const HoldId& id, std::span<const TableRef> refs,
                                 std::optional<Duration> ttl, std::size_t* item) {
  if (ttl.has_value() && *ttl <= Duration::zero()) return {Outcome::invalid_ttl};
  const PartHolds holds = find_holds(id, refs);
  const auto missing = std::ranges::find(holds, nullptr);
  if (missing != holds.end()) {
    *item = static_cast<std::size_t>(missing - holds.begin());
    const Part& part = parts_[*item];
    return {part.table->why_not_held(part.key, hold_for(id.keys[*item], id))};
  }
  for (std::size_t i = 0; i < holds.size(); ++i) {
    parts_[i].table->renew(*holds[i], ttl.value_or(holds[i]->ttl));
  }
  flush_();
  Grant grant = TableState::grant_of(*holds.front());
  for (const Hold* hold : holds) grant.expires_at = std::min(grant.expires_at, hold->deadline);
  grant.ttl = grant.expires_at - parts_.front().table->now();
  return {Outcome::ok, grant};
}

std::uint64_t SetRules::release(const HoldId& id, std::span<const TableRef> refs) {
  const PartHolds holds = find_holds(id, refs);
  std::uint64_t released = 0;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    released |= std::uint64_t{holds[i] != nullptr} << i;
  }
  end(holds, EndCause::released);
  return released;
}

bool SetRules::withdraw(const HoldId& id, std::span<const TableRef> refs) {
  const PartHolds holds = find_holds(id, refs);
  const auto is_kept = [](const Hold* hold) { return hold == nullptr || hold->renewed; };
  if (std::ranges::any_of(holds, is_kept)) return false;
  end(holds, EndCause::disconnected);
  return true;
}

// Ends all of the holds before any of the keys is granted to a waiter.
void SetRules::end(const PartHolds& holds, EndCause cause) {
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i] != nullptr) parts_[i].table->end_hold(*holds[i], cause);
  }
  flush_();
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (holds[i] != nullptr) parts_[i].table->grant_next(*parts_[i].key);
  }
}

// Settling.

void SetRules::settle(KeySet& set, std::span<const TableRef> refs) {
  for (const TableRef& ref : refs) now_ = std::max(now_, ref.table->now());
  for (std::size_t i = 0; i < refs.size(); ++i) {
    TableState& table = refs[i].table->state();
    table.advance(now_, TableState::kStepsPerCall);
    if (const QueuePlace* place = set.parts[i].place) table.catch_up(*place->key);
  }
  flush_();
  if (!set.is_over()) decide(set, refs);
  if (!set.is_over()) return;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    if (QueuePlace* left = set.parts[i].place) {
      refs[i].table->state().leave_queue(*left, set.outcome);
    }
  }
}

// Precondition: the set waits, so all of its places are there.
void SetRules::decide(KeySet& set, std::span<const TableRef> refs) {
  bool is_ready = true;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const QueuePlace& place = *set.parts[i].place;
    Key& key = *place.key;
    parts_.push_back({&refs[i].table->state(), request_of(place), &key});
    is_ready = is_ready && key.queue.front() == &place && key.fits(place.takes);
  }
  const PartHolds own = own_holds();
  if (!own.empty()) {
    // The name was granted some of the keys by another request, and would wait for itself.
    const Outcome outcome = outcome_for(own);
    const bool has_all = outcome == Outcome::ok;
    end(set, outcome, has_all ? grant_again(own, parts_.front().request.ttl) : Grant{});
  } else if (is_ready && next_fence() > kFenceMax) {
    end(set, Outcome::fences_exhausted, {});
  } else if (is_ready) {
    grant(set);
  }
}

void SetRules::grant(KeySet& set) {
  const Fence fence = next_fence();
  PartHolds holds;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    holds.push_back(&parts_[i].table->grant(*set.parts[i].place, fence));
  }
  end(set, Outcome::ok, TableState::grant_of(*holds.front()));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].table->remove_place(*set.parts[i].place);
  }
  flush_();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].table->grant_same_owner(*holds[i]);
    parts_[i].table->grant_next(*parts_[i].key);
  }
}

// Notifies the listener. The places remain.
void SetRules::end(KeySet& set, Outcome why, const Grant& grant) {
  set.end(why);
  const QueuePlace& place = *set.parts.front().place;
  parts_.front().table->effects().wait_results.push_back(
      {place.listener, place.id, why, grant, now_ - place.since});
}

// Checking.

namespace {

// For each waiting set, the sets that stand right before it in some queue.
using Sets = std::map<const KeySet*, std::set<const KeySet*>>;

bool is_in_circle(const KeySet* set, const Sets& before, std::set<const KeySet*>& path,
                  std::set<const KeySet*>& done) {
  if (done.contains(set)) return false;
  if (!path.insert(set).second) return true;
  for (const KeySet* earlier : before.at(set)) {
    if (is_in_circle(earlier, before, path, done)) return true;
  }
  path.erase(set);
  done.insert(set);
  return false;
}

// The last waiting set before a place in its queue, or null.
const KeySet* set_before(const QueuePlace& place) {
  const WaitQueue& queue = place.key->queue;
  const KeySet* last = nullptr;
  for (const QueuePlace* w = queue.front(); w != &place; w = queue.next(w)) {
    const auto* const set = set_of(*w);
    if (set != nullptr && !(*set)->is_over()) last = set->get();
  }
  return last;
}

}  // namespace

std::string SetRules::check_all(std::span<const LockTable* const> tables) {
  Sets before;
  for (const LockTable* table : tables) {
    const PlaceIndex& places = table->state().places();
    for (std::uint32_t slot = 0; slot < places.slots(); ++slot) {
      const QueuePlace* const place = places.find(slot);
      if (place == nullptr || !place->of_set) continue;
      const SetPlace& member = static_cast<const SetPlace&>(*place);
      const KeySet& set = *member.set;
      if (set.is_over()) continue;  // its places are about to be removed
      if (set.parts[member.part].place != place) return "all-or-none: a place of another set";
      if (std::ranges::find(set.parts, nullptr, &KeySet::Part::place) != set.parts.end()) {
        return "all-or-none: a set waits with some of its places";
      }
      std::set<const KeySet*>& earlier = before[&set];
      if (const KeySet* last = set_before(*place)) earlier.insert(last);
    }
  }
  std::set<const KeySet*> done;
  for (const auto& [set, earlier] : before) {
    std::set<const KeySet*> path;
    if (is_in_circle(set, before, path, done)) return "no-circle: sets wait for each other";
  }
  return {};
}

}  // namespace lockd
