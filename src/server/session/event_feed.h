// EventFeed: the latest key events, for the clients that watch: the dashboard, `lockctl watch`.
//
// The engine appends events under its locks; workers read them when they tick. The feed is a ring:
// a reader that is late misses events, and learns how many. Without watchers the engine collects
// only rare events. The loss of a hold goes to the host of the session that lost it at once, with
// or without watchers.
//
// Any thread may call anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "lockd/observer.h"
#include "server/client_registry.h"

namespace lockd {

class EventFeed final : public Observer {
 public:
  struct Entry {
    Position position = 0;  // nobody may be told before this is durable
    KeyEvent event;         // its key is `key`
    std::string key;
  };
  using Entries = std::vector<std::shared_ptr<const Entry>>;
  using MayTell = std::function<bool(Position)>;

  static constexpr std::size_t kEntriesMax = 16 * 1024;
  static constexpr std::size_t kEntriesPerRead = 256;

  // 0 is no limit. `clients` may be null: then losses are not reported.
  explicit EventFeed(std::size_t watchers_max = 0, ClientRegistry* clients = nullptr)
      : watchers_max_(watchers_max), clients_(clients) {}

  const ClientRegistry* clients() const { return clients_; }

  // Adds a watcher, and returns the place from which it reads; nothing, if there are too many.
  std::optional<std::uint64_t> add_watcher() EXCLUDES(mutex_);
  void remove_watcher() EXCLUDES(mutex_);

  // Appends the entries from `place` on to `entries`, up to the first that `may_tell` refuses, and
  // at most kEntriesPerRead, because the engine waits meanwhile. Returns how many entries were
  // overwritten before; the first one read follows those. Precondition: the caller has watched
  // since `place`.
  std::uint64_t read(std::uint64_t place, Entries& entries, const MayTell& may_tell) const
      EXCLUDES(mutex_);

 private:
  void on_key_events(std::span<const KeyEvent> key_events, Position position) noexcept override
      EXCLUDES(mutex_);

  void tell_losers(std::span<const KeyEvent> key_events, Position position) noexcept;

  const std::size_t watchers_max_;
  ClientRegistry* const clients_;

  mutable Mutex mutex_;
  std::size_t watchers_ GUARDED_BY(mutex_) = 0;
  std::uint64_t end_ GUARDED_BY(mutex_) = 0;
  Entries ring_ GUARDED_BY(mutex_);  // entry i is at i modulo kEntriesMax
};

// One event as clients see it.
struct KeyEventJson {
  std::string_view event;  // "granted"
  std::string data;        // JSON
};

// `at_unix_ms` is when it happened, by the wall clock. `clients` may be null: see add_client().
KeyEventJson show(const KeyEvent& event, std::int64_t at_unix_ms, const ClientRegistry* clients);

// "granted", and back: none when there is no such event.
std::string_view event_name(KeyEvent::Type type);
std::optional<KeyEvent::Type> key_event_type(std::string_view name);

}  // namespace lockd
