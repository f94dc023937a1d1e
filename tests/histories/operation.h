// A history: what clients asked of servers, what they were told, and what was done to both.
//
// Plain values. All times are nanoseconds of one clock of the machine, which is also the one that
// leases run by (CLOCK_BOOTTIME). A history as a file is in history_file.h.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lockd/types.h"

namespace lockd::histories {

using Instant = std::int64_t;
inline constexpr Instant kNever = std::numeric_limits<Instant>::max();
inline constexpr Instant kSecond = 1'000'000'000;

// Never, if either is.
inline Instant sum(Instant a, Instant b) { return a == kNever || b == kNever ? kNever : a + b; }

// What was done, or thought. The last four are no requests: a connection that its client knows to
// be over, or that died together with its server; something that was broken on purpose; and from
// when on nothing was broken any more.
enum class Function : std::uint8_t {
  acquire,
  enqueue,
  wait,
  renew,
  release,
  revoke,   // by an admin, against the holder's will
  believe,  // no request either: from call to ret its client took it to be held
  stats,
  disconnect,
  lost,
  fault,
  heal,
};

// Which operations were one request for several keys: they have the name, the call and the server
// in common.
struct SetName {
  std::uint16_t server;
  std::uint64_t rid;
  Instant call;
  friend auto operator<=>(const SetName&, const SetName&) = default;
};

// Whether it asks for, moves or ends a hold.
inline bool is_about_hold(Function function) { return function <= Function::revoke; }

enum class Result : std::uint8_t {
  ok,
  queued,
  timeout,     // also a try that found the key held
  not_held,    // no such hold, or not any more
  storage,     // refused: the disk is full, or has failed
  draining,    // refused: the server stops
  refused,     // for another reason
  not_leader,  // refused by a server that follows another: nothing was done
  info,        // nobody knows
};

enum class Via : std::uint8_t { tcp, tls, http, lib };

struct Operation {
  Instant call = 0;
  Instant ret = kNever;
  Instant gave_up = kNever;  // of `info`: when the client stopped waiting
  Instant ttl = 0;
  Instant timeout = 0;
  Fence fence = 0;
  std::uint64_t rid = 0;  // the name under which it was asked for, and asked for again; 0: none
  std::uint64_t conn = 0;
  std::uint32_t line = 0;  // where it stands in the file
  std::uint32_t proc = 0;  // a client that does one thing after the other
  std::uint32_t life = 0;  // of the server; of a cluster, the epoch of the leader that answered
  std::uint32_t key = 0;   // of History::keys
  std::uint32_t limit = 1;
  std::uint32_t permits = 1;
  std::uint32_t keys = 1;  // in one step with others, each of which is an operation too: how many
  std::uint32_t waiters = 0;  // of `stats`
  std::uint16_t server = 0;   // of History::servers
  std::uint16_t fault = 0;    // of History::faults
  std::uint16_t node = 0;     // of a cluster: which server was asked
  Function function = Function::acquire;
  Result result = Result::info;
  Kind kind = Kind::lock;
  Mode mode = Mode::exclusive;
  Via via = Via::tcp;
  bool forwarded = false;  // by a server that followed, to the leader
};

inline SetName set_of(const Operation& part) { return {part.server, part.rid, part.call}; }

struct HistoryServer {
  std::string name;
  bool auto_release = true;  // a connection that ends releases what it holds
};

struct History {
  std::vector<Operation> operations;
  std::vector<std::string> keys;
  std::vector<HistoryServer> servers;
  std::vector<std::string> faults;  // their names
  std::uint64_t seed = 0;
};

// The faults that a checker must know of; to it, all others are weather.
inline constexpr std::string_view kStop = "stop";        // the server stood still
inline constexpr std::string_view kSuspend = "suspend";  // its clock jumped ahead
inline constexpr std::string_view kSyncError = "eio";    // from `call` on nothing may be promised
inline constexpr std::string_view kReboot = "reboot";    // of the machine; the restart is noted too
inline constexpr std::string_view kRestart = "restart";  // from `call`, the end, to `ret`, ready
// Of a cluster. Another leads, at the latest from `ret` on, and has begun every lease anew: also of
// what had come to its end since `call`, for that this was so may be known to nobody any more.
inline constexpr std::string_view kFailover = "failover";
// What it rests on was away, slow or full.
inline constexpr std::string_view kOutage = "outage";

// What came of a fault, and is none itself.
inline bool is_consequence(std::string_view fault) {
  return fault == kRestart || fault == kFailover || fault == kOutage;
}

std::string_view name_of(Function function);
std::string_view name_of(Result result);
std::string_view name_of(Via via);

}  // namespace lockd::histories
