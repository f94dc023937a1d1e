// Departures: the sessions of one host that are over.
//
// A session with many holds ends over many turns, round-robin, so that one with 100,000 holds does
// not delay one with two. Until its last hold has ended, its id is not free and its record stays.
//
// Waits whose sessions are over are remembered: if such a wait ends with a grant, the grant is
// taken back.
//
// Used by the host's thread.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <vector>

#include "lockd/batch.h"
#include "server/client_registry.h"
#include "server/session/hosted_session.h"

namespace lockd {

class Departures {
 public:
  Departures(Batch& batch, ClientRegistry& clients) : batch_(batch), clients_(clients) {}

  // Precondition: the session is over.
  void begin(HostedSession& hosted);
  // Ends more of what sessions had. A turn ends a bounded part of it.
  void end_some();
  void end_all();
  bool is_ending() const { return !endings_.empty(); }

  // Calls `on_gone` when the session has ended all that it had, with the position at which that is
  // durable. Null: it has already.
  void await_end(HostedSession* hosted, ClientHost::OnGone on_gone);
  // `committed`: the position of the host's last commit.
  void notify_awaited(Position committed);

  // A wait of a session that is over. Takes back the grant with which it ends.
  void orphan_wait(SessionId id, PendingWait wait) { orphaned_.emplace(id, std::move(wait)); }
  void on_wait_done(const WaitResult& result);

  // Removes and returns the records that nothing needs any more.
  std::vector<HostedSession*> take_finished();

 private:
  struct Awaited {
    HostedSession* hosted = nullptr;  // null: it has ended
    ClientHost::OnGone on_gone;
    Position depends_on = 0;
  };

  void end(HostedSession& hosted, int* budget);

  Batch& batch_;
  ClientRegistry& clients_;
  std::vector<HostedSession*> leaving_;  // all that are over
  std::deque<HostedSession*> endings_;   // those that still have something
  std::vector<Awaited> awaited_;
  boost::unordered_flat_map<SessionId, PendingWait> orphaned_;
};

}  // namespace lockd
