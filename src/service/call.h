// A request of a client, typed. A codec makes a Call from the bytes of its protocol; the Executor
// executes it. There is no text of a protocol here.
//
// The views in a call refer to the codec's buffers. They are valid until execute() returns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "lockd/requests.h"
#include "protocol/operations.h"
#include "server/reports/report.h"

namespace lockd {

// Who a hold will belong to: a name, or a secret of the connection. Without a name and a secret the
// server makes a secret.
struct Owner {
  std::string_view name{};
  std::optional<std::uint64_t> secret{};
};

struct Acquire {
  KeyItems keys;
  Owner owner{};
  Duration ttl{};
  Duration wait{};
  std::string_view note{};
  bool explain = false;  // a refusal describes the holds that are in the way
};

// Joins the queue of one key; AwaitTurn then waits.
struct Enqueue {
  KeyItem key;
  Owner owner{};
  Duration ttl{};
};

struct AwaitTurn {
  Kind kind = Kind::lock;
  std::string_view key;
  Duration wait{};
};

struct Renew {
  HoldId hold;
  std::optional<Duration> ttl{};
};

struct Release {
  HoldId hold;
};

struct ReadFence {
  std::string_view key;
};

struct Publish {
  std::string_view channel;
  std::string_view payload;
};

struct Listen {
  std::string_view pattern;
  std::string_view group{};
  bool as_stream = false;
};

struct Unlisten {
  std::string_view pattern;
  std::string_view group{};
};

struct WatchEvents {
  std::string_view prefix{};
};

// Stats, listings, history, the overview and metrics. The reply comes in pieces.
struct ReadReport {
  std::shared_ptr<const ReportRequest> report;
  bool certain = false;  // the reply must come from a server that leads when it replies
  bool local = false;    // a follower replies for itself
};

struct Revoke {
  std::string_view key;
  Kind kind = Kind::lock;
  std::optional<Fence> fence{};  // unset: all holds of the key
  std::string_view reason{};
};

struct Resize {
  std::string_view key;
  std::uint32_t limit = 1;
  std::string_view reason{};
};

struct Disconnect {
  SessionId client = 0;
  std::string_view reason{};
};

struct InspectCluster {};
struct BeginSnapshot {};
struct TransferLeadership {
  std::string_view node;
};

struct CheckHealth {
  enum class Of : std::uint8_t { process, server, leader };
  Of of = Of::process;
};

// Replies when this server leads, proved by something that is appended after the request came.
struct ConfirmLeadership {};

// The client names itself.
struct Identify {
  std::string_view name;
  std::string_view note{};
};

struct DescribeCaller {};
struct Ping {};

using Call = std::variant<Ping, Acquire, Enqueue, AwaitTurn, Renew, Release, ReadFence, Publish,
                          Listen, Unlisten, WatchEvents, ReadReport, Revoke, Resize, Disconnect,
                          InspectCluster, BeginSnapshot, TransferLeadership, CheckHealth,
                          ConfirmLeadership, Identify, DescribeCaller>;

}  // namespace lockd
