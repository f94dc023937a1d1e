// The sessions of one worker: what comes in for them, and when what they say may leave.
//
// A turn: receive() hands bytes to sessions, which execute what is complete through the host's one
// Batch. end_turn() commits that, takes in what came for the sessions from elsewhere (ends of
// waits, lost holds, reports, signals), and sends to each session once.
//
// What others publish has a budget: leases depend on the length of a turn. Requests, grants and
// reports come first; then as many signals go out, and are handed to sessions, as the budget
// allows, and the rest belongs to later turns. A session whose signal has to wait is blocked
// meanwhile. So does what a session leaves behind: one that had very much ends over many turns.
//
// The gate: nobody may hear of what a crash could still undo. Each answer rests on a position in
// the journal. A session's output is corked until the largest position of its own answers is
// durable; what it says meanwhile is corked in its turn. So a busy client hears something with
// every sync, nobody waits for what others did in the same turn, and a grant that is handed on
// leaves with the sync that lets the releaser's answer leave.
//
// No socket, no thread, no clock: see Transport and HostSetup. Everything belongs to one thread,
// but for on_wait_done(), deliver(), on_room(), deliver_report(), leave_loss(), leave_disconnect()
// and on_durable(), which any thread may call.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/list.h"
#include "base/mutex.h"
#include "lockd/batch.h"
#include "pubsub/signal_hub.h"
#include "server/session/event_watchers.h"
#include "server/session/server_session.h"
#include "server/session/transport.h"

namespace lockd {

class SessionHost final : private Listener,
                          private Mailbox,
                          private ReportReader,
                          private ClientHost {
 public:
  explicit SessionHost(const HostSetup& setup);
  ~SessionHost();

  SessionContext& context() { return context_; }
  std::size_t size() const { return sessions_.size(); }
  // Null: it is gone.
  Transport* find(SessionId id) const;

  // A client has come. The session must have been made for this host's context().
  Transport& open(std::unique_ptr<ServerSession> session, std::unique_ptr<Transport> transport);
  // Executes what is complete in `unread`, as far as the session can go now, and returns how many
  // bytes were taken. While the journal is behind, a session that waits for it takes nothing.
  std::size_t receive(Transport& hosted, std::string_view unread);
  // TLS has shaken hands, and the client's certificate says this. Before anything is received.
  void on_certificate(Transport& hosted, const CertificateNames& certificate);
  // The peer has closed or half-closed: what was complete is answered first.
  void peer_closed(Transport& hosted);
  // Nothing can be read or written any more.
  void broken(Transport& hosted);

  // It is not served here, whatever it says.
  void turn_away(Transport& hosted);
  // Its peer has been silent for too long; `half` of a request is there. And whether that matters.
  void time_out(Transport& hosted, bool half);
  bool may_be_silent(Transport& hosted);
  // It was kept waiting for long enough: see ServerSession::pause().
  void end_pause(Transport& hosted);
  // Its peer has taken what there was: the report goes on, if it is in the middle of one.
  void continue_report(Transport& hosted);
  // It may have something to say just to show that it is alive.
  void ping(Transport& hosted);

  // Ends a session, sends what there is and closes; as the peer's doing, an admin's, or the
  // server's.
  enum class Ender : std::uint8_t { peer, admin, server, journal };
  void finish(Transport& hosted, Ender ender);
  // At once.
  void cut(Transport& hosted, Ender ender = Ender::server);
  void cut_all();  // those that are not over; what they had has ended when it returns
  // The server begins to stop: what blocks is given up, and who holds nothing is closed. Those who
  // hold are served on.
  void drain();
  // Whether it still holds anything: leases end unasked.
  void look_again(Transport& hosted);
  // Permits have changed: closes whose client has none any more.
  void finish_unpermitted();
  // Closes who is owed no answer.
  void finish_idle();
  // Has what is unread of a transport's input offered with the end of this turn, or the next, to
  // the session's successor if it has one.
  void resume_later(Transport& hosted);
  // Has what was appended to a transport's output be sent with the end of this turn.
  void send_soon(Transport& hosted) { touch(hosted); }
  // Closes who waits for an answer, and keeps what they hold: another server may lead by now.
  void send_waiting_elsewhere();

  // Now and then: has those who watch told, by the turns from now on, of what has happened to keys
  // and is durable.
  void show_events() { events_are_due_ = true; }

  // For sessions. The report comes by ServerSession::report(), piece by piece as the peer takes it;
  // events by on_key_event().
  void ask(SessionId id, ReportRequest request);
  bool watch_events(SessionId id, std::string_view prefix);
  // Has a client of any host disconnected. `asker` hears `reply` as a report then. False: it is not
  // connected.
  bool disconnect(SessionId asker, SessionId client, std::string reply);
  // How many the signal reached; none: it has to wait, and the session hears by on_published().
  std::optional<std::size_t> publish(ServerSession& publisher, std::string_view channel,
                                     std::string_view payload);
  // The session ends while a grant for it may be on its way: if it is, it is to be taken back.
  void abandon(const ServerSession& session) { abandoned_.emplace(session.id(), session.wait()); }
  Listener& listener() { return *this; }  // of their waits, by session id

  // Any thread. More may have become durable.
  void on_durable();

  void end_turn();

 private:
  // From another thread, or from this one. A session has at most one that ends what blocks it.
  struct ReportFor {
    SessionId id;
    std::shared_ptr<const ReportPiece> piece;
  };
  struct LossFor {
    SessionId id;
    LostHold lost;
  };
  struct DisconnectOf {
    SessionId id;
    OnGone on_gone;
    Position rests_on = 0;
  };
  using Delivery = std::variant<WaitResult, ReportFor, LossFor, DisconnectOf>;
  struct SignalFor {
    std::shared_ptr<const Signal> signal;
    std::vector<SessionId> listeners;
  };

  // The last signal that has begun to go out.
  struct Publication {
    SessionId publisher = 0;
    std::size_t reached = 0;
    std::shared_ptr<const Signal> rest{};  // not null: it is half out
  };

  // A session whose output waits for the journal.
  struct Corked {
    Position position;
    SessionId id;
    friend bool operator>(const Corked& a, const Corked& b) { return a.position > b.position; }
  };
  using Gate = std::priority_queue<Corked, std::vector<Corked>, std::greater<>>;

  void on_wait_done(const WaitResult& result) noexcept override;
  void deliver(std::span<const std::uint64_t> subscribers,
               const std::shared_ptr<const Signal>& signal) noexcept override;
  void on_room() noexcept override;
  void deliver_report(SessionId asker, std::shared_ptr<const ReportPiece> piece) override;
  void leave_loss(SessionId client, LostHold lost) noexcept override;
  void leave_disconnect(SessionId client, OnGone on_gone) override;
  template <typename Item>
  void leave(std::vector<Item> SessionHost::*inbox, Item item) EXCLUDES(inbox_mutex_);
  void take_in() EXCLUDES(inbox_mutex_);
  bool take_inbox() EXCLUDES(inbox_mutex_);
  void take(const WaitResult& result);
  void take(const ReportFor& delivery);
  void take(const LossFor& delivery);
  void take(const DisconnectOf& delivery);
  bool has_room() const;
  bool may_publish() const;
  bool begin_publishing(SessionId publisher, std::string_view channel, std::string_view payload);
  void go_on_publishing();
  void note(SignalHub::Published published);
  void publish_some();
  void hand_on_signals() EXCLUDES(inbox_mutex_);
  void hand_on(const Signal& signal, SessionId listener);
  template <typename Call>
  void push(Transport& hosted, Call call);
  void tell_events();
  bool tell(SessionId watcher, const KeyEventJson& event, std::uint64_t missed);
  bool is_anything_left() EXCLUDES(inbox_mutex_);
  void note_hand_off(Transport& hosted, const WaitResult& result);
  void take_back(const WaitResult& result);
  void take_back(const ServerSession::Wait& wait, const Grant& grant);
  void take_back_unsent(Transport& hosted);
  static bool outlives_session(const Transport::HandOff& hand_off);
  bool is_nobodys(const Transport& hosted) const;

  Transport* find_open(SessionId id) const;
  template <typename Call>
  void let_speak(Transport& hosted, Call call);
  void touch(Transport& hosted);
  void send();  // to each session that was touched
  void flush(Transport& hosted);
  void send_or_cork(Transport& hosted);
  void uncork(Transport& hosted);
  void count_hand_offs(Transport& hosted, std::uint64_t until);
  void open_gate();
  bool is_durable(Position position) const { return context_.engine.is_durable(position); }

  void close_when_over(Transport& hosted);
  void end(Transport& hosted, Ender ender);
  void end_more(Transport& hosted, int* budget);
  void end_some(int budget);
  void tell_of_those_gone(Position committed);
  void forget_those_gone();
  void resume_some();
  static bool succeed(Transport& hosted);
  std::vector<Transport*> all() const;

  SessionContext context_;
  boost::unordered_flat_map<SessionId, std::unique_ptr<Transport>> sessions_;
  std::vector<Transport*> leaving_;  // over; their transports are not idle yet
  std::deque<Transport*> endings_;   // over; they have not ended all that they had
  std::vector<SessionId> resuming_;  // whose input is to be offered again
  // Waits of sessions that are over: if they end with a grant, that is taken back.
  boost::unordered_flat_map<SessionId, ServerSession::Wait> abandoned_;
  EventWatchers watchers_;
  bool events_are_due_ = false;  // or those of the last time are not all told
  List<Transport, &Transport::touched_> touched_;
  Gate gate_;
  std::atomic<bool> wants_durable_{false};  // the gate is not empty

  std::deque<SessionId> publishers_;  // each keeps its signal, which waits
  Publication publication_;
  std::size_t visited_ = 0;              // by what was published in this turn
  std::atomic<bool> wants_room_{false};  // a signal waits for it
  std::deque<SignalFor> signals_;        // that were taken from the inbox
  std::size_t handed_on_ = 0;            // of the first of them: to so many of its listeners

  std::vector<DisconnectOf> disconnecting_;  // by admins, who wait to hear of it

  Mutex inbox_mutex_;
  std::vector<Delivery> inbox_ GUARDED_BY(inbox_mutex_);
  std::vector<SignalFor> signal_inbox_ GUARDED_BY(inbox_mutex_);

  Batch batch_;  // last: what it commits as it goes is left in the inbox
};

}  // namespace lockd
