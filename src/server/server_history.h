// The last of what happened to the server rather than to a key: starts, connections refused, failed
// authentication, clients that an admin disconnected. GET /v1/history shows it beside what happened
// to keys, which the engine keeps: see Engine::history.
//
//   history.add({.type = ServerEvent::Type::kicked, .client_id = 17, .reason = reason, .by = by});
//
// What strangers can cause lies apart from the rest, and is limited in rate: what is left out is
// counted. Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/rate_limit.h"
#include "lockd/types.h"

namespace lockd {

struct ServerEvent {
  enum class Type : std::uint8_t { started, kicked, auth_failed, refused };

  Type type;
  SessionId client_id = 0;      // of the client that it happened to; 0: none is known
  std::string_view protocol{};  // "line" or "http", and lives for ever
  std::string peer{};           // "10.0.0.7:51234"
  std::string client{};         // the name that it gave itself
  std::string note{};
  std::string reason{};  // of `kicked`, why; of `refused`, the cap
  std::string by{};      // of `kicked`, the admin
  // Of `started`: what was recovered.
  std::uint64_t keys = 0;
  std::uint64_t holds = 0;
  Time at{};  // filled in
};

// "auth_failed"; and back, none when there is no such event.
std::string_view event_name(ServerEvent::Type type);
std::optional<ServerEvent::Type> server_event_type(std::string_view name);

class ServerHistory {
 public:
  using Event = std::shared_ptr<const ServerEvent>;

  // 0 bytes: nothing is kept. `now` is the engine's.
  ServerHistory(std::size_t capacity, std::function<Time()> now);

  void add(ServerEvent event) EXCLUDES(mutex_);
  // The latest first.
  std::vector<Event> read(const std::function<bool(const ServerEvent&)>& matches,
                          std::size_t events_max) const EXCLUDES(mutex_);
  // How many were left out, for being too many in one second.
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kPerSecond = 10;

  struct Ring {
    std::deque<Event> events{};  // the latest last
    std::size_t bytes = 0;
  };
  Ring& ring_of(ServerEvent::Type type) REQUIRES(mutex_);

  const std::size_t capacity_;  // of each ring
  const std::function<Time()> now_;
  RateLimit auth_failures_{kPerSecond};
  RateLimit refusals_{kPerSecond};
  std::atomic<std::uint64_t> dropped_{0};

  mutable Mutex mutex_;
  Ring own_ GUARDED_BY(mutex_);        // what operators cause
  Ring strangers_ GUARDED_BY(mutex_);  // what anybody can
};

}  // namespace lockd
