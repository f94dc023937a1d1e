// A SessionHost's record of one session. The host and its parts write it; a Transport reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/list.h"
#include "server/session/server_session.h"
#include "server/session/transport.h"

namespace lockd {

// A grant to a wait, whose reply is in the output and has not left.
struct HandOff {
  Grant grant{};
  std::uint64_t written_before = 0;  // bytes of output before the reply
  PendingWait wait{};                // of a grant that outlives the session; else empty
};

// What an OutputGate knows of one session's output.
struct GateState {
  Position depends_on = 0;         // all of the output may leave when this is durable
  Position corked_at = 0;          // the corked part may leave when this is durable
  std::uint64_t corked_until = 0;  // the end of the corked part, in bytes written
  bool is_corked = false;
  std::vector<HandOff> hand_offs{};
};

struct HostedSession {
  HostedSession(std::unique_ptr<ServerSession> session, std::unique_ptr<Transport> transport)
      : session(std::move(session)), transport(std::move(transport)) {}

  SessionId id() const { return session->id(); }
  bool is_corked() const { return gate.is_corked; }
  // The unread input is the beginning of a request, and does not wait behind one that blocks.
  bool has_half_a_request() const {
    return transport->has_unread() && !transport->input_pending() && !session->is_blocked();
  }

  std::unique_ptr<ServerSession> session;
  std::unique_ptr<Transport> transport;
  std::shared_ptr<ClientActivity> activity{};  // shown to others
  GateState gate{};
  std::shared_ptr<ReportRest> report{};  // the rest of a report, which waits for room
  bool awaits_report = false;            // a report, or a piece of one, has been requested
  // receive() consumed nothing because the journal is behind. The input is to be offered again when
  // corked output has left.
  bool is_held_back = false;
  bool input_ended = false;  // the peer sends no more
  bool is_over = false;      // the session has ended; output may still be corked
  bool closes = false;       // the connection closes when the output has left
  bool is_ending = false;    // over, but some of its holds and places have not ended yet
  bool keeps_holds = false;  // when it ends
  ListHook<HostedSession> touched{};
};

}  // namespace lockd
