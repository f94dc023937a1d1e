#include "server/session/session_host.h"

#include <algorithm>
#include <utility>

#include "server/log.h"
#include "server/reports/report.h"
#include "server/session/hold_params.h"

namespace lockd {
namespace {

// The host whose turn this thread is ending: it takes in by itself what is left for it meanwhile.
thread_local const SessionHost* ending_turn = nullptr;

// What comes in may let a session go on, which may end another wait, and so on: most of it belongs
// to one turn, but not all that other loops can think of.
constexpr int kRoundsPerTurn = 4;
// How much of signals one turn has to take: subscriptions looked at to publish them, and what they
// cost to hand on. A few milliseconds each.
constexpr std::size_t kVisitsPerTurn = 64 * 1024;
constexpr std::size_t kSignalCostPerTurn = SignalHub::kBacklogMax / 2;
// Of what sessions leave behind: each ends so much at once, which is all that most have; then one
// after the other so much, and so much in one turn. Some milliseconds.
constexpr int kStepsAtOnce = 64;
constexpr int kStepsEach = 256;
constexpr int kStepsPerTurn = 4096;

}  // namespace

SessionHost::SessionHost(const HostSetup& setup)
    : Listener(Listener::Delivery::at_commit),
      context_{setup, batch_, *this, setup.hub.attach(*this)},
      watchers_(setup.feed),
      batch_(setup.engine) {}

// Those that were never closed are told of nothing any more.
SessionHost::~SessionHost() {
  for (const auto& [id, hosted] : sessions_) context_.clients.leave(id);
}

// Clients come, speak and go.

Transport& SessionHost::open(std::unique_ptr<ServerSession> session,
                             std::unique_ptr<Transport> transport) {
  const SessionId id = session->id();
  transport->activity_ =
      context_.clients.enter(id, session->protocol(), session->peer().address, *this,
                             context_.mailbox, session->peer().forwarded_as);
  transport->session_ = std::move(session);
  return *(sessions_[id] = std::move(transport));
}

// Whatever the call makes the session say rests on what it asked the engine for, and on no more.
template <typename Call>
void SessionHost::let_speak(Transport& hosted, Call call) {
  batch_.take_position();
  call(*hosted.session_, hosted.output());
  hosted.rests_on_ = std::max(hosted.rests_on_, batch_.take_position());
  touch(hosted);
}

std::size_t SessionHost::receive(Transport& hosted, std::string_view unread) {
  const bool is_open = !hosted.is_over_ && hosted.session_->fate() == ServerSession::Fate::open;
  hosted.is_held_back_ = is_open && hosted.is_corked_ && context_.engine.journal_is_behind();
  if (!is_open) return unread.size();
  if (hosted.is_held_back_) {
    touch(hosted);
    return 0;
  }
  std::size_t taken = 0;
  let_speak(hosted, [&](ServerSession& session, std::string& out) {
    taken = session.take_in(unread, out);
  });
  if (!succeed(hosted)) return taken;
  // What the last session left unread is the next one's.
  taken += receive(hosted, unread.substr(taken));
  if (hosted.input_ended_) hosted.session_->on_end_of_input();
  return taken;
}

bool SessionHost::succeed(Transport& hosted) {
  std::unique_ptr<ServerSession> successor = hosted.session_->take_successor();
  if (successor == nullptr) return false;
  ServerSession& next = *successor;
  next.replace(std::exchange(hosted.session_, std::move(successor)));
  return true;
}

void SessionHost::on_certificate(Transport& hosted, const CertificateNames& certificate) {
  hosted.session_->on_certificate(certificate);
}

// What was complete is answered first; what waits in the queue, or is half there, never will be.
void SessionHost::peer_closed(Transport& hosted) {
  hosted.input_ended_ = true;
  hosted.session_->on_end_of_input();
  if (hosted.awaits_report_) context_.reports.may_be_gone(hosted.session_->id());
  touch(hosted);
}

void SessionHost::turn_away(Transport& hosted) {
  let_speak(hosted, [](ServerSession& session, std::string& out) { session.turn_away(out); });
}

void SessionHost::time_out(Transport& hosted, bool half) {
  let_speak(hosted,
            [half](ServerSession& session, std::string& out) { session.time_out(half, out); });
}

// What stood behind the request goes on with its answer.
void SessionHost::end_pause(Transport& hosted) {
  let_speak(hosted, [](ServerSession& session, std::string& out) { session.end_pause(out); });
  hosted.resume_input();
}

bool SessionHost::may_be_silent(Transport& hosted) { return hosted.session_->may_be_silent(); }

void SessionHost::ping(Transport& hosted) {
  std::string& out = hosted.output();
  const std::size_t size = out.size();
  hosted.session_->ping(out);
  if (out.size() > size) touch(hosted);
}

// In a cluster another server is about to lead: those who came by links are served there.
void SessionHost::drain() {
  context_.draining = true;
  for (Transport* hosted : all()) {
    if (!hosted->is_over_ && hosted->session_->carries_others()) cut(*hosted, Ender::journal);
  }
  for (Transport* hosted : all()) {
    if (hosted->is_over_) continue;
    let_speak(*hosted, [](ServerSession& session, std::string& out) { session.drain(out); });
  }
}

void SessionHost::look_again(Transport& hosted) {
  if (context_.draining && !hosted.is_over_) touch(hosted);
}

void SessionHost::finish_unpermitted() {
  for (Transport* hosted : all()) {
    if (!hosted->is_over_ && !hosted->session_->renew_permit()) finish(*hosted, Ender::server);
  }
}

void SessionHost::finish_idle() {
  for (Transport* hosted : all()) {
    if (!hosted->is_over_ && !hosted->session_->blocked()) finish(*hosted, Ender::server);
  }
}

void SessionHost::send_waiting_elsewhere() {
  for (Transport* hosted : all()) {
    const bool waits = hosted->is_corked_ || hosted->session_->blocked();
    if (!waits && !hosted->session_->carries_others()) continue;
    end(*hosted, Ender::journal);
    hosted->close();
  }
}

void SessionHost::cut_all() {
  for (Transport* hosted : all()) {
    if (!hosted->is_over_) cut(*hosted);
  }
  while (!endings_.empty()) end_some(kStepsPerTurn);
}

// To be gone through while some of them end.
std::vector<Transport*> SessionHost::all() const {
  std::vector<Transport*> all;
  all.reserve(sessions_.size());
  for (const auto& [id, hosted] : sessions_) all.push_back(hosted.get());
  return all;
}

Transport* SessionHost::find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

// Null: it has closed meanwhile.
Transport* SessionHost::find_open(SessionId id) const {
  Transport* const hosted = find(id);
  return hosted == nullptr || hosted->is_over_ ? nullptr : hosted;
}

// From other threads, and from this one.

void SessionHost::on_wait_done(const WaitResult& result) noexcept {
  leave(&SessionHost::inbox_, Delivery(result));
}

void SessionHost::deliver_report(SessionId asker, std::shared_ptr<const ReportPiece> piece) {
  leave(&SessionHost::inbox_, Delivery(ReportFor{asker, std::move(piece)}));
}

void SessionHost::deliver(std::span<const std::uint64_t> subscribers,
                          const std::shared_ptr<const Signal>& signal) noexcept {
  leave(&SessionHost::signal_inbox_, SignalFor{signal, {subscribers.begin(), subscribers.end()}});
}

void SessionHost::leave_loss(SessionId client, LostHold lost) noexcept {
  leave(&SessionHost::inbox_, Delivery(LossFor{client, std::move(lost)}));
}

void SessionHost::leave_disconnect(SessionId client, OnGone on_gone) {
  leave(&SessionHost::inbox_, Delivery(DisconnectOf{client, std::move(on_gone)}));
}

template <typename Item>
void SessionHost::leave(std::vector<Item> SessionHost::*inbox, Item item) {
  bool was_empty = false;
  {
    MutexLock lock(inbox_mutex_);
    was_empty = (this->*inbox).empty();
    (this->*inbox).push_back(std::move(item));
  }
  if (was_empty && ending_turn != this) context_.wake();
}

void SessionHost::take_in() {
  for (int round = 0; round < kRoundsPerTurn; ++round) {
    batch_.commit();
    if (!take_inbox()) break;
  }
  publish_some();
  hand_on_signals();
  batch_.commit();
}

// False when there was nothing.
bool SessionHost::take_inbox() {
  std::vector<Delivery> inbox;
  {
    MutexLock lock(inbox_mutex_);
    inbox.swap(inbox_);
  }
  for (const Delivery& delivery : inbox) {
    std::visit([this](const auto& what) { take(what); }, delivery);
  }
  return !inbox.empty();
}

void SessionHost::take(const WaitResult& result) {
  Transport* const hosted = find_open(result.id);
  if (hosted == nullptr) return take_back(result);
  if (result.outcome == Outcome::ok && is_nobodys(*hosted)) {
    finish(*hosted, Ender::peer);
    return take_back(result);
  }
  if (result.outcome == Outcome::ok) note_hand_off(*hosted, result);
  hosted->rests_on_ = std::max(hosted->rests_on_, result.position);
  let_speak(*hosted,
            [&](ServerSession& session, std::string& out) { session.on_wait_done(result, out); });
  hosted->resume_input();
}

// The wait is kept only where the grant may have to be taken back.
void SessionHost::note_hand_off(Transport& hosted, const WaitResult& result) {
  auto& hand_off = hosted.hand_offs_.emplace_back();
  hand_off.grant = result.grant;
  hand_off.said = hosted.said();
  if (hosted.session_->holds_outlive_it()) hand_off.wait = hosted.session_->wait();
}

void SessionHost::take(const ReportFor& delivery) {
  Transport* const hosted = find_open(delivery.id);
  if (hosted == nullptr) return;
  const ReportPiece& piece = *delivery.piece;
  hosted->awaits_report_ = false;
  hosted->rests_on_ = std::max(hosted->rests_on_, piece.position);
  let_speak(*hosted, [&](ServerSession& session, std::string& out) { session.report(piece, out); });
  if (!hosted->session_->blocked()) return hosted->resume_input();
  hosted->report_ = piece.rest;
  continue_report(*hosted);
}

void SessionHost::take(const LossFor& delivery) {
  Transport* const hosted = find_open(delivery.id);
  if (hosted == nullptr) return;
  hosted->rests_on_ = std::max(hosted->rests_on_, delivery.lost.position);
  push(*hosted, [&](ServerSession& session, std::string& out) {
    return session.on_lost(delivery.lost, out);
  });
}

void SessionHost::take(const DisconnectOf& delivery) {
  if (Transport* const hosted = find_open(delivery.id)) cut(*hosted, Ender::admin);
  disconnecting_.push_back({delivery.id, delivery.on_gone, batch_.commit()});
}

// Who had much ends over many turns. One that has left meanwhile is gone as well.
void SessionHost::tell_of_those_gone(Position committed) {
  std::erase_if(disconnecting_, [&](DisconnectOf& one) {
    one.rests_on = std::max(one.rests_on, committed);
    const Transport* const hosted = find(one.id);
    if (hosted != nullptr && hosted->is_ending_) return false;
    one.on_gone(one.rests_on);
    return true;
  });
}

void SessionHost::ask(SessionId id, ReportRequest request) {
  Transport& hosted = *find(id);
  hosted.awaits_report_ = true;
  request.may_be_gone = hosted.input_ended_;
  request.confined_to = hosted.session_->confinement();
  context_.reports.ask(*this, id, std::move(request));
}

bool SessionHost::disconnect(SessionId asker, SessionId client, std::string reply) {
  const auto tell = [this, asker, reply = std::move(reply)](Position position) {
    const ReportPiece piece{.text = reply, .position = position};
    deliver_report(asker, std::make_shared<const ReportPiece>(piece));
  };
  return context_.clients.disconnect(client, tell);
}

void SessionHost::continue_report(Transport& hosted) {
  if (!hosted.is_over_) hosted.session_->on_sent(hosted.activity().unsent_bytes);
  if (hosted.report_ == nullptr || !hosted.has_room_for_report()) return;
  ask(hosted.session_->id(), {.rest = std::exchange(hosted.report_, nullptr)});
}

// Whether a grant would outlive a peer that has gone, which nobody knew yet.
bool SessionHost::is_nobodys(const Transport& hosted) const {
  return hosted.session_->holds_outlive_it() && hosted.peer_has_left();
}

void SessionHost::take_back(const WaitResult& result) {
  const auto found = abandoned_.find(result.id);
  if (found == abandoned_.end()) return;
  if (result.outcome == Outcome::ok) take_back(found->second, result.grant);
  abandoned_.erase(found);
}

void SessionHost::take_back(const ServerSession::Wait& wait, const Grant& grant) {
  if (wait.all != nullptr) {
    batch_.withdraw_all({.keys = wait.all->items(), .holder = wait.holder, .fence = grant.fence});
    return;
  }
  const Holder by_secret(nullptr, grant.secret);
  batch_.withdraw({.key = wait.key,
                   .holder = wait.holder.empty() ? by_secret : Holder(wait.holder),
                   .fence = grant.fence,
                   .kind = wait.kind});
}

// Grants that the peer will never hear of.
void SessionHost::take_back_unsent(Transport& hosted) {
  auto& hand_offs = hosted.hand_offs_;
  const auto first = std::find_if(hand_offs.begin(), hand_offs.end(), outlives_session);
  if (first == hand_offs.end()) return;
  hosted.unsay(first->said);
  for (const auto& hand_off : hand_offs) {
    if (outlives_session(hand_off)) take_back(hand_off.wait, hand_off.grant);
  }
  hand_offs.clear();
}

bool SessionHost::outlives_session(const Transport::HandOff& hand_off) {
  return !hand_off.wait.key.empty();
}

// Signals.

// A signal that is half out keeps the others waiting, but not itself.
bool SessionHost::has_room() const {
  return publication_.rest == nullptr ? !context_.hub.is_behind() : context_.hub.has_room();
}

bool SessionHost::may_publish() const { return visited_ < kVisitsPerTurn && has_room(); }

std::optional<std::size_t> SessionHost::publish(ServerSession& publisher, std::string_view channel,
                                                std::string_view payload) {
  if (!publishers_.empty() || !begin_publishing(publisher.id(), channel, payload)) {
    publisher.unpublished() = {std::string(channel), std::string(payload)};
    publishers_.push_back(publisher.id());
    return {};
  }
  if (publication_.rest != nullptr) return {};
  return publication_.reached;
}

// False: it has to wait.
bool SessionHost::begin_publishing(SessionId publisher, std::string_view channel,
                                   std::string_view payload) {
  if (publication_.rest != nullptr || !may_publish()) return false;
  std::optional<SignalHub::Published> published = context_.hub.publish(channel, payload);
  if (!published) return false;
  publication_ = {.publisher = publisher};
  note(std::move(*published));
  context_.stats.signals_published.add();
  return true;
}

void SessionHost::note(SignalHub::Published published) {
  visited_ += published.visited;
  publication_.reached += published.reached;
  publication_.rest = std::move(published.rest);
  context_.stats.signals_delivered.add(published.reached);
}

// As far as the turn allows. Its publisher hears when all of it is out, if it is still there.
void SessionHost::go_on_publishing() {
  while (publication_.rest != nullptr && may_publish()) {
    note(context_.hub.go_on(publication_.rest));
  }
  if (publication_.rest != nullptr) return;
  Transport* const hosted = find_open(publication_.publisher);
  if (hosted == nullptr) return;
  let_speak(*hosted, [&](ServerSession& session, std::string& out) {
    session.on_published(publication_.reached, out);
  });
  hosted->resume_input();
}

// What is half out, alone: those of other loops have waited for it, and come next. Or those that
// wait here, first come, first served; who goes on then may publish the next, which is the last in
// turn.
void SessionHost::publish_some() {
  if (publication_.rest != nullptr) return go_on_publishing();
  while (!publishers_.empty()) {
    const SessionId publisher = publishers_.front();
    Transport* const hosted = find_open(publisher);
    if (hosted != nullptr) {
      ServerSession::Unpublished& waiting = hosted->session_->unpublished();
      if (!begin_publishing(publisher, waiting.channel, waiting.payload)) return;
      waiting = {};
    }
    publishers_.pop_front();
    if (hosted != nullptr) go_on_publishing();
  }
}

void SessionHost::on_room() noexcept {
  if (wants_room_.exchange(false)) context_.wake();
}

void SessionHost::hand_on_signals() {
  {
    MutexLock lock(inbox_mutex_);
    std::move(signal_inbox_.begin(), signal_inbox_.end(), std::back_inserter(signals_));
    signal_inbox_.clear();
  }
  std::size_t cost = 0;
  while (!signals_.empty() && cost < kSignalCostPerTurn) {
    const SignalFor& next = signals_.front();
    hand_on(*next.signal, next.listeners[handed_on_]);
    cost += next.signal->cost();
    if (++handed_on_ < next.listeners.size()) continue;
    signals_.pop_front();
    handed_on_ = 0;
  }
  if (cost > 0) context_.hub.handed_on(context_.mailbox, cost);
}

void SessionHost::hand_on(const Signal& signal, SessionId listener) {
  Transport* const hosted = find_open(listener);
  if (hosted == nullptr) return;
  push(*hosted,
       [&](ServerSession& session, std::string& out) { return session.signalled(signal, out); });
}

// What a session says unasked. Who does not take such things is closed.
template <typename Call>
void SessionHost::push(Transport& hosted, Call call) {
  if (!hosted.has_room_for_signal()) {
    cut(hosted);
  } else if (!hosted.is_over_) {  // which the transport may just have found out
    const bool goes_on = call(*hosted.session_, hosted.output());
    goes_on ? touch(hosted) : cut(hosted);
  }
}

// Those who watch keys.

bool SessionHost::watch_events(SessionId id, std::string_view prefix) {
  return watchers_.add(id, prefix, find(id)->session_->confinement());
}

void SessionHost::tell_events() {
  if (!events_are_due_) return;
  events_are_due_ = watchers_.tell_some(
      {context_.engine.now(), context_.unix_ms()},
      [this](Position position) { return is_durable(position); },
      [this](SessionId watcher, const KeyEventJson& event, std::uint64_t missed) {
        return tell(watcher, event, missed);
      });
}

bool SessionHost::tell(SessionId watcher, const KeyEventJson& event, std::uint64_t missed) {
  Transport& hosted = *find(watcher);
  if (!hosted.has_room_for_event()) return false;
  hosted.session_->on_key_event(event, missed, hosted.output());
  touch(hosted);
  return true;
}

// Turns.

void SessionHost::end_turn() {
  ending_turn = this;
  resume_some();
  take_in();
  ending_turn = nullptr;
  tell_events();
  send();
  open_gate();
  send();  // what came through the gate for those who came by links
  end_some(kStepsPerTurn);
  // What sessions released whose peers were found to be gone.
  tell_of_those_gone(batch_.commit());
  forget_those_gone();
  visited_ = 0;
  if (is_anything_left()) context_.wake();
}

void SessionHost::send() {
  std::size_t clients = 0;
  Position position = 0;
  while (Transport* hosted = touched_.pop_front()) {
    flush(*hosted);
    ++clients;
    position = std::max(position, hosted->rests_on_);
  }
  if (clients > 0 && logs(LogLevel::trace)) {
    log_event(LogLevel::trace, "batch",
              {{"worker", context_.mailbox}, {"clients", clients}, {"position", position}});
  }
}

// What can be done without anybody's doing. Signals that wait for room are told when there
// is some: looked at again after the flag is up, as in open_gate().
bool SessionHost::is_anything_left() {
  if (!signals_.empty() || !endings_.empty() || events_are_due_) return true;
  if (publication_.rest != nullptr || !publishers_.empty()) {
    if (has_room()) return true;
    wants_room_ = true;
    if (has_room() && wants_room_.exchange(false)) return true;
  }
  MutexLock lock(inbox_mutex_);
  return !inbox_.empty() || !signal_inbox_.empty();
}

void SessionHost::resume_later(Transport& hosted) {
  if (resuming_.empty()) context_.wake();
  resuming_.push_back(hosted.session_->id());
}

void SessionHost::resume_some() {
  for (const SessionId id : std::exchange(resuming_, {})) {
    Transport* const hosted = find_open(id);
    if (hosted == nullptr) continue;
    succeed(*hosted);
    touch(*hosted);
    hosted->resume_input();
  }
}

void SessionHost::touch(Transport& hosted) {
  if (!hosted.touched_.linked()) touched_.push_back(&hosted);
}

void SessionHost::flush(Transport& hosted) {
  if (!hosted.is_corked_) send_or_cork(hosted);
  if (!hosted.is_over_) close_when_over(hosted);
  hosted.on_turn_end();
  continue_report(hosted);
}

void SessionHost::send_or_cork(Transport& hosted) {
  if (hosted.output().empty()) return;
  hosted.is_corked_ = !is_durable(hosted.rests_on_);
  if (!hosted.is_corked_) {
    count_hand_offs(hosted, hosted.said());
    return hosted.flush();
  }
  hosted.cork();
  hosted.corked_until_ = hosted.said();
  gate_.push({hosted.rests_on_, hosted.session_->id()});
}

void SessionHost::uncork(Transport& hosted) {
  const auto& hand_offs = hosted.hand_offs_;
  if (!hosted.is_over_ && std::any_of(hand_offs.begin(), hand_offs.end(), outlives_session) &&
      hosted.peer_has_left()) {
    finish(hosted, Ender::peer);
  }
  count_hand_offs(hosted, hosted.corked_until_);
  hosted.is_corked_ = false;
  if (hosted.uncork()) send_or_cork(hosted);
  if (hosted.closes_ && !hosted.is_corked_) hosted.close_gently();
  continue_report(hosted);
  hosted.on_turn_end();
}

// From the grant to the moment at which its bytes may leave.
void SessionHost::count_hand_offs(Transport& hosted, std::uint64_t until) {
  if (hosted.hand_offs_.empty()) return;
  const Time now = context_.engine.now();
  std::erase_if(hosted.hand_offs_, [&](const Transport::HandOff& hand_off) {
    if (hand_off.said >= until) return false;
    context_.stats.hand_off.add(now - (hand_off.grant.expires_at - hand_off.grant.ttl));
    return true;
  });
}

// What has become durable leaves. Looked at again after the flag is up: progress that is made after
// that wakes us.
void SessionHost::open_gate() {
  while (!gate_.empty()) {
    const Corked next = gate_.top();
    if (is_durable(next.position)) {
      gate_.pop();
      if (Transport* const hosted = find(next.id)) uncork(*hosted);
    } else if (wants_durable_.exchange(true)) {
      return;
    }
  }
}

void SessionHost::on_durable() {
  if (wants_durable_.exchange(false)) context_.wake();
}

// Ends.

void SessionHost::close_when_over(Transport& hosted) {
  ServerSession& session = *hosted.session_;
  if (hosted.input_ended_ && session.needs_peer()) return finish(hosted, Ender::peer);
  const bool all_taken_in = hosted.input_ended_ && !hosted.input_pending();
  const bool is_open = session.fate() == ServerSession::Fate::open;
  const bool may_go = context_.draining && is_open && !hosted.input_pending() && session.may_go();
  const bool is_over =
      session.fate() == ServerSession::Fate::closes || (is_open && all_taken_in) || may_go;
  if (!is_over || session.blocked()) return;
  finish(hosted, all_taken_in ? Ender::peer : Ender::server);
}

void SessionHost::broken(Transport& hosted) {
  take_back_unsent(hosted);
  end(hosted, Ender::peer);
}

void SessionHost::finish(Transport& hosted, Ender ender) {
  if (ender == Ender::peer) take_back_unsent(hosted);
  end(hosted, ender);
  hosted.closes_ = true;
  if (!hosted.is_corked_) send_or_cork(hosted);  // what was said in this turn
  const bool waits = hosted.is_corked_ && !hosted.output().empty();
  if (!waits) hosted.close_gently();
}

void SessionHost::cut(Transport& hosted, Ender ender) {
  take_back_unsent(hosted);
  end(hosted, ender);
  hosted.close();
}

// The session is over, whatever becomes of its transport. A server that stops and will recover is
// no disconnect of its clients, nor is one that cannot reach its journal. To break a rule is one.
// What a disconnect releases at the leader is the leader's to say.
void SessionHost::end(Transport& hosted, Ender ender) {
  if (std::exchange(hosted.is_over_, true)) return;
  ServerSession& session = *hosted.session_;
  const bool is_open = session.fate() == ServerSession::Fate::open;
  if (ender == Ender::peer && is_open && hosted.has_half_a_request()) session.cut_short();
  const bool broke_a_rule = !is_open && session.violation() != Violation::none;
  const bool stops = ender == Ender::server && context_.draining && !broke_a_rule;
  const bool survives = ender == Ender::journal || (stops && context_.keeps_holds);
  hosted.keeps_holds_ = survives || !context_.options.auto_release_on_disconnect;
  session.on_leaving(survives);
  int budget = kStepsAtOnce;
  end_more(hosted, &budget);
  watchers_.remove(session.id());
  hosted.report_ = nullptr;
  if (hosted.awaits_report_) context_.reports.cancel(session.id());
  hosted.on_session_end();
  leaving_.push_back(&hosted);
}

// Until that is done nobody else can have its id.
void SessionHost::end_more(Transport& hosted, int* budget) {
  hosted.is_ending_ = !hosted.session_->end(hosted.keeps_holds_, budget);
  if (hosted.is_ending_) {
    endings_.push_back(&hosted);
  } else {
    context_.clients.leave(hosted.session_->id());
  }
}

// In turn, so that who has little to end does not wait for who has much.
void SessionHost::end_some(int budget) {
  while (!endings_.empty() && budget > 0) {
    Transport* const hosted = endings_.front();
    endings_.pop_front();
    const int share = std::min(budget, kStepsEach);
    int left = share;
    end_more(*hosted, &left);
    budget -= std::max(share - left, 1);
  }
}

void SessionHost::forget_those_gone() {
  std::erase_if(leaving_, [this](Transport* hosted) {
    if (!hosted->is_idle() || hosted->is_ending_) return false;
    if (hosted->touched_.linked()) touched_.remove(hosted);
    sessions_.erase(hosted->session_->id());
    return true;
  });
}

}  // namespace lockd
