#include "crash/clients.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace lockd::crash {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kSessions = 4;

struct Key {
  Kind kind;
  std::string name;
  std::uint32_t limit;
};

// Long and short: a frame of few events then covers one sector or several.
const std::vector<Key>& keys() {
  static const std::vector<Key> all = {
      {Kind::lock, "k", 1},
      {Kind::lock, "stone-42", 1},
      {Kind::lock, "orders/2024/11/line/7", 1},
      {Kind::lock, std::string(160, 'x'), 1},
      {Kind::lock, "jobs/" + std::string(240, 'y'), 1},
      {Kind::lock, "q", 1},
      {Kind::semaphore, "k", 1},
      {Kind::semaphore, "pool", 3},
      {Kind::semaphore, "crowd", 300},
      {Kind::semaphore, "pool/" + std::string(100, 'z'), 2},
  };
  return all;
}

Duration random_ms(Chance& chance, std::uint64_t least, std::uint64_t most) {
  return milliseconds(chance.between(least, most));
}

}  // namespace

Clients::Clients(Chance& chance, Ledger& ledger) : chance_(chance), ledger_(ledger) {
  while (sessions_.size() < kSessions) sessions_.push_back(new_session());
}

// Half of them say who they are.
Session Clients::new_session() {
  const SessionId id = ++last_session_;
  if (id % 2 == 0) return {.id = id};
  return {.id = id,
          .client = std::make_shared<const ClientIdentity>(ClientIdentity{
              "ann@build-" + std::to_string(id % 3) + ":4711", "10.0.0.7:51234", ""})};
}

void Clients::act(Engine& engine, Position durable) {
  ledger_.prune(durable, engine.now());
  Batch batch(engine);
  for (std::uint64_t left = chance_.between(1, 4); left > 0; --left) act_once(batch, durable);
  const Position position = batch.commit();
  ledger_.commit(position);
}

void Clients::act_once(Batch& batch, Position durable) {
  const std::uint64_t what = chance_.below(100);
  if (what < 45) return acquire(batch);
  if (what < 55) return acquire_all(batch);
  if (what < 75) return renew(batch, durable);
  if (what < 92) return release(batch, durable);
  if (what < 94) return cancel(batch);
  if (what < 96) return revoke(batch, durable);
  if (what < 98) return resize(batch);
  end_session(batch);
}

void Clients::acquire(Batch& batch) {
  const Key& key = keys()[chance_.below(keys().size())];
  HoldKey hold{key.kind, key.name, 0};
  const std::string name = "cart-" + std::to_string(chance_.below(6));
  Session* const session = chance_.percent(40) ? &sessions_[chance_.below(kSessions)] : nullptr;
  const Holder holder = session != nullptr ? Holder(session, chance_.next()) : Holder(name);
  const std::string owner = owner_of(holder);
  if (waits(owner, hold)) return;

  const Duration wait = chance_.percent(50) ? Duration::zero() : random_ms(chance_, 20, 400);
  const bool is_shared = key.kind == Kind::lock && chance_.percent(50);
  const std::uint64_t permits = chance_.percent(50) ? 1 : chance_.between(1, key.limit);
  const std::uint64_t id = ++last_wait_;
  const AcquireRequest request{
      .keys = KeyItem(key.name, key.kind, is_shared ? Mode::shared : Mode::exclusive, key.limit,
                      static_cast<std::uint32_t>(permits)),
      .holder = holder,
      .ttl = random_ms(chance_, 20, 1500),
      .wait = wait,
      .note = chance_.percent(30) ? "deploy" : "",
      .peer = chance_.percent(30) ? "10.0.0.9:51235" : ""};
  const Answer answer = batch.acquire(request, this, id);
  const SessionId of = session == nullptr ? 0 : session->id;
  const bool is_queued = answer.outcome == Outcome::queued;
  if (is_queued) waits_[id] = {answer.wait, {hold}, owner, of};
  if (is_queued || answer.outcome == Outcome::ok) ledger_.touched(owner, hold);
  if (answer.outcome != Outcome::ok) return;
  hold.fence = answer.grant.fence;
  ledger_.granted(hold, owner, of, answer.grant.expires_at);
}

// From the key that was drawn on, every other one or each.
void Clients::acquire_all(Batch& batch) {
  const std::string name = "cart-" + std::to_string(chance_.below(6));
  const std::string owner = owner_of(Holder(name));
  const std::size_t step = chance_.between(1, 2);
  std::size_t at = chance_.below(keys().size());
  const Duration ttl = random_ms(chance_, 20, 1500);
  const Duration wait = chance_.percent(60) ? random_ms(chance_, 20, 400) : Duration::zero();
  std::vector<KeyItem> items;
  std::vector<HoldKey> asked;
  for (std::uint64_t left = chance_.between(2, 4); left > 0; --left, at += step) {
    const Key& key = keys()[at % keys().size()];
    const bool is_shared = key.kind == Kind::lock && chance_.percent(30);
    const std::uint64_t permits = chance_.percent(50) ? 1 : chance_.between(1, key.limit);
    items.emplace_back(key.name, key.kind, is_shared ? Mode::shared : Mode::exclusive, key.limit,
                       static_cast<std::uint32_t>(permits));
    asked.push_back({key.kind, key.name, 0});
    if (waits(owner, asked.back())) return;
  }
  const std::uint64_t id = ++last_wait_;
  const Answer answer =
      batch.acquire({.keys = items, .holder = name, .ttl = ttl, .wait = wait}, this, id);
  const bool is_granted = answer.outcome == Outcome::ok;
  if (!is_granted && answer.outcome != Outcome::queued) return;
  for (const HoldKey& key : asked) ledger_.touched(owner, key);
  ledger_.asked_for_all(owner, asked);
  if (!is_granted) {
    waits_[id] = {answer.wait, asked, owner, 0};
    return;
  }
  for (HoldKey& key : asked) {
    key.fence = answer.grant.fence;
    ledger_.granted(key, owner, 0, answer.grant.expires_at, Ledger::kNotCommitted, true);
  }
}

void Clients::renew(Batch& batch, Position durable) {
  const auto* const picked = ledger_.pick(chance_, durable);
  if (picked == nullptr) return;
  const auto& [key, entry] = *picked;
  std::optional<Duration> ttl;
  if (chance_.percent(50)) ttl = random_ms(chance_, 20, 1500);
  const Answer answer =
      batch.renew({KeyItem(key.key, key.kind), holder_of(entry.owner), key.fence}, ttl);
  if (answer.outcome != Outcome::ok) return;
  ledger_.touched(entry.owner, key);
  ledger_.renewed(key, answer.grant.expires_at);
}

void Clients::release(Batch& batch, Position durable) {
  const auto* const picked = ledger_.pick(chance_, durable);
  if (picked == nullptr) return;
  const auto& [key, entry] = *picked;
  if (chance_.percent(50)) return release_all(batch, key, entry.owner, durable);
  ledger_.asked_to_end(key);
  const KeyItem item(key.key, key.kind);
  if (batch.release({item, holder_of(entry.owner), key.fence})) ledger_.ended(key);
}

// All that its owner has under that fence, whether or not it came together.
void Clients::release_all(Batch& batch, const HoldKey& picked, const std::string& owner,
                          Position durable) {
  const std::vector<HoldKey> keys = ledger_.granted_with(picked, durable);
  std::vector<KeyItem> items;
  for (const HoldKey& key : keys) {
    items.emplace_back(key.key, key.kind);
    ledger_.asked_to_end(key);
  }
  const ReleaseResult released =
      batch.release({.keys = items, .holder = holder_of(owner), .fence = picked.fence});
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (released.has_released(i)) ledger_.ended(keys[i]);
  }
}

void Clients::cancel(Batch& batch) {
  if (waits_.empty()) return;
  const auto wait = std::next(waits_.begin(), static_cast<int>(chance_.below(waits_.size())));
  batch.cancel(wait->second.id);
}

// Against the owner's will, who hears of it as of an end that it asked for.
void Clients::revoke(Batch& batch, Position durable) {
  const auto* const picked = ledger_.pick(chance_, durable);
  if (picked == nullptr) return;
  const HoldKey key = picked->first;
  ledger_.asked_to_end(key);
  const RevokeResult revoked =
      batch.revoke({.key = key.key, .fence = key.fence, .kind = key.kind, .by = "ops"});
  if (revoked) ledger_.ended(key);
}

void Clients::resize(Batch& batch) {
  const Key& key = keys()[chance_.below(keys().size())];
  const auto limit = static_cast<std::uint32_t>(chance_.between(1, 5));
  if (key.kind == Kind::semaphore) batch.resize(key.name, limit, "", "ops");
}

// What it held is passed on, or left to its lease.
void Clients::end_session(Batch& batch) {
  Session& session = sessions_[chance_.below(kSessions)];
  const bool keep_holds = chance_.percent(25);
  if (!keep_holds) ledger_.session_ends(session.id);
  batch.end_session(session, keep_holds);
  session = new_session();
}

bool Clients::waits(const std::string& owner, const HoldKey& key) const {
  return std::any_of(waits_.begin(), waits_.end(), [&](const auto& wait) {
    const std::vector<HoldKey>& keys = wait.second.keys;
    return wait.second.owner == owner && std::find(keys.begin(), keys.end(), key) != keys.end();
  });
}

bool Clients::is_alive(SessionId session) const {
  return session == 0 || std::any_of(sessions_.begin(), sessions_.end(),
                                     [&](const Session& s) { return s.id == session; });
}

// The engine says so when it is durable, so this is told.
void Clients::on_wait_done(const WaitResult& result) noexcept {
  const auto found = waits_.find(result.id);
  if (found == waits_.end()) return;
  Wait wait = std::move(found->second);
  waits_.erase(found);
  if (result.outcome != Outcome::ok) return;
  for (HoldKey& key : wait.keys) {
    key.fence = result.grant.fence;
    ledger_.granted(key, wait.owner, wait.session, result.grant.expires_at, Ledger::kTold,
                    wait.keys.size() > 1);
    if (!is_alive(wait.session)) ledger_.asked_to_end(key);
  }
}

}  // namespace lockd::crash
