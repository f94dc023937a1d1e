// The clients of both ports: who is connected, and who was lately.
//
// For people who ask who is there, for documents that name a connection (`tcp:17` is on some
// machine), and for what concerns one connection and comes from elsewhere: a hold that it has lost,
// or an admin who ends it. A client is here from its coming to the end of its session; of those
// that have gone the latest are remembered.
//
// Any thread may call anything. The mutex is held for a look-up, or to copy a few clients.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "lockd/journal.h"
#include "lockd/types.h"
#include "server/admission.h"

namespace lockd {

// A hold that has ended without its session's doing.
struct LostHold {
  std::string_view cause;  // "expired" or "revoked"
  Kind kind = Kind::lock;
  std::string key{};
  Fence fence = 0;
  std::uint64_t secret = 0;
  Position position = 0;  // nobody may hear of it before this is durable
};

// Where what concerns one client is left, by any thread: the clients are another's.
class ClientHost {
 public:
  // Called with a shard's lock held: it must be quick.
  virtual void leave_loss(SessionId client, LostHold lost) noexcept = 0;
  // Its session ends as if it had left. `on_gone` is called then, with what that rests on, by the
  // thread that has ended it.
  using OnGone = std::function<void(Position)>;
  virtual void leave_disconnect(SessionId client, OnGone on_gone) = 0;

 protected:
  ~ClientHost() = default;
};

// Figures that a client's own thread writes at most once a turn, and others read.
struct ClientActivity {
  using Clock = std::chrono::steady_clock;

  std::atomic<Clock::time_point> heard{Clock::now()};  // it, last
  std::atomic<std::size_t> unsent_bytes{0};
};

struct ClientStatus {
  SessionId id = 0;
  Protocol protocol = Protocol::line;
  std::string peer{};
  ClientRef client{};        // null: it has not said who it is
  std::string token_name{};  // empty: it has shown no auth token
  Duration connected{};
  Duration idle{};
  std::size_t unsent_bytes = 0;
  std::uint8_t mailbox = 0;    // where its signals go
  std::string forwarded_as{};  // "node/17": it is connected to that server; empty: to this one
};

// What is known of a client that may have gone.
struct ClientOrigin {
  std::string peer{};
  ClientRef client{};
  std::string token_name{};
  bool is_connected = false;
  std::string forwarded_as{};
};

class ClientRegistry {
 public:
  static constexpr std::size_t kGoneMax = 4096;

  // A client has come, whose signals go to `mailbox`. leave() follows, before its host goes.
  // Precondition: the id is new.
  std::shared_ptr<ClientActivity> enter(SessionId id, Protocol protocol, std::string peer,
                                        ClientHost& host, std::uint8_t mailbox = 0,
                                        std::string forwarded_as = {}) EXCLUDES(mutex_);
  void leave(SessionId id) EXCLUDES(mutex_);  // once, or again

  // It says who it is; it has shown an auth token. Nothing happens to one that has left.
  void name(SessionId id, ClientRef client) EXCLUDES(mutex_);
  void authenticate(SessionId id, std::string_view token_name) EXCLUDES(mutex_);

  // None: it never came, or went too long ago.
  std::optional<ClientOrigin> find(SessionId id) const EXCLUDES(mutex_);
  // None: it is not connected.
  std::optional<ClientStatus> status(SessionId id) const EXCLUDES(mutex_);
  // The next that are connected, by their ids, behind `after`; none when that was all.
  std::vector<ClientStatus> list_some(SessionId after, std::size_t count_max) const
      EXCLUDES(mutex_);

  // Tells the host of a client that has said who it is. May be called with a shard's lock held.
  void lose(SessionId id, LostHold lost) noexcept EXCLUDES(mutex_);
  // False: it is not connected, and `on_gone` is never called.
  bool disconnect(SessionId id, ClientHost::OnGone on_gone) EXCLUDES(mutex_);

 private:
  struct Entry {
    Protocol protocol;
    std::uint8_t mailbox;
    ClientHost* host;
    ClientActivity::Clock::time_point since;
    std::shared_ptr<ClientActivity> activity;
    std::string peer;
    ClientRef client{};
    std::string token_name{};
    std::string forwarded_as{};
  };
  using Entries = std::map<SessionId, Entry>;

  static ClientStatus status_of(const Entries::value_type& entry,
                                ClientActivity::Clock::time_point now);

  mutable Mutex mutex_;
  Entries connected_ GUARDED_BY(mutex_);
  std::unordered_map<SessionId, ClientOrigin> gone_ GUARDED_BY(mutex_);
  std::deque<SessionId> gone_in_order_ GUARDED_BY(mutex_);
};

}  // namespace lockd
