#include "lockctl/output/view.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "lockctl/api/json.h"
#include "lockctl/output/output.h"

namespace lockd::cli {
namespace {

namespace json = boost::json;

std::optional<Duration> ms_if(const json::value& object, std::string_view name) {
  return has(object, name) ? std::optional(ms_of(object, name)) : std::nullopt;
}

std::uint64_t ms(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(time).count());
}

// A server that does not say it knows holds of one permit only.
std::uint64_t permits_in_use(const json::value& key) {
  return number_of(key, has(key, "permits") ? "permits" : "holders");
}

KeyView lock_of_stats(const json::value& lock) {
  HoldView hold{.mode = mode_of(lock), .expires_in = seconds_of(lock, "lease_expires_in_s")};
  const std::uint64_t owner = number_of(lock, "owner_conn_id");
  if (owner != 0) hold.holder = "tcp:" + std::to_string(owner);
  return {.key = text_of(lock, "key"),
          .holders = has(lock, "holders") ? number_of(lock, "holders") : 1,
          .waiters = number_of(lock, "waiters"),
          .holds = {std::move(hold)}};
}

KeyView semaphore_of_stats(const json::value& semaphore) {
  return {.kind = Kind::semaphore,
          .key = text_of(semaphore, "key"),
          .limit = number_of(semaphore, "limit"),
          .holders = number_of(semaphore, "holders"),
          .permits = permits_in_use(semaphore),
          .waiters = number_of(semaphore, "waiters")};
}

KeyView idle_of_stats(const json::value& idle, Kind kind) {
  return {.kind = kind, .key = text_of(idle, "key"), .idle_for = seconds_of(idle, "idle_s")};
}

std::string hold_json(const HoldView& hold) {
  JsonObject out;
  if (!hold.holder.empty()) out.add("holder", hold.holder);
  if (hold.fence != 0) out.add("token", hold.fence);
  if (hold.mode == Mode::shared) out.add("mode", "shared");
  if (hold.held_for) out.add("held_ms", ms(*hold.held_for));
  if (hold.expires_in) out.add("expires_in_ms", ms(*hold.expires_in));
  return out.finish();
}

std::string waiter_json(const WaiterView& waiter) {
  JsonObject out;
  out.add("holder", waiter.holder);
  out.add("waited_ms", ms(waiter.waited));
  return out.finish();
}

template <typename All, typename Print>
std::string json_list(const All& all, Print print) {
  std::string text = "[";
  for (const auto& one : all) text += (text.size() > 1 ? "," : "") + print(one);
  return text + ']';
}

}  // namespace

KeyView key_view(const json::value& value) {
  KeyView key{.kind = text_of(value, "kind") == "semaphore" ? Kind::semaphore : Kind::lock,
              .key = text_of(value, "key"),
              .limit = number_of(value, "limit"),
              .holders = number_of(value, "holders"),
              .permits = permits_in_use(value),
              .waiters = number_of(value, "waiters"),
              .idle_for = ms_if(value, "idle_ms")};
  for (const json::value& hold : array_of(value, "holds")) {
    key.holds.push_back({.holder = text_of(hold, "holder"),
                         .identity = identity_of(hold),
                         .fence = number_of(hold, "token"),
                         .mode = mode_of(hold),
                         .permits = permits_of(hold),
                         .held_for = ms_if(hold, "held_ms"),
                         .expires_in = ms_if(hold, "expires_in_ms")});
  }
  for (const json::value& waiter : array_of(value, "queue")) {
    key.queue.push_back({.holder = text_of(waiter, "holder"),
                         .identity = identity_of(waiter),
                         .waited = ms_of(waiter, "waited_ms"),
                         .mode = mode_of(waiter),
                         .permits = permits_of(waiter),
                         .keys = has(waiter, "keys") ? number_of(waiter, "keys") : 1});
  }
  return key;
}

ServerView overview_view(const json::value& value) {
  static const json::value nothing = json::object();
  const auto part = [&](std::string_view name) -> const json::value& {
    const json::value* const found = member(value, name);
    return found == nullptr ? nothing : *found;
  };
  const json::value& totals = part("totals");
  return {.version = text_of(value, "version"),
          .uptime = ms_if(value, "uptime_ms"),
          .ready = truth_of(value, "ready"),
          .draining = truth_of(value, "draining"),
          .connections = number_of(value, "connections"),
          .keys = number_of(part("keys"), "count"),
          .keys_idle = number_of(part("keys"), "idle"),
          .keys_max = number_of(part("keys"), "max"),
          .locks_held = number_of(value, "locks_held"),
          .lock_waiters = number_of(value, "lock_waiters"),
          .semaphore_holders = number_of(value, "semaphore_holders"),
          .semaphore_waiters = number_of(value, "semaphore_waiters"),
          .listeners = number_of(part("signals"), "listeners"),
          .totals = TotalsView{.grants = number_of(totals, "grants"),
                               .contended = number_of(totals, "contended"),
                               .renewals = number_of(totals, "renewals"),
                               .releases = number_of(totals, "releases"),
                               .expiries = number_of(totals, "expiries"),
                               .disconnects = number_of(totals, "disconnects"),
                               .timeouts = number_of(totals, "timeouts"),
                               .cancels = number_of(totals, "cancels")}};
}

ServerView stats_view(const json::value& value) {
  ServerView view{.connections = number_of(value, "connections")};
  for (const KeyView& key : keys_of_stats(value)) {
    ++view.keys;
    if (key.idle_for) {
      ++view.keys_idle;
    } else if (key.kind == Kind::lock) {
      ++view.locks_held;
      view.lock_waiters += key.waiters;
    } else {
      view.semaphore_holders += key.holders;
      view.semaphore_waiters += key.waiters;
    }
  }
  for (const json::value& channel : array_of(value, "signal_channels")) {
    view.listeners += number_of(channel, "listeners");
  }
  return view;
}

std::vector<KeyView> keys_of_stats(const json::value& value) {
  std::vector<KeyView> keys;
  for (const json::value& lock : array_of(value, "locks")) keys.push_back(lock_of_stats(lock));
  for (const json::value& one : array_of(value, "semaphores")) {
    keys.push_back(semaphore_of_stats(one));
  }
  for (const json::value& idle : array_of(value, "idle_locks")) {
    keys.push_back(idle_of_stats(idle, Kind::lock));
  }
  for (const json::value& idle : array_of(value, "idle_semaphores")) {
    keys.push_back(idle_of_stats(idle, Kind::semaphore));
  }
  return keys;
}

void add(ServerView& sum, const ServerView& one) {
  if (sum.version != one.version) sum.version.clear();
  sum.uptime = std::min(sum.uptime, one.uptime);
  sum.ready = std::min(sum.ready, one.ready);
  sum.draining = sum.draining || one.draining;
  for (const auto count :
       {&ServerView::connections, &ServerView::keys, &ServerView::keys_idle, &ServerView::keys_max,
        &ServerView::locks_held, &ServerView::lock_waiters, &ServerView::semaphore_holders,
        &ServerView::semaphore_waiters, &ServerView::listeners}) {
    sum.*count += one.*count;
  }
  if (!sum.totals || !one.totals) return sum.totals.reset();
  for (const auto count : {&TotalsView::grants, &TotalsView::contended, &TotalsView::renewals,
                           &TotalsView::releases, &TotalsView::expiries, &TotalsView::disconnects,
                           &TotalsView::timeouts, &TotalsView::cancels}) {
    *sum.totals.*count += *one.totals.*count;
  }
}

KeyOrder key_order_of(std::string_view word) {
  if (word == "waiters") return KeyOrder::waiters;
  if (word == "wait") return KeyOrder::wait;
  return word == "held" ? KeyOrder::held : KeyOrder::key;
}

namespace {

std::optional<Duration> longest_wait(const KeyView& key) {
  return key.queue.empty() ? std::nullopt : std::optional(key.queue.front().waited);
}

}  // namespace

std::optional<Duration> longest_hold(const KeyView& key) {
  std::optional<Duration> longest;
  for (const HoldView& hold : key.holds) longest = std::max(longest, hold.held_for);
  return longest;
}

bool comes_before(const KeyView& a, const KeyView& b, KeyOrder order) {
  switch (order) {
    case KeyOrder::key: break;
    case KeyOrder::waiters:
      return std::tie(b.waiters, b.holders, a.key) < std::tie(a.waiters, a.holders, b.key);
    case KeyOrder::wait:
      return std::tuple(longest_wait(b), a.key) < std::tuple(longest_wait(a), b.key);
    case KeyOrder::held:
      return std::tuple(longest_hold(b), a.key) < std::tuple(longest_hold(a), b.key);
  }
  return a.key < b.key;
}

std::string json_of(const KeyView& key) {
  JsonObject out;
  out.add("kind", key.kind == Kind::lock ? "lock" : "semaphore");
  out.add("key", key.key);
  out.add("limit", key.limit);
  out.add("holders", key.holders);
  if (key.permits > key.holders) out.add("permits", key.permits);
  out.add("waiters", key.waiters);
  if (key.idle_for) out.add("idle_ms", ms(*key.idle_for));
  out.add_json("holds", json_list(key.holds, hold_json));
  out.add_json("queue", json_list(key.queue, waiter_json));
  return out.finish();
}

std::string holders_text(const KeyView& key) {
  const HoldView none;
  const HoldView& hold = key.holds.empty() ? none : key.holds.front();
  const bool is_shared = hold.mode == Mode::shared;
  std::string text = (is_shared ? "shared by " : "held by ") +
                     (hold.holder.empty() ? "somebody else" : in_quotes(hold.holder));
  if (const auto who = identity_text(hold.identity); !who.empty()) text += " (" + who + ')';
  if (hold.permits > 1) text += " with " + share_text(hold.mode, hold.permits);
  if (key.holders > 1) text += " and " + std::to_string(key.holders - 1) + " more";
  if (hold.held_for) text += " for " + human(*hold.held_for);
  if (key.waiters > 0) text += ", " + std::to_string(key.waiters) + " waiting";
  return text;
}

IdentityView identity_of(const json::value& value) {
  return {text_of(value, "client"), text_of(value, "peer"), text_of(value, "note")};
}

std::string identity_text(const IdentityView& identity) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : ", ") + std::string(name) + value;
  };
  if (!identity.client.empty()) add("client ", in_quotes(identity.client));
  add("peer ", printable(identity.peer));
  if (!identity.note.empty()) add("note ", in_quotes(identity.note));
  return text;
}

std::string count_text(const KeyView& key) {
  if (key.kind == Kind::lock) return std::to_string(key.holders);
  return std::to_string(key.permits) + '/' + (key.limit == 0 ? "-" : std::to_string(key.limit));
}

std::string share_text(Mode mode, std::uint64_t permits) {
  if (mode == Mode::shared) return "shared";
  return permits == 1 ? "" : std::to_string(permits) + " permits";
}

Mode mode_of(const json::value& value) {
  return text_of(value, "mode") == "shared" ? Mode::shared : Mode::exclusive;
}

std::uint64_t permits_of(const json::value& value) {
  return has(value, "permits") ? number_of(value, "permits") : 1;
}

namespace {

std::vector<std::string> row_of(const KeyView& key) {
  const HoldView none;
  const HoldView& hold = key.holds.empty() ? none : key.holds.front();
  std::string holder = text_or_dash(hold.holder);
  if (key.holders > 1 && !key.holds.empty()) holder += " +" + std::to_string(key.holders - 1);
  if (key.idle_for) holder = "idle for " + human(*key.idle_for);
  return {key.key,
          kind_text(key.kind),
          count_text(key),
          std::to_string(key.waiters),
          holder,
          share_text(hold.mode, hold.permits),
          hold.identity.client,
          hold.identity.peer,
          hold.identity.note,
          fence_text(hold.fence),
          if_known(hold.held_for),
          if_known(hold.expires_in)};
}

}  // namespace

KeyTable::KeyTable()
    : table_({"KEY", "KIND", "HOLDERS>", "WAITERS>", "HOLDER", "SHARE?", "CLIENT?", "PEER?",
              "NOTE?", "FENCE>", "HELD>", "EXPIRES>"}) {}

void KeyTable::add(const KeyView& key) { table_.add(row_of(key)); }

std::string if_known(const std::optional<Duration>& time) { return time ? human(*time) : "-"; }

std::string text_or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string fence_text(Fence fence) { return fence == 0 ? "-" : std::to_string(fence); }

std::string kind_text(Kind kind) { return kind == Kind::lock ? "lock" : "semaphore"; }

}  // namespace lockd::cli
