// LeaderGate: what a session, its host and its codecs know of the cluster.
//
// Whether this server follows, where the leader is, and how a client reaches it: a session that has
// a request for the leader hands its connection over to the session that proxy() makes, which
// copies bytes. A server on its own has a StandaloneGate. One gate for each loop; it is used by the
// loop's thread only.
#pragma once

#include <memory>
#include <string>

#include "lockd/batch.h"

namespace lockd {

class ServerSession;
struct SessionContext;

// What a client's bytes begin with at the leader.
struct ProxyRequest {
  // One HTTP request, for a session that is answered one request at a time; empty: the client's own
  // lines, from what it left unread on.
  std::string http{};
  // The request comes from this machine, and from no proxy that asks for others.
  bool is_loopback = false;
};

class LeaderGate {
 public:
  virtual ~LeaderGate() = default;

  // Another server leads, or none: this engine grants nothing.
  virtual bool follows() const = 0;
  // A channel to the leader can be opened at once.
  virtual bool reaches_leader() const = 0;
  // Where clients reach the leader, "host:port", by lines and over HTTP; "-" if that is not known.
  virtual std::string leader_address() const = 0;
  virtual std::string leader_http_address() const = 0;
  // The answers of this turn leave when it is certain that this server led during the turn.
  virtual void confirm(Batch& batch) = 0;

  // The session that takes the place of `client`, with the same id, peer and permit: it opens a
  // channel to the leader, or waits for a leader for at most --forward-timeout. The host gives it
  // `client` by ServerSession::replace(), and takes `client` back when it calls
  // SessionHost::resume_later(): with the HTTP reply that was awaited, or without a leader.
  //
  // Null: the request is to be executed here, which answers that this server does not lead. Nothing
  // is forwarded, `client` came from another server, or it has waited in vain just now.
  virtual std::unique_ptr<ServerSession> proxy(SessionContext& context, ServerSession& client,
                                               ProxyRequest request) = 0;
  // The session that takes the place of `client`, which has sent the command `peer`: the leader's
  // end of a link. Null: there is no such command here.
  virtual std::unique_ptr<ServerSession> accept_link(SessionContext& context,
                                                     ServerSession& client) = 0;

  // The worker calls these: with every tick of its loop, and with the end of each turn.
  virtual void tick() = 0;
  virtual void end_turn() = 0;
};

// One server, which always leads.
class StandaloneGate final : public LeaderGate {
 public:
  bool follows() const override { return false; }
  bool reaches_leader() const override { return false; }
  std::string leader_address() const override { return "-"; }
  std::string leader_http_address() const override { return "-"; }
  void confirm(Batch&) override {}
  std::unique_ptr<ServerSession> proxy(SessionContext&, ServerSession&, ProxyRequest) override;
  std::unique_ptr<ServerSession> accept_link(SessionContext&, ServerSession&) override;
  void tick() override {}
  void end_turn() override {}
};

// For a host that is given no other.
LeaderGate& standalone_gate();

}  // namespace lockd
