// What one client does next: acquire, renew, release, queue in two phases, come back for what it
// held, forget; on keys of its own, where everything is known, and on keys that all share.
//
// Knows nothing of connections. Used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "histories/dialect.h"
#include "histories/recording.h"

namespace lockd::histories {

struct PlannedKey {
  std::uint32_t key = 0;
  Kind kind = Kind::lock;
  std::uint32_t limit = 1;
};

// The keys of one server.
struct KeyRing {
  std::vector<PlannedKey> shared;                 // many, a little wanted
  std::vector<PlannedKey> wanted;                 // few, and everybody wants them
  std::vector<std::vector<PlannedKey>> groups{};  // of which several are asked for in one step
};

class Plan {
 public:
  struct Traits {
    bool named = false;  // holders have names, and leases are milliseconds; else whole seconds
    PlannedKey own{};
    std::int64_t lease_scale = 1;  // leases are so many times as long
  };

  Plan(Recording& recording, const KeyRing& keys, Traits traits, std::uint64_t seed);

  // None when it has been told to finish and has given everything back.
  std::optional<Request> next();
  void heard(const Request& request, const Reply& reply);
  // The connection is gone, and places in queues with it; what is held may be still.
  void disconnected();
  // It has died: whatever it held is nobody's any more.
  void forget();
  void finish() { finishing_ = true; }
  // Gives nothing back until then.
  void keep(Instant until) { keeps_until_ = until; }
  bool has_acknowledged_hold() const { return !held_.empty(); }

 private:
  struct Held {
    PlannedKey key;
    Fence fence = 0;
    std::string token;
    std::uint64_t rid = 0;
    Instant ttl = 0;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    std::vector<RequestPart> parts{};  // that came in one step, and are held still
  };
  struct Ticket {
    Request request;
    bool granted = false;
  };

  Request ask();
  template <typename Asked>
  void choose_terms(Asked& asked);
  void choose_set(Request& request);
  void choose_some(std::vector<RequestPart>& parts);
  void heard_of_set(const Request& request, const Reply& reply);
  void take_back();
  Request follow_up(Function function, const Held& held);
  const PlannedKey& choose_key();
  Instant choose_ttl();
  Instant choose_timeout(bool is_own);
  void granted(const Request& request, const Reply& reply);
  void over(Fence fence);
  bool one_in(unsigned n) { return random_() % n == 0; }

  Recording& recording_;
  const KeyRing& keys_;
  const Traits traits_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  std::optional<Held> echo_;  // given back: to ask again must fail
  std::optional<Ticket> ticket_;
  std::optional<Request> again_;  // under the same name, or by the same secret
  bool finishing_ = false;
  Instant keeps_until_ = 0;
};

}  // namespace lockd::histories
