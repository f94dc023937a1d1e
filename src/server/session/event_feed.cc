#include "server/session/event_feed.h"

#include <algorithm>
#include <utility>

#include "base/json_text.h"
#include "server/reports/client_json.h"
#include "server/reports/report.h"
#include "server/session/key_event_log.h"

namespace lockd {
namespace {

using Type = KeyEvent::Type;

bool is_of_hold(Type type) {
  switch (type) {
    case Type::granted:
    case Type::released:
    case Type::expired:
    case Type::disconnected:
    case Type::revoked:
    case Type::slow_hold: return true;
    default: return false;
  }
}

// Of `lasted`; empty: it has no meaning.
std::string_view lasted_name(Type type) {
  switch (type) {
    case Type::granted:
    case Type::gave_up:
    case Type::slow_wait: return "waited_ms";
    case Type::queued:
    case Type::refused:
    case Type::resized: return "";
    default: return "held_ms";
  }
}

std::string_view why_gave_up(Outcome outcome) {
  switch (outcome) {
    case Outcome::timeout: return "timeout";
    case Outcome::ok:    // its name has a hold by another place; or one of another mode or permits;
    case Outcome::held:  // or a part of what it asked for together
    case Outcome::mode_mismatch:
    case Outcome::permits_mismatch: return "granted_elsewhere";
    case Outcome::limit_mismatch: return "limit_mismatch";  // an admin's, below what it asks for
    default: return "cancelled";
  }
}

std::string_view why_refused(Outcome outcome) {
  switch (outcome) {
    case Outcome::max_keys: return "max_locks";
    case Outcome::max_waiters: return "max_waiters";
    case Outcome::max_client_holds: return "max_holds_per_client";
    default: return "max_holds";
  }
}

std::string_view reason_of(const KeyEvent& event) {
  if (event.type == Type::gave_up) return why_gave_up(event.outcome);
  if (event.type == Type::refused) return why_refused(event.outcome);
  return event.reason;
}

}  // namespace

std::optional<std::uint64_t> EventFeed::add_watcher() {
  MutexLock lock(mutex_);
  if (watchers_max_ != 0 && watchers_ >= watchers_max_) return {};
  ++watchers_;
  observe(true);
  return end_;
}

void EventFeed::remove_watcher() {
  Entries needless;  // goes when the mutex is free again
  MutexLock lock(mutex_);
  if (--watchers_ > 0) return;
  observe(false);
  ring_.swap(needless);  // no later reader starts before its end
}

// What takes time, to allocate and to free, is done while others may read.
void EventFeed::on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept {
  for (const KeyEvent& event : key_events) log_key_event(event);
  tell_losers(key_events, position);
  if (!is_observing()) return;
  Entries entries;
  entries.reserve(key_events.size());
  for (const KeyEvent& event : key_events) {
    auto entry = std::make_shared<Entry>(
        Entry{.position = position, .event = event, .key = std::string(event.key)});
    entry->event.key = entry->key;
    entries.push_back(std::move(entry));
  }
  MutexLock lock(mutex_);
  if (watchers_ == 0) return;
  if (ring_.empty()) ring_.resize(kEntriesMax);
  for (auto& entry : entries) ring_[end_++ % kEntriesMax].swap(entry);
}

void EventFeed::tell_losers(std::span<const KeyEvent> key_events, Position position) noexcept {
  if (clients_ == nullptr) return;
  for (const KeyEvent& event : key_events) {
    const bool is_lost = event.type == Type::expired || event.type == Type::revoked;
    const bool was_told = event.session != 0 && event.secret != 0;
    if (!is_lost || !was_told) continue;
    clients_->lose(event.session, {.cause = event_name(event.type),
                                   .kind = event.kind,
                                   .key = std::string(event.key),
                                   .fence = event.fence,
                                   .secret = event.secret,
                                   .position = position});
  }
}

std::uint64_t EventFeed::read(std::uint64_t place, Entries& entries,
                              const MayTell& may_tell) const {
  MutexLock lock(mutex_);
  const std::uint64_t oldest = end_ > kEntriesMax ? end_ - kEntriesMax : 0;
  const std::uint64_t missed = place < oldest ? oldest - place : 0;
  const std::uint64_t first = place + missed;
  const std::uint64_t last = std::min(first + kEntriesPerRead, end_);
  for (std::uint64_t i = first; i < last; ++i) {
    const auto& entry = ring_[i % kEntriesMax];
    if (!may_tell(entry->position)) break;
    entries.push_back(entry);
  }
  return missed;
}

std::string_view event_name(Type type) {
  switch (type) {
    case Type::queued: return "queued";
    case Type::granted: return "granted";
    case Type::released: return "released";
    case Type::expired: return "expired";
    case Type::disconnected: return "disconnected";
    case Type::revoked: return "revoked";
    case Type::gave_up: return "gave_up";
    case Type::refused: return "refused";
    case Type::slow_wait: return "slow_wait";
    case Type::slow_hold: return "slow_hold";
    case Type::resized: return "resized";
  }
  return "";
}

std::optional<Type> key_event_type(std::string_view name) {
  for (auto type = Type::queued; type <= Type::resized;
       type = static_cast<Type>(static_cast<int>(type) + 1)) {
    if (event_name(type) == name) return type;
  }
  return {};
}

KeyEventJson show(const KeyEvent& event, std::int64_t at_unix_ms, const ClientRegistry* clients) {
  const Type type = event.type;
  JsonObject json;
  json.add("at_unix_ms", at_unix_ms);
  json.add("kind", kind_name(event.kind));
  json.add("key", event.key);
  json.add_if_known("holder", clients == nullptr ? event.holder : holder_text(event, *clients));
  if (is_of_hold(type)) json.add("token", event.fence);
  add_share(json, event);
  json.add("limit", event.limit);
  json.add("holders", event.holders);
  json.add("waiters", event.waiters);
  if (type == Type::granted) json.add("ttl_ms", whole_ms(event.ttl));
  if (const auto name = lasted_name(type); !name.empty()) json.add(name, whole_ms(event.lasted));
  json.add_if_known("reason", reason_of(event));
  json.add_if_known("by", event.by);
  add_client(json, event, clients);
  return {event_name(type), json.finish()};
}

}  // namespace lockd
