#include "server/session/session_host.h"

#include <algorithm>
#include <utility>

#include "base/overloaded.h"
#include "server/log.h"

namespace lockd {
namespace {

// A message can let a session continue, whose request ends another wait, and so on. A turn handles
// most of that, but not all that other loops can think of.
constexpr int kRoundsPerTurn = 4;

}  // namespace

SessionHost::SessionHost(const HostSetup& setup)
    : inbox_(setup.wake),
      signals_(setup.hub, setup.stats, inbox_, *this, setup.wake),
      context_{setup, batch_, services_, *this, signals_.mailbox()},
      gate_(setup.engine, setup.stats, setup.wake),
      watchers_(setup.feed),
      batch_(setup.engine),
      departures_(batch_, setup.clients) {}

// Sessions that were never closed receive nothing any more.
SessionHost::~SessionHost() {
  for (const auto& [id, hosted] : sessions_) context_.clients.leave(id);
}

HostedSession& SessionHost::open(std::unique_ptr<ServerSession> session,
                                 std::unique_ptr<Transport> transport) {
  const SessionId id = session->id();
  const Peer& peer = session->executor().caller().peer();
  auto hosted = std::make_unique<HostedSession>(std::move(session), std::move(transport));
  hosted->activity = context_.clients.enter(id, hosted->session->protocol(), peer.address, inbox_,
                                            context_.mailbox, peer.forwarded_as);
  hosted->transport->attach(*hosted);
  return *(sessions_[id] = std::move(hosted));
}

HostedSession* SessionHost::find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

HostedSession* SessionHost::find_open(SessionId id) const {
  HostedSession* const hosted = find(id);
  return hosted == nullptr || hosted->is_over ? nullptr : hosted;
}

// A copy, because sessions may end while the caller goes through them.
std::vector<HostedSession*> SessionHost::open_sessions() const {
  std::vector<HostedSession*> open;
  for (const auto& [id, hosted] : sessions_) {
    if (!hosted->is_over) open.push_back(hosted.get());
  }
  return open;
}

// Running sessions.

// The output of `run` depends on what the session asked the engine for, and on no more.
template <typename Run>
void SessionHost::run_session(HostedSession& hosted, Run run) {
  batch_.take_position();
  run(*hosted.session, hosted.transport->output());
  OutputGate::depend(hosted, batch_.take_position());
  touch(hosted);
}

std::size_t SessionHost::receive(HostedSession& hosted, std::string_view unread) {
  const bool is_open = !hosted.is_over && hosted.session->is_open();
  hosted.is_held_back = is_open && hosted.is_corked() && context_.engine.journal_is_behind();
  if (!is_open) return unread.size();
  if (hosted.is_held_back) {
    touch(hosted);
    return 0;
  }
  std::size_t consumed = 0;
  run_session(hosted, [&](ServerSession& session, std::string& out) {
    consumed = session.on_bytes(unread, out);
  });
  if (!replace_session(hosted)) return consumed;
  return consumed + receive(hosted, unread.substr(consumed));
}

// Whether the session has a successor, which takes its place.
bool SessionHost::replace_session(HostedSession& hosted) {
  std::unique_ptr<ServerSession> successor = hosted.session->take_successor();
  if (successor == nullptr) return false;
  std::unique_ptr<ServerSession> predecessor = std::exchange(hosted.session, std::move(successor));
  hosted.session->succeed(std::move(predecessor));
  if (hosted.input_ended) hosted.session->on_event(InputEnded{}, hosted.transport->output());
  return true;
}

// An event may let the session continue with input that waited behind a blocked request.
void SessionHost::on_event(HostedSession& hosted, const SessionEvent& event) {
  const bool was_blocked = hosted.session->is_blocked();
  run_session(hosted,
              [&](ServerSession& session, std::string& out) { session.on_event(event, out); });
  if (was_blocked && !hosted.session->is_blocked()) hosted.transport->resume_input();
}

void SessionHost::on_input_end(HostedSession& hosted) {
  hosted.input_ended = true;
  hosted.session->on_event(InputEnded{}, hosted.transport->output());
  if (hosted.awaits_report) context_.reports.may_be_gone(hosted.id());
  touch(hosted);
}

// Something for a session that its client did not request. A client that takes no more is closed.
void SessionHost::push(HostedSession& hosted, const SessionEvent& event) {
  if (!hosted.transport->has_room_for(Transport::Push::signal)) return cut(hosted);
  if (hosted.is_over) return;  // the transport has just found that the peer is gone
  const bool continues = hosted.session->on_event(event, hosted.transport->output());
  continues ? touch(hosted) : cut(hosted);
}

// The inbox.

void SessionHost::handle_inbox() {
  for (int round = 0; round < kRoundsPerTurn; ++round) {
    batch_.commit();
    const std::vector<Inbox::Letter> letters = inbox_.take();
    if (letters.empty()) break;
    for (const Inbox::Letter& letter : letters) handle(letter);
  }
  signals_.publish_waiting();
  signals_.deliver_received();
  batch_.commit();
}

void SessionHost::handle(const Inbox::Letter& letter) {
  HostedSession* const hosted = find_open(letter.to);
  std::visit(Overloaded{
                 [&](const WaitResult& result) { end_wait(letter.to, result); },
                 [&](const std::shared_ptr<const ReportPiece>& piece) {
                   if (hosted == nullptr) return;
                   hosted->awaits_report = false;
                   OutputGate::depend(*hosted, piece->position);
                   on_event(*hosted, ReportArrived{*piece});
                   if (!hosted->session->is_blocked()) return;
                   hosted->report = piece->rest;
                   continue_report(*hosted);
                 },
                 [&](const LostHold& lost) {
                   if (hosted == nullptr) return;
                   OutputGate::depend(*hosted, lost.position);
                   push(*hosted, HoldLost{lost});
                 },
                 [&](const DisconnectRequest& request) {
                   if (hosted != nullptr) cut(*hosted, CloseReason::admin);
                   departures_.await_end(find(letter.to), request.on_gone);
                 },
                 [&](const ClientGone& gone) {
                   if (hosted == nullptr) return;
                   OutputGate::depend(*hosted, gone.position);
                   on_event(*hosted, ClientDisconnected{});
                 },
             },
             letter.message);
}

void SessionHost::end_wait(SessionId id, const WaitResult& result) {
  HostedSession* const hosted = find_open(id);
  if (hosted == nullptr) return departures_.on_wait_done(result);
  if (result.outcome == Outcome::ok) {
    const bool is_lost =
        hosted->session->grant_outlives_session() && hosted->transport->peer_has_left();
    if (is_lost) {
      finish(*hosted, CloseReason::peer);
      return departures_.on_wait_done(result);
    }
    OutputGate::note_hand_off(*hosted, result);
  }
  OutputGate::depend(*hosted, result.position);
  on_event(*hosted, WaitDone{result});
}

void SessionHost::on_published(SessionId publisher, std::size_t reached) {
  HostedSession* const hosted = find_open(publisher);
  if (hosted != nullptr) on_event(*hosted, SignalPublished{reached});
}

void SessionHost::on_signal(SessionId listener, const Signal& signal) {
  HostedSession* const hosted = find_open(listener);
  if (hosted != nullptr) push(*hosted, SignalReceived{signal});
}

// Services.

void SessionHost::Services::request_report(SessionId id, ReportRequest request) {
  HostedSession& hosted = *host_.find(id);
  hosted.awaits_report = true;
  request.may_be_gone = hosted.input_ended;
  request.confined_to = hosted.session->executor().caller().restriction();
  host_.context_.reports.ask(host_.inbox_, id, std::move(request));
}

bool SessionHost::Services::watch_events(SessionId id, std::string_view prefix,
                                         PermitPtr restricted_to) {
  return host_.watchers_.add(id, prefix, std::move(restricted_to));
}

std::optional<std::size_t> SessionHost::Services::publish(SessionId publisher,
                                                          std::string_view channel,
                                                          std::string_view payload) {
  return host_.signals_.publish(publisher, channel, payload);
}

bool SessionHost::Services::disconnect(SessionId asker, SessionId client) {
  Inbox& inbox = host_.inbox_;
  return host_.context_.clients.disconnect(
      client, [&inbox, asker](Position position) { inbox.post(asker, ClientGone{position}); });
}

void SessionHost::Services::orphan_wait(SessionId id, PendingWait wait) {
  host_.departures_.orphan_wait(id, std::move(wait));
}

void SessionHost::continue_report(HostedSession& hosted) {
  if (hosted.report == nullptr || !hosted.transport->has_room_for(Transport::Push::report)) return;
  context_.services.request_report(hosted.id(), {.rest = std::exchange(hosted.report, nullptr)});
}

// Turns.

void SessionHost::push_key_events() {
  if (!events_are_due_) return;
  events_are_due_ = watchers_.tell_some(
      {context_.engine.now(), context_.unix_ms()},
      [this](Position position) { return gate_.is_durable(position); },
      [this](SessionId watcher, const KeyEventJson& event, std::uint64_t missed) {
        HostedSession& hosted = *find(watcher);
        if (!hosted.transport->has_room_for(Transport::Push::event)) return false;
        hosted.session->on_event(KeyEventSeen{event, missed}, hosted.transport->output());
        touch(hosted);
        return true;
      });
}

void SessionHost::end_turn() {
  inbox_.begin_turn();
  for (const SessionId id : std::exchange(resuming_, {})) {
    HostedSession* const hosted = find_open(id);
    if (hosted == nullptr) continue;
    replace_session(*hosted);
    touch(*hosted);
    hosted->transport->resume_input();
  }
  handle_inbox();
  push_key_events();
  send();
  open_gate();
  send();  // what the gate let through for sessions that links carry
  departures_.end_some();
  departures_.notify_awaited(batch_.commit());
  for (HostedSession* hosted : departures_.take_finished()) {
    if (hosted->touched.linked()) touched_.remove(hosted);
    sessions_.erase(hosted->id());
  }
  const bool needs_signals = signals_.end_turn();
  const bool has_letters = inbox_.end_turn();
  const bool needs_turn = needs_signals || has_letters || departures_.is_ending() ||
                          events_are_due_ || !resuming_.empty();
  if (needs_turn) context_.wake();
}

void SessionHost::send() {
  std::size_t clients = 0;
  Position position = 0;
  while (HostedSession* hosted = touched_.pop_front()) {
    end_turn_of(*hosted);
    ++clients;
    position = std::max(position, hosted->gate.depends_on);
  }
  if (clients > 0 && logs(LogLevel::trace)) {
    log_event(LogLevel::trace, "batch",
              {{"worker", context_.mailbox}, {"clients", clients}, {"position", position}});
  }
}

void SessionHost::end_turn_of(HostedSession& hosted) {
  if (!hosted.is_corked()) gate_.send_or_cork(hosted);
  if (!hosted.is_over && hosted.session->follows_output()) {
    const OutputTaken taken{hosted.activity->unsent_bytes};
    hosted.session->on_event(taken, hosted.transport->output());
  }
  if (!hosted.is_over) close_when_done(hosted);
  hosted.transport->on_turn_end();
  continue_report(hosted);
}

void SessionHost::resume_later(HostedSession& hosted) {
  if (resuming_.empty()) context_.wake();
  resuming_.push_back(hosted.id());
}

void SessionHost::touch(HostedSession& hosted) {
  if (!hosted.touched.linked()) touched_.push_back(&hosted);
}

// Sends what has become durable.
void SessionHost::open_gate() {
  while (const SessionId id = gate_.next_durable()) {
    HostedSession* const hosted = find(id);
    if (hosted == nullptr || !gate_.is_corked_at(*hosted)) continue;
    const bool is_lost = !hosted->is_over && OutputGate::has_undelivered(*hosted) &&
                         hosted->transport->peer_has_left();
    if (is_lost) finish(*hosted, CloseReason::peer);
    gate_.uncork(*hosted);
    if (hosted->closes && !hosted->is_corked()) hosted->transport->close_gently();
    continue_report(*hosted);
    hosted->transport->on_turn_end();
  }
}

// Ends.

void SessionHost::close_when_done(HostedSession& hosted) {
  ServerSession& session = *hosted.session;
  if (hosted.input_ended && session.needs_peer()) return finish(hosted, CloseReason::peer);
  const bool all_consumed = hosted.input_ended && !hosted.transport->input_pending();
  const bool is_drained = context_.draining && session.is_open() &&
                          !hosted.transport->input_pending() && session.can_close();
  const bool is_done = session.close_state() == ServerSession::CloseState::closing ||
                       (session.is_open() && all_consumed) || is_drained;
  if (!is_done || session.is_blocked()) return;
  finish(hosted, all_consumed ? CloseReason::peer : CloseReason::server);
}

void SessionHost::on_broken(HostedSession& hosted) {
  OutputGate::revoke_undelivered(hosted, batch_);
  end(hosted, CloseReason::peer);
}

void SessionHost::finish(HostedSession& hosted, CloseReason reason) {
  if (reason == CloseReason::peer) OutputGate::revoke_undelivered(hosted, batch_);
  end(hosted, reason);
  hosted.closes = true;
  if (!hosted.is_corked()) gate_.send_or_cork(hosted);  // what was appended in this turn
  const bool waits = hosted.is_corked() && !hosted.transport->output().empty();
  if (!waits) hosted.transport->close_gently();
}

void SessionHost::cut(HostedSession& hosted, CloseReason reason) {
  OutputGate::revoke_undelivered(hosted, batch_);
  end(hosted, reason);
  hosted.transport->close();
}

void SessionHost::cut_all() {
  for (HostedSession* hosted : open_sessions()) cut(*hosted);
  departures_.end_all();
}

void SessionHost::close_waiting() {
  for (const auto& [id, hosted] : sessions_) {
    const bool waits = hosted->is_corked() || hosted->session->is_blocked();
    if (!waits && !hosted->session->carries_others()) continue;
    end(*hosted, CloseReason::journal);
    hosted->transport->close();
  }
}

void SessionHost::drain() {
  context_.draining = true;
  for (HostedSession* hosted : open_sessions()) {
    if (hosted->session->carries_others()) cut(*hosted, CloseReason::journal);
  }
  for (HostedSession* hosted : open_sessions()) on_event(*hosted, DrainBegun{});
}

// Holds end with the session if its client left or broke a rule; an option can change that. They
// survive if the server stops and will recover, or if it has lost its journal's leadership: neither
// is the client's doing.
void SessionHost::end(HostedSession& hosted, CloseReason reason) {
  if (std::exchange(hosted.is_over, true)) return;
  ServerSession& session = *hosted.session;
  if (reason == CloseReason::peer && session.is_open() && hosted.has_half_a_request()) {
    session.on_event(RequestTruncated{}, hosted.transport->output());
  }
  const bool broke_rule = !session.is_open() && session.violation() != Violation::none;
  const bool stops = reason == CloseReason::server && context_.draining && !broke_rule;
  const bool survives = reason == CloseReason::journal || (stops && context_.keeps_holds);
  hosted.keeps_holds = survives || !context_.options.auto_release_on_disconnect;
  session.on_event(SessionLeaving{survives}, hosted.transport->output());
  watchers_.remove(session.id());
  hosted.report = nullptr;
  if (hosted.awaits_report) context_.reports.cancel(session.id());
  departures_.begin(hosted);
  hosted.transport->on_session_end();
}

}  // namespace lockd
