#include "server/client_connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/log.h"
#include "server/worker.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// How long to drain input before a close, so that the last reply is not lost to a reset.
constexpr std::chrono::milliseconds kLinger = 1s;
// Whoever is not let in is told at once and closed a little later: guessing takes time.
constexpr std::chrono::milliseconds kRefusalDelay = 100ms;
// How far a listener may fall behind, and how much may pile up for one that is held up by the disk.
constexpr std::uint32_t kPushesUnsentMax = 1024;
constexpr std::size_t kUnsentPushesMax = 16 * Connection::kUnsentMax;
constexpr std::size_t kUnsentEventsMax = 256 * 1024;
// How often a stream shows that it is alive.
constexpr std::chrono::seconds kPingInterval = 15s;

}  // namespace

ClientConnection::ClientConnection(Worker& worker, Connection::Socket socket,
                                   std::unique_ptr<TlsChannel> tls,
                                   boost::asio::ip::address address,
                                   std::unique_ptr<ServerSession> session)
    : worker_(worker),
      address_(std::move(address)),
      session_(std::move(session)),
      connection_(worker.loop(), std::move(socket), std::move(tls), *this) {
  if (worker.options().write_timeout == 0s) connection_.bear_with_stalled_peer();
}

std::size_t ClientConnection::on_input(std::string_view unread) {
  if (ended_ || session_->fate() != ServerSession::Fate::open) return unread.size();
  const std::size_t taken = session_->take_in(unread, connection_.output());
  const std::uint64_t under_way = session_->request_under_way();
  if (std::exchange(request_, under_way) != under_way) request_since_ = worker_.loop().turn_time();
  touch();
  return taken;
}

void ClientConnection::on_end_of_input() {
  // What was complete is answered first; what waits in line, or is half there, never will be.
  input_ended_ = true;
  touch();
}

void ClientConnection::on_broken() {
  if (const std::string_view error = connection_.tls_error(); !error.empty()) {
    log_event(LogLevel::info, "TLS failed",
              {{"connection", std::to_string(id())},
               {"peer", address_.to_string()},
               {"error", std::string(error)}});
  }
  end(Ender::peer);
}

void ClientConnection::turn_away() {
  session_->turn_away(connection_.output());
  touch();
}

bool ClientConnection::turns_out_gone() {
  if (!session_->holds_outlive_it() || !connection_.peer_has_left()) return false;
  finish(Ender::peer);
  return true;
}

void ClientConnection::on_wait_done(const WaitResult& settled) {
  if (ended_) return;
  session_->on_wait_done(settled, connection_.output());
  go_on();
}

void ClientConnection::report(const ReportResult& result) {
  if (ended_) return;
  rests_on_ = std::max(rests_on_, result.position);
  session_->report(result.text, connection_.output());
  go_on();
}

// What stood behind the request that blocked. Silence counts from its reply.
void ClientConnection::go_on() {
  last_reply_ = worker_.loop().turn_time();
  touch();
  connection_.resume_input();
}

// What it cannot be told of it is not told of: it watches, and does not depend on it.
void ClientConnection::on_key_events(const KeyEventJson& occurrence) {
  if (ended_) return;
  if (connection_.unsent_size() > kUnsentEventsMax) return session_->missed(1);
  session_->on_key_events(occurrence, connection_.output());
  touch();
}

void ClientConnection::push(const Signal& signal) {
  if (ended_) return;
  if (connection_.unsent_size() == 0) pushes_unsent_ = 0;
  const auto is_behind = [this] {
    return pushes_unsent_ > kPushesUnsentMax || connection_.unsent_size() > Connection::kUnsentMax;
  };
  ++pushes_unsent_;
  // Only who does not take what is sent is slow, not who was sent much in one turn. What waits for
  // the journal cannot be tried.
  if (is_behind() && !worker_.keeps_what_it_grants()) {
    connection_.flush();
    if (ended_) return;
    if (connection_.unsent_size() == 0) pushes_unsent_ = 1;
  }
  const bool slow = is_behind() && connection_.waits_for_peer();
  if (slow || connection_.unsent_size() > kUnsentPushesMax) {
    log_event(LogLevel::info, "slow listener closed", {{"connection", std::to_string(id())}});
    return cut();
  }
  session_->signalled(signal, connection_.output());
  touch();
}

void ClientConnection::touch() {
  if (!touched.linked()) worker_.touched().push_back(this);
}

void ClientConnection::flush(Position position) {
  rests_on_ = std::max(rests_on_, position);
  if (!held.linked()) send_or_hold();
  if (!ended_) close_when_over();
  have_watched();
}

// Nobody may hear of what a crash could still undo.
void ClientConnection::send_or_hold() {
  if (worker_.is_durable(rests_on_)) return connection_.flush();
  connection_.hold();
  held_until_ = rests_on_;
  worker_.hold(*this);
}

// What came since is held in its turn, so that a busy client hears something with every sync.
void ClientConnection::release() {
  last_reply_ = worker_.loop().turn_time();
  if (connection_.release()) send_or_hold();
  if (finishing_ && !held.linked()) connection_.close_gently(kLinger);
  have_watched();
}

// A peer that is slow, or lingers, or is to be closed in a while.
void ClientConnection::have_watched() {
  if (needs_watching() && !watched.linked()) worker_.watched().push_back(this);
}

void ClientConnection::close_when_over() {
  const bool all_taken_in = input_ended_ && !connection_.input_pending();
  const bool over =
      session_->fate() == ServerSession::Fate::closes || (all_taken_in && !is_refused());
  if (input_ended_ && session_->needs_peer()) return finish(Ender::peer);
  if (!over || session_->blocked()) return;
  finish(all_taken_in ? Ender::peer : Ender::server);
}

void ClientConnection::note_violation() {
  worker_.stats().violations[static_cast<std::size_t>(session_->violation())].add();
  log_event(LogLevel::info, "violation",
            {{"code", std::to_string(static_cast<int>(session_->violation()))},
             {"connection", std::to_string(id())},
             {"peer", address_.to_string()}});
}

void ClientConnection::check_silence(Connection::Clock::time_point now) {
  if (ended_) return;
  if (held.linked()) return;  // it is the disk that is silent
  // A handshake has that long as a whole: a byte now and then does not prolong it.
  if (!connection_.established()) {
    if (now - connection_.opened() > worker_.options().read_timeout) cut();
    return;
  }
  if (session_->fate() != ServerSession::Fate::open) return;
  if (!connection_.takes_input()) {  // silence counts from when it is heard again
    last_reply_ = request_since_ = now;
    return;
  }
  const bool in_request = has_half_a_request() || request_ != 0;
  auto last_sign = std::max(connection_.last_input(), last_reply_);
  if (request_ != 0) last_sign = request_since_;  // a byte now and then does not prolong it
  // A tick more: what is known is when the turn began that the bytes came in.
  const bool silent = now - last_sign > worker_.options().read_timeout + Loop::kTick;
  if (silent && (in_request || !session_->may_be_silent())) {
    session_->time_out(in_request, connection_.output());
    return touch();
  }
  if (now - std::max(last_ping_, connection_.opened()) < kPingInterval) return;
  last_ping_ = now;
  const std::size_t size = connection_.output().size();
  session_->ping(connection_.output());
  if (connection_.output().size() > size) touch();
}

bool ClientConnection::watch(Connection::Clock::time_point now) {
  connection_.check(now);
  if (!ended_ && connection_.input_is_full() && session_->needs_peer() &&
      connection_.peer_has_left()) {
    finish(Ender::peer);
  }
  const Duration write_timeout = worker_.options().write_timeout;
  if (write_timeout > 0s && connection_.stalled(now, write_timeout)) cut();
  if (!ended_ && is_refused() && refusal_is_over(now)) finish(Ender::server);
  return needs_watching();
}

// Who is turned away hears of it once it can, and is closed a little later.
bool ClientConnection::refusal_is_over(Connection::Clock::time_point now) {
  if (!connection_.established()) return false;
  connection_.flush();
  if (close_at_ == Connection::Clock::time_point{}) close_at_ = now + kRefusalDelay;
  return now >= close_at_;
}

void ClientConnection::drain() {
  if (ended_) return;
  session_->drain(connection_.output());
  touch();
}

// What was answered is still sent, when it may be.
void ClientConnection::finish(Ender ender) {
  end(ender);
  if (held.linked()) {
    finishing_ = true;
  } else {
    connection_.close_gently(kLinger);
  }
}

void ClientConnection::cut() {
  end(Ender::server);
  connection_.close();
}

void ClientConnection::send_elsewhere() {
  if (!held.linked() && !session_->blocked()) return;
  end(Ender::journal);
  connection_.close();
}

// The session is over, whatever becomes of the socket. A server that stops and will recover is no
// disconnect of its clients, nor is one that cannot reach its journal.
void ClientConnection::end(Ender ender) {
  if (std::exchange(ended_, true)) return;
  const bool is_open = session_->fate() == ServerSession::Fate::open;
  if (ender == Ender::peer && is_open && has_half_a_request()) session_->cut_short();
  if (session_->violation() != Violation::none) note_violation();
  const bool stops = ender == Ender::server && worker_.is_draining();
  const bool survives = ender == Ender::journal || (stops && worker_.keeps_what_it_grants());
  session_->end(survives || !worker_.options().auto_release_on_disconnect);
  worker_.ended(*this);
}

}  // namespace lockd
