// SessionHost: the sessions of one worker, turn by turn.
//
// receive() hands bytes to sessions, which execute complete requests through the host's one Batch.
// end_turn() commits the batch, handles what came for the sessions from elsewhere (ends of waits,
// lost holds, reports, signals), and writes once to each session that was run.
//
//   receive ──▶ Batch ──end_turn: commit──▶ inbox ──▶ signals ──▶ OutputGate ──▶ Transport
//
// OutputGate decides when output may leave, SignalOutlet what a turn does for signals, and
// Departures how sessions end.
//
// No socket, no thread and no clock. Everything belongs to one thread, but for the inbox, and for
// on_durable().
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/list.h"
#include "lockd/batch.h"
#include "server/session/departures.h"
#include "server/session/event_watchers.h"
#include "server/session/hosted_session.h"
#include "server/session/inbox.h"
#include "server/session/output_gate.h"
#include "server/session/signal_outlet.h"
#include "service/session_context.h"

namespace lockd {

// Who or what ends a session.
enum class CloseReason : std::uint8_t { peer, admin, server, journal };

class SessionHost final : private SignalOutlet::Sessions {
 public:
  explicit SessionHost(const HostSetup& setup);
  ~SessionHost();

  SessionContext& context() { return context_; }
  std::size_t size() const { return sessions_.size(); }
  // Null: there is no such session any more.
  HostedSession* find(SessionId id) const;

  // A client has connected. The session must have been made for this host's context().
  HostedSession& open(std::unique_ptr<ServerSession> session, std::unique_ptr<Transport> transport);
  // Executes what is complete in `unread`, as far as the session can go now, and returns how many
  // bytes it consumed. While the journal is behind, a session with corked output consumes nothing.
  std::size_t receive(HostedSession& hosted, std::string_view unread);
  void on_event(HostedSession& hosted, const SessionEvent& event);
  // The peer has closed or half-closed its side. Complete requests are answered first.
  void on_input_end(HostedSession& hosted);
  // Nothing can be read or written any more.
  void on_broken(HostedSession& hosted);
  // The peer has taken output: a report continues, if the session is in the middle of one.
  void continue_report(HostedSession& hosted);

  // Ends a session, sends its output, and closes the connection; or closes it at once.
  void finish(HostedSession& hosted, CloseReason reason);
  void cut(HostedSession& hosted, CloseReason reason = CloseReason::server);
  // Closes all sessions. When it returns, all that they had has ended.
  void cut_all();
  // Finishes the open sessions for which `condition` holds.
  template <typename Condition>
  void finish_if(Condition condition) {
    for (HostedSession* hosted : open_sessions()) {
      if (condition(*hosted->session)) finish(*hosted, CloseReason::server);
    }
  }
  // Closes the sessions that wait for a reply, and keeps their holds: another server may lead.
  void close_waiting();
  // The server begins to stop: ends what blocks sessions. Sessions with holds are served on; others
  // are closed.
  void drain();

  // Offers the transport's unread input again at the end of this turn or the next, to the session's
  // successor if it has one.
  void resume_later(HostedSession& hosted);
  // Looks at the session when the turn ends: sends its output, or closes it. While the server
  // stops, sessions must be looked at from time to time, because leases end.
  void touch(HostedSession& hosted);
  // Once in a while: shows key events that are durable to the sessions that watch.
  void show_events() { events_are_due_ = true; }

  // Any thread. More may have become durable.
  void on_durable() { gate_.on_durable(); }

  void end_turn();

 private:
  // What the executors of the sessions ask for.
  class Services final : public SessionServices {
   public:
    explicit Services(SessionHost& host) : host_(host) {}

   private:
    Listener& wait_listener() override { return host_.inbox_; }
    void request_report(SessionId id, ReportRequest request) override;
    bool watch_events(SessionId id, std::string_view prefix, PermitPtr restricted_to) override;
    std::optional<std::size_t> publish(SessionId publisher, std::string_view channel,
                                       std::string_view payload) override;
    bool disconnect(SessionId asker, SessionId client) override;
    void orphan_wait(SessionId id, PendingWait wait) override;

    SessionHost& host_;
  };

  // SignalOutlet::Sessions.
  bool is_open(SessionId id) const override { return find_open(id) != nullptr; }
  void on_published(SessionId publisher, std::size_t reached) override;
  void on_signal(SessionId listener, const Signal& signal) override;

  void handle_inbox();
  void handle(const Inbox::Letter& letter);
  void end_wait(SessionId id, const WaitResult& result);
  void push(HostedSession& hosted, const SessionEvent& event);
  void push_key_events();

  template <typename Run>
  void run_session(HostedSession& hosted, Run run);
  void send();
  void end_turn_of(HostedSession& hosted);
  void open_gate();
  void close_when_done(HostedSession& hosted);
  void end(HostedSession& hosted, CloseReason reason);
  static bool replace_session(HostedSession& hosted);
  HostedSession* find_open(SessionId id) const;
  std::vector<HostedSession*> open_sessions() const;

  Inbox inbox_;
  SignalOutlet signals_;
  Services services_{*this};
  SessionContext context_;
  OutputGate gate_;
  boost::unordered_flat_map<SessionId, std::unique_ptr<HostedSession>> sessions_;
  List<HostedSession, &HostedSession::touched> touched_;
  std::vector<SessionId> resuming_;  // their input is to be offered again
  EventWatchers watchers_;
  bool events_are_due_ = false;  // or not all events of the last time were shown
  Batch batch_;                  // commits when it is destroyed, which posts to the inbox
  Departures departures_;
};

}  // namespace lockd
