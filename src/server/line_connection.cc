#include "server/line_connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/line_reply.h"
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

}  // namespace

LineConnection::LineConnection(Worker& worker, Connection::Socket socket,
                               std::unique_ptr<TlsChannel> tls, boost::asio::ip::address address,
                               LineSession::Service& service, SessionId id)
    : worker_(worker),
      address_(std::move(address)),
      session_(service, id),
      connection_(worker.loop(), std::move(socket), std::move(tls), *this) {
  if (worker.options().write_timeout == 0s) connection_.bear_with_stalled_peer();
}

std::size_t LineConnection::on_input(std::string_view unread) {
  if (ended_ || session_.fate() != LineSession::Fate::open) return unread.size();
  const bool asked = session_.wants_stats();  // more has come behind a request that blocks
  const std::size_t taken = session_.take_in(unread, connection_.output());
  touch();
  if (!asked && session_.wants_stats()) worker_.ask_stats(id());
  return taken;
}

void LineConnection::on_end_of_input() {
  // What was complete is answered first; what waits in line, or is half there, never will be.
  input_ended_ = true;
  touch();
}

void LineConnection::on_broken() {
  if (const std::string_view error = connection_.tls_error(); !error.empty()) {
    log_event(LogLevel::info, "TLS failed",
              {{"connection", std::to_string(id())},
               {"peer", address_.to_string()},
               {"error", std::string(error)}});
  }
  end(Ender::peer);
}

void LineConnection::turn_away() {
  session_.turn_away(connection_.output());
  touch();
}

void LineConnection::settled(const Settled& settled) {
  if (ended_) return;
  session_.settled(settled, connection_.output());
  go_on();
}

void LineConnection::stats(std::string_view json) {
  if (ended_) return;
  session_.stats(json, connection_.output());
  go_on();
}

// What stood behind the request that blocked. Silence counts from its reply.
void LineConnection::go_on() {
  last_reply_ = worker_.loop().turn_time();
  touch();
  connection_.resume_input();
}

void LineConnection::push(std::string_view line) {
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
  connection_.output() += line;
  touch();
}

void LineConnection::touch() {
  if (!touched.linked()) worker_.touched().push_back(this);
}

void LineConnection::flush(Position position) {
  rests_on_ = std::max(rests_on_, position);
  if (!held.linked()) send_or_hold();
  if (!ended_) close_when_over();
  have_watched();
}

// Nobody may hear of what a crash could still undo.
void LineConnection::send_or_hold() {
  if (worker_.is_durable(rests_on_)) return connection_.flush();
  connection_.hold();
  held_until_ = rests_on_;
  worker_.held().push_back(this);
}

// What came since is held in its turn, so that a busy client hears something with every sync.
void LineConnection::release() {
  last_reply_ = worker_.loop().turn_time();
  if (connection_.release()) send_or_hold();
  if (finishing_ && !held.linked()) connection_.close_gently(kLinger);
  have_watched();
}

// A peer that is slow, or lingers, or is to be closed in a while.
void LineConnection::have_watched() {
  if (needs_watching() && !watched.linked()) worker_.watched().push_back(this);
}

void LineConnection::close_when_over() {
  const bool all_taken_in = input_ended_ && !connection_.input_pending();
  const bool over = session_.fate() == LineSession::Fate::closes || (all_taken_in && !is_refused());
  if (input_ended_ && session_.waits()) return finish(Ender::peer);
  if (!over || session_.blocked()) return;
  finish(all_taken_in ? Ender::peer : Ender::server);
}

void LineConnection::log_violation() const {
  log_event(LogLevel::info, "violation",
            {{"code", std::to_string(static_cast<int>(session_.violation()))},
             {"connection", std::to_string(id())},
             {"peer", address_.to_string()}});
}

void LineConnection::check_silence(Connection::Clock::time_point now) {
  if (ended_) return;
  if (held.linked()) return;  // it is the disk that is silent
  // A handshake has that long as a whole: a byte now and then does not prolong it.
  if (!connection_.established()) {
    if (now - connection_.opened() > worker_.options().read_timeout) cut();
    return;
  }
  if (session_.fate() != LineSession::Fate::open) return;
  // A tick more: what is known is when the turn began that the bytes came in.
  const auto last_sign = std::max(connection_.last_input(), last_reply_);
  if (now - last_sign <= worker_.options().read_timeout + Loop::kTick) return;
  const bool half_a_request = connection_.unread_size() > 0 && !session_.blocked();
  if (!half_a_request && session_.may_be_silent()) return;
  session_.time_out(connection_.output());
  touch();
}

bool LineConnection::watch(Connection::Clock::time_point now) {
  connection_.check(now);
  const Duration write_timeout = worker_.options().write_timeout;
  if (write_timeout > 0s && connection_.stalled(now, write_timeout)) cut();
  if (!ended_ && is_refused() && refusal_is_over(now)) finish(Ender::server);
  return needs_watching();
}

// Who is turned away hears of it once it can, and is closed a little later.
bool LineConnection::refusal_is_over(Connection::Clock::time_point now) {
  if (!connection_.established()) return false;
  connection_.flush();
  if (close_at_ == Connection::Clock::time_point{}) close_at_ = now + kRefusalDelay;
  return now >= close_at_;
}

void LineConnection::drain() {
  if (!ended_) session_.drain();
}

// What was answered is still sent, when it may be.
void LineConnection::finish(Ender ender) {
  if (!ended_ && session_.violation() != Violation::none) log_violation();
  end(ender);
  if (held.linked()) {
    finishing_ = true;
  } else {
    connection_.close_gently(kLinger);
  }
}

void LineConnection::cut() {
  end(Ender::server);
  connection_.close();
}

// The session is over, whatever becomes of the socket. A server that stops and will recover is no
// disconnect of its clients.
void LineConnection::end(Ender ender) {
  if (std::exchange(ended_, true)) return;
  const bool survives =
      ender == Ender::server && worker_.is_draining() && worker_.keeps_what_it_grants();
  session_.end(survives || !worker_.options().auto_release_on_disconnect);
  worker_.ended(*this);
}

}  // namespace lockd
