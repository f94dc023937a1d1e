// Compares the LockModel with a table, and describes the differences.
#include <algorithm>
#include <sstream>
#include <tuple>

#include "core/testing/lock_model.h"

namespace lockd {
namespace {

using ModelKey = LockModel::ModelKey;
using ModelHold = LockModel::ModelHold;
using ModelPlace = LockModel::ModelPlace;
using Owner = LockModel::Owner;
using OwnedEvent = LockModel::OwnedEvent;

ModelKey model_key_of(const LockTable& table, const Key& key) {
  ModelKey seen{.kind = key.kind,
                .name = std::string(key.name()),
                .limit = key.limit(),
                .first_limit = key.first_limit(),
                .last_fence = key.first.fence,
                .idle_since = key.first.since};
  for (auto* h = key.holds.front(); h != nullptr; h = key.holds.next(h)) {
    seen.holds.push_back({.owner = Owner(h->holder.view()),
                          .client = identity_of(table.client_of(*h)),
                          .session = h->session_peers.linked() ? h->holder.session_id() : 0,
                          .mode = h->mode(),
                          .permits = h->permits(),
                          .fence = h->fence,
                          .ttl = h->ttl,
                          .deadline = h->deadline,
                          .since = h->since,
                          .two_phase = h->two_phase,
                          .unacknowledged = h->unacknowledged,
                          .renewed = h->renewed});
  }
  for (auto* w = key.queue.front(); w != nullptr; w = key.queue.next(w)) {
    seen.queue.push_back({.owner = Owner(w->holder.view()),
                          .client = identity_of(w->client),
                          .session = w->session_peers.linked() ? w->holder.session_id() : 0,
                          .mode = mode_of(key.kind, w->takes),
                          .permits = permits_of(key.kind, w->takes),
                          .ttl = w->ttl,
                          .since = w->since,
                          .two_phase = w->two_phase,
                          .of_set = w->of_set,
                          .listener = w->listener,
                          .id = w->id,
                          .deadline = w->armed() ? w->deadline : Time::never()});
  }
  return seen;
}

bool is_same_wait(const WaitResult& a, const WaitResult& b) {
  return a.listener == b.listener && a.id == b.id && a.outcome == b.outcome &&
         a.waited == b.waited && LockModel::is_same(a.grant, b.grant);
}

template <typename... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream all;
  (all << ... << parts);
  return all.str();
}

std::string text(Mode mode, std::uint32_t permits) {
  const std::string of = permits == 1 ? "" : joined(" permits ", permits);
  return mode == Mode::shared ? of + " shared" : of;
}

std::string text(const Grant& grant) {
  return joined(" #", grant.fence, " ttl ", grant.ttl.count(), " until ", grant.expires_at.ns,
                " secret ", grant.secret);
}

std::string text(const LockModel::OwnedEvent& event) {
  static constexpr const char* kTypes[] = {" granted to ", " resized", " renewed", " ended"};
  return joined(text(event.kind, event.key), kTypes[static_cast<int>(event.type)],
                event.type == Event::Type::granted ? text(event.owner) : "", text(event.client),
                text(Grant{event.fence, event.ttl, event.expires_at, event.owner.secret}),
                text(event.mode, event.permits), " limit ", event.limit, " first ",
                event.first_limit, " cause ", static_cast<int>(event.cause));
}

std::string text(const WaitResult& result) {
  return joined("wait ", result.id, ' ', describe(result.outcome), text(result.grant), " waited ",
                result.waited.count());
}

std::string text(const ModelKey& key) {
  std::string all =
      joined(text(key.kind, key.name), " limit ", key.limit, " first ", key.first_limit, " last #",
             key.last_fence, " idle since ", key.idle_since.ns);
  for (const ModelHold& hold : key.holds) {
    all += joined("\n      ", text(hold.owner), text(hold.client), text(hold.mode, hold.permits),
                  text(hold.grant()), " since ", hold.since.ns, " session ", hold.session,
                  hold.two_phase ? " two-phase" : "", hold.unacknowledged ? " unacknowledged" : "",
                  hold.renewed ? " renewed" : "");
  }
  for (const ModelPlace& place : key.queue) {
    all += joined("\n      wait ", place.id, ' ', text(place.owner), text(place.client),
                  text(place.mode, place.permits), " ttl ", place.ttl.count(), " until ",
                  place.deadline.ns, " since ", place.since.ns, " session ", place.session,
                  place.two_phase ? " two-phase" : "", place.of_set ? " of a set" : "",
                  place.listener == nullptr ? " parked" : "");
  }
  return all;
}

template <typename Item>
std::string compared(std::string what, const std::vector<Item>& expected,
                     const std::vector<Item>& actual) {
  what += "\n  model:";
  for (const Item& item : expected) what += "\n    " + text(item);
  what += "\n  table:";
  for (const Item& item : actual) what += "\n    " + text(item);
  return what;
}

}  // namespace

// The grants of one key must be in the order of its queue, and its renewals in the order of the
// calls. The rules set no order between keys, or between leases that expire at one instant.
std::string LockModel::difference_of_effects(const Effects& seen) const {
  if (!broken_.empty()) return broken_;
  std::vector<OwnedEvent> expected = events_;
  std::vector<OwnedEvent> actual(seen.events.begin(), seen.events.end());
  for (std::vector<OwnedEvent>* events : {&expected, &actual}) {
    std::ranges::stable_sort(*events, {}, [](const OwnedEvent& event) {
      const bool is_end = event.type == Event::Type::ended;
      const bool is_renewal = event.type == Event::Type::renewed;
      return std::tuple(event.kind, std::string_view(event.key), is_end, is_renewal,
                        is_end ? event.fence : 0);
    });
  }
  if (expected != actual) return compared("events", expected, actual);

  std::vector<WaitResult> expected_waits = settled_;
  std::vector<WaitResult> actual_waits = seen.wait_results;
  std::ranges::sort(expected_waits, {}, &WaitResult::id);
  std::ranges::sort(actual_waits, {}, &WaitResult::id);
  if (!std::ranges::equal(expected_waits, actual_waits, is_same_wait)) {
    return compared("settled waits", expected_waits, actual_waits);
  }
  if (seen.earliest != earliest_) return "another earliest deadline";
  return {};
}

std::string LockModel::difference_of_state(const LockTable& table) const {
  std::string difference;
  Cursor cursor;
  table.walk(cursor, SIZE_MAX, [&](const Key& key) {
    if (!difference.empty()) return;
    const ModelKey* expected = find(key.kind, key.name());
    ModelKey actual = model_key_of(table, key);
    if (expected == nullptr) {
      difference = "a key that should not be: " + text(actual);
      return;
    }
    // Fields that are not visible from outside, or have no meaning in this state.
    actual.lapsed = expected->lapsed;
    for (std::size_t i = 0; i < std::min(actual.queue.size(), expected->queue.size()); ++i) {
      actual.queue[i].part = expected->queue[i].part;
    }
    const bool is_known = actual.kind == Kind::lock && !key.is_shared();
    if (!is_known) actual.last_fence = expected->last_fence;
    if (actual.idle() && !options_.keeps_idle_limits) actual.limit = expected->limit;
    if (!actual.idle()) actual.idle_since = expected->idle_since;
    if (actual != *expected)
      difference = "state\n  model: " + text(*expected) + "\n  table: " + text(actual);
  });
  if (!difference.empty()) return difference;
  std::size_t waiters = 0;
  for (const ModelKey& key : keys_) waiters += key.queue.size();
  const bool has_idle = std::ranges::any_of(keys_, &ModelKey::idle);
  if (table.keys() != keys_.size()) return "another number of keys";
  if (table.waiters() != waiters) return "another number of waiters";
  if ((table.idle().oldest() != nullptr) != has_idle) return "idle keys, or none";
  if (table.last_fence() != last_fence_) return "another last fence";
  return {};
}

std::string LockModel::difference_of_holds(const LockTable& rebuilt) const {
  std::vector<ModelKey> expected;
  std::vector<ModelKey> actual;
  const auto strip = [](const ModelKey& key) {
    ModelKey bare{
        .kind = key.kind, .name = key.name, .limit = key.limit, .first_limit = key.first_limit};
    for (const ModelHold& hold : key.holds) {
      bare.holds.push_back({.owner = hold.owner,
                            .client = hold.client,
                            .mode = hold.mode,
                            .permits = hold.permits,
                            .fence = hold.fence,
                            .ttl = hold.ttl,
                            .deadline = hold.deadline});
    }
    return bare;
  };
  for (const ModelKey& key : keys_) {
    if (!key.holds.empty()) expected.push_back(strip(key));
  }
  Cursor cursor;
  rebuilt.walk(cursor, SIZE_MAX,
               [&](const Key& s) { actual.push_back(strip(model_key_of(rebuilt, s))); });
  for (std::vector<ModelKey>* keys : {&expected, &actual}) {
    std::ranges::sort(*keys, {}, [](const ModelKey& key) { return std::tie(key.kind, key.name); });
  }
  if (expected != actual) return compared("holds", expected, actual);
  if (rebuilt.last_fence() != last_fence_) return "another last fence";
  return {};
}

std::string text(Kind kind, std::string_view key) {
  const bool is_long = key.size() > 16;
  return joined(kind == Kind::lock ? "lock '" : "semaphore '", key.substr(0, 16),
                is_long ? "...'" : "'");
}

std::string text(const ClientIdentity& client) {
  if (client == ClientIdentity{}) return {};
  return joined(" (", client.name, ' ', client.peer, ' ', client.note, ')');
}

std::string text(const LockModel::Owner& owner) {
  if (!owner.is_secret) return joined("'", owner.name, "'");
  return joined("secret ", owner.secret, " of ", owner.session);
}

}  // namespace lockd
