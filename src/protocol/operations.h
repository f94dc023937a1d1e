// What a client can ask a server to do, whatever the protocol, and what each request needs.
#pragma once

#include <cstdint>

namespace lockd {

// What a client can be permitted to do: docs/security.md describes each right.
enum class Right : std::uint8_t {
  none,          // every authenticated client may
  lock,          // acquire, renew, release and wait
  signal,        // publish and listen
  read,          // look at everything
  read_or_lock,  // either right is enough
  admin,         // end other clients' holds, move a cluster's leadership; includes all of the above
};

// What a reply discloses.
enum class Scope : std::uint8_t {
  keys,    // keys and channels that the client may see, or nothing about them
  server,  // all keys and all clients: only for clients that are not restricted to prefixes
};

enum class Operation : std::uint8_t {
  acquire,
  enqueue,
  await_turn,
  renew,
  release,
  read_fence,
  publish,
  listen,
  unlisten,
  watch_events,
  list_keys,
  list_clients,
  read_stats,
  read_overview,
  read_history,
  read_metrics,
  revoke,
  disconnect,
  resize,
  inspect_cluster,
  begin_snapshot,
  transfer_leadership,
  check_health,
  confirm_leadership,
  identify,
  describe_caller,
  ping,
};

struct OperationRule {
  Right right = Right::none;
  Scope scope = Scope::keys;
  // The operation may leave a hold, a queue place or a stream behind. A server that is stopping
  // rejects it.
  bool takes = false;
};

constexpr OperationRule rule_of(Operation operation) {
  switch (operation) {
    case Operation::acquire:
    case Operation::enqueue:
    case Operation::await_turn: return {.right = Right::lock, .takes = true};
    case Operation::renew:
    case Operation::release: return {.right = Right::lock};
    case Operation::read_fence: return {.right = Right::read_or_lock};
    case Operation::listen: return {.right = Right::signal, .takes = true};
    case Operation::publish:
    case Operation::unlisten: return {.right = Right::signal};
    case Operation::watch_events: return {.right = Right::read, .takes = true};
    case Operation::list_keys:
    case Operation::read_stats:
    case Operation::read_overview:
    case Operation::read_history: return {.right = Right::read};
    case Operation::list_clients:
    case Operation::read_metrics:
    case Operation::inspect_cluster: return {.right = Right::read, .scope = Scope::server};
    case Operation::revoke:
    case Operation::resize: return {.right = Right::admin};
    case Operation::disconnect:
    case Operation::begin_snapshot:
    case Operation::transfer_leadership: return {.right = Right::admin, .scope = Scope::server};
    case Operation::check_health:
    case Operation::confirm_leadership:
    case Operation::identify:
    case Operation::describe_caller:
    case Operation::ping: return {};
  }
  return {.right = Right::admin};
}

}  // namespace lockd
