// What happens to a session besides the bytes of its client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "lockd/requests.h"
#include "net/tls_channel.h"
#include "protocol/http/http_request.h"
#include "pubsub/signal_hub.h"
#include "server/client_registry.h"
#include "server/reports/report.h"
#include "server/session/event_feed.h"

namespace lockd {

// Ends of what blocks the session.
struct WaitDone {
  const WaitResult& result;
};
struct ReportArrived {
  const ReportPiece& piece;
};
// The signal of the session was sent to this many subscribers.
struct SignalPublished {
  std::size_t delivered = 0;
};
// The client that the session had disconnected is gone.
struct ClientDisconnected {};
// The pause of a rejected client is over.
struct PauseOver {};

// Pushes: what the client subscribed to, and what it lost.
struct SignalReceived {
  const Signal& signal;
};
struct KeyEventSeen {
  const KeyEventJson& event;
  std::uint64_t missed = 0;  // events before it that the client had no room for
};
struct HoldLost {
  const LostHold& lost;
};
// Some time has passed without output: a stream shows that it is alive.
struct KeepAliveDue {};

// The connection.
struct CertificateShown {
  const CertificateNames& names;
};
// The client is not served, whatever it sends.
struct ClientRejected {};
// The client was silent for too long; `in_request`: in the middle of a request.
struct ClientTimedOut {
  bool in_request = false;
};
// The client left in the middle of a request.
struct RequestTruncated {};

// The peer sends no more.
struct InputEnded {};
// The peer has taken all of the output but the last `unsent` bytes.
struct OutputTaken {
  std::size_t unsent = 0;
};

// The session has its client back from the proxy that LeaderGate::proxy() made. Without a status
// the leader has replied. Otherwise `error` is the reply to the request, which was not passed on.
struct ProxyEnded {
  const HttpError& error;
};

// The server begins to stop.
struct DrainBegun {};
// The session is about to end. `detaches`: not by its client's doing, but because this server stops
// or has lost its place in the cluster.
struct SessionLeaving {
  bool detaches = false;
};

using SessionEvent =
    std::variant<WaitDone, ReportArrived, SignalPublished, ClientDisconnected, PauseOver,
                 SignalReceived, KeyEventSeen, HoldLost, KeepAliveDue, CertificateShown,
                 ClientRejected, ClientTimedOut, RequestTruncated, InputEnded, OutputTaken,
                 ProxyEnded, DrainBegun, SessionLeaving>;

}  // namespace lockd
