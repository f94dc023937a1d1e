#include "service/leader_gate.h"

#include "server/session/server_session.h"

namespace lockd {

std::unique_ptr<ServerSession> StandaloneGate::proxy(SessionContext&, ServerSession&,
                                                     ProxyRequest) {
  return nullptr;
}

std::unique_ptr<ServerSession> StandaloneGate::accept_link(SessionContext&, ServerSession&) {
  return nullptr;
}

LeaderGate& standalone_gate() {
  static StandaloneGate gate;
  return gate;
}

}  // namespace lockd
