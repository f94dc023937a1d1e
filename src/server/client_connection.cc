#include "server/client_connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/line/line_framer.h"
#include "server/reports/report.h"
#include "server/worker.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

// How long to drain input before a close, so that the last reply is not lost to a reset.
constexpr std::chrono::milliseconds kLinger = 1s;
// What is read ahead of those who have not shown the auth token: the longest request that does.
constexpr std::size_t kStrangersUnreadMax = 2 * (kLineSizeMax + 1) + kLongLineSizeMax + 1;
// How far a listener may fall behind, and how much may pile up for one that is held up by the disk.
constexpr std::uint32_t kSignalsUnsentMax = 1024;
constexpr std::size_t kUnsentSignalsMax = 16 * Connection::kUnsentMax;
constexpr std::size_t kUnsentEventsMax = 256 * 1024;
// How much of a report is made before the peer has taken it.
constexpr std::size_t kUnsentReportMax = 256 * 1024;

PeerEvent tls_failed(LogLevel::info, "TLS failed");
PeerEvent slow_listener(LogLevel::warn, "slow listener closed");
PeerEvent slow_reader(LogLevel::warn, "slow client closed");
PeerEvent broken_rule(LogLevel::warn, "violation");
PeerEvent authentication_failed(LogLevel::warn, "authentication failed");
PeerEvent over_memory(LogLevel::warn, "connection closed: over --max-buffer-memory, it had most");

}  // namespace

ClientConnection::ClientConnection(Worker& worker, Descriptor socket,
                                   std::unique_ptr<TlsChannel> tls, Protocol protocol,
                                   boost::asio::ip::address address)
    : worker_(worker),
      protocol_(protocol),
      address_(std::move(address)),
      connection_(worker.loop(), std::move(socket), std::move(tls), *this),
      // A tick more: what is known is when the turn began that the bytes came in.
      deadlines_(connection_.opened(), {.auth = worker.options().auth_timeout,
                                        .read = worker.options().read_timeout + Loop::kTick}) {
  if (worker.options().write_timeout == 0s) connection_.bear_with_stalled_peer();
}

ClientConnection::~ClientConnection() {
  if (is_unproven_) worker_.admission().forget(unproven_);
  worker_.buffers().settle(*this, 0);
  worker_.gone(*this, protocol_, address_);
}

// Proof.

void ClientConnection::start() {
  if (logs(LogLevel::debug)) {
    log_event(LogLevel::debug, "client connected",
              about({{"tls", session().executor().caller().peer().is_tls}}));
  }
  unproven_.worker = &worker_;
  unproven_.session = session().id();
  is_unproven_ = !connection_.established() || !session().is_authenticated();
  if (is_unproven_) {
    const auto first = worker_.admission().await_proof(unproven_);
    if (first) first->worker->make_room(first->session);
  }
  limit_unread();
  connection_.start();
}

void ClientConnection::on_established() {
  if (worker_.access().looks_at_certificates()) {
    const CertificateNames names = connection_.peer_names();
    worker_.host().on_event(*hosted_, CertificateShown{names});
  }
  look_for_proof();
}

void ClientConnection::look_for_proof() {
  if (!is_unproven_ || !connection_.established() || !session().is_authenticated()) return;
  is_unproven_ = false;
  worker_.admission().forget(unproven_);
}

// Without a word: others wait for its place.
void ClientConnection::make_room() {
  if (!is_unproven_) return;
  if (!is_over()) worker_.stats().crowded_out.add();
  worker_.host().cut(*hosted_);
}

// Its time is over, however busy it is. It hears so where it can hear anything.
void ClientConnection::end_without_proof() {
  SessionHost& host = worker_.host();
  worker_.stats().proof_timeouts.add();
  if (!connection_.established()) return host.cut(*hosted_);
  if (session().is_open()) host.on_event(*hosted_, ClientTimedOut{deadlines_.is_in_request()});
  host.finish(*hosted_, CloseReason::server);
}

// Little is read ahead of whom nobody knows.
void ClientConnection::limit_unread() {
  connection_.limit_unread(session().is_authenticated() ? Connection::kUnreadMax
                                                        : kStrangersUnreadMax);
}

// What comes in.

std::size_t ClientConnection::on_input(std::string_view unread) {
  const std::size_t taken = worker_.host().receive(*hosted_, unread);
  if (hosted_->is_held_back) connection_.hold_back_input();
  limit_unread();
  deadlines_.on_input(worker_.loop().turn_time(), session().request_under_way());
  look_for_proof();
  return taken;
}

void ClientConnection::on_all_sent() {
  settle();
  worker_.host().continue_report(*hosted_);
}

void ClientConnection::on_end_of_input() { worker_.host().on_input_end(*hosted_); }

void ClientConnection::on_broken() {
  if (const std::string_view error = connection_.tls_error(); !error.empty()) {
    log(tls_failed, {{"error", error}});
  }
  worker_.host().on_broken(*hosted_);
}

// What stood behind the request that blocked.
void ClientConnection::resume_input() {
  deadlines_.on_reply(worker_.loop().turn_time());
  connection_.resume_input();
}

// What goes out.

bool ClientConnection::uncork() {
  deadlines_.on_reply(worker_.loop().turn_time());
  return connection_.uncork();
}

bool ClientConnection::has_room_for(Push what) {
  switch (what) {
    case Push::signal: return has_room_for_signal();
    case Push::event: return connection_.unsent_size() <= kUnsentEventsMax;
    case Push::report: return connection_.unsent_size() < kUnsentReportMax;
  }
  return false;
}

bool ClientConnection::has_room_for_signal() {
  if (connection_.unsent_size() == 0) signals_unsent_ = 0;
  const auto is_behind = [this] {
    return signals_unsent_ > kSignalsUnsentMax ||
           connection_.unsent_size() > Connection::kUnsentMax;
  };
  ++signals_unsent_;
  // Only who does not take what is sent is slow, not who was sent much in one turn. What waits for
  // the journal cannot be tried.
  if (is_behind() && !worker_.has_journal()) {
    connection_.flush();
    if (is_over()) return true;
    if (connection_.unsent_size() == 0) signals_unsent_ = 1;
  }
  const bool slow = is_behind() && connection_.waits_for_peer();
  if (!slow && connection_.unsent_size() <= kUnsentSignalsMax) return true;
  log(slow_listener, {{"unsent_bytes", connection_.unsent_size()}});
  return false;
}

// What is in its buffers now counts, and others may see it.
void ClientConnection::settle() {
  hosted_->activity->heard.store(connection_.last_input(), std::memory_order_relaxed);
  hosted_->activity->unsent_bytes.store(connection_.unsent_size(), std::memory_order_relaxed);
  worker_.buffers().settle(*this, connection_.buffered() + session().buffered());
}

// A peer that is slow, or lingers, or is to be closed in a while, is looked at every tick.
void ClientConnection::on_turn_end() {
  if (logged_violation_ == Violation::none) log_violation();
  if (is_paused()) begin_pause();
  settle();
  if (needs_watching() && !watched.linked()) worker_.watched().push_back(this);
}

void ClientConnection::close_gently() {
  connection_.close_gently(kLinger);
  on_turn_end();
}

void ClientConnection::close() {
  connection_.close();
  settle();
}

void ClientConnection::cut_for_memory() {
  worker_.stats().connections_cut_for_memory.add();
  log(over_memory, {{"bytes", bytes()}});
  worker_.host().cut(*hosted_);
}

void ClientConnection::on_session_end() {
  worker_.round().remove(this);
  log_violation();
  if (!logs(LogLevel::debug)) return;
  const auto stayed = Connection::Clock::now() - connection_.opened();
  log_event(LogLevel::debug, "client disconnected", about({{"connected_ms", whole_ms(stayed)}}));
}

void ClientConnection::log(PeerEvent& event, LogFields more) const {
  if (event.admits(worker_.loop().turn_time())) event.log(about(std::move(more)));
}

// Who it is, and what is said of it.
LogFields ClientConnection::about(LogFields more) const {
  LogFields fields{{"client_id", session().id()},
                   {"peer", session().executor().caller().peer().address},
                   {"protocol", protocol_ == Protocol::line ? "line" : "http"}};
  if (session().executor().client() != nullptr)
    fields.emplace_back("client", session().executor().client()->name);
  const std::string& token_name = session().executor().caller().permit()->name;
  if (!token_name.empty()) fields.emplace_back("token_name", token_name);
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// The first of a connection, and the last.
void ClientConnection::log_violation() {
  const Violation violation = session().violation();
  if (violation == std::exchange(logged_violation_, violation)) return;
  log(broken_rule, {{"code", static_cast<int>(violation)}, {"reason", describe(violation)}});
}

// Time.

void ClientConnection::check_silence(Connection::Clock::time_point now) {
  SessionHost& host = worker_.host();
  const PeerDeadlines::State state{
      .is_authenticated = !is_unproven_,
      .is_paused = is_paused(),
      .is_established = connection_.established(),
      .is_open = session().is_open(),
      .takes_input = !hosted_->is_corked() && connection_.takes_input(),
      .last_input = connection_.last_input(),
  };
  switch (deadlines_.check(now, state, [&] { return hosted_->session->may_be_silent(); })) {
    case PeerDeadlines::Due::nothing: return;
    case PeerDeadlines::Due::authentication: return end_without_proof();
    case PeerDeadlines::Due::request: return host.on_event(*hosted_, ClientTimedOut{true});
    case PeerDeadlines::Due::next_request: return host.on_event(*hosted_, ClientTimedOut{false});
    case PeerDeadlines::Due::ping: return host.on_event(*hosted_, KeepAliveDue{});
  }
}

bool ClientConnection::watch(Connection::Clock::time_point now) {
  SessionHost& host = worker_.host();
  connection_.check(now);
  if (!is_over() && connection_.input_is_full() && session().needs_peer() &&
      connection_.peer_has_left()) {
    host.finish(*hosted_, CloseReason::peer);
  }
  const Duration write_timeout = worker_.options().write_timeout;
  if (write_timeout > 0s && connection_.stalled(now, write_timeout)) {
    if (!is_over()) log(slow_reader, {{"unsent_bytes", connection_.unsent_size()}});
    host.cut(*hosted_);
  }
  if (!is_over() && is_paused()) {
    begin_pause();
    if (deadlines_.end_pause(now)) host.on_event(*hosted_, PauseOver{});
  }
  settle();
  return needs_watching();
}

// From when it can hear that it is not let in.
void ClientConnection::begin_pause() {
  if (deadlines_.is_pausing() || !connection_.established()) return;
  if (!hosted_->is_corked()) connection_.flush();  // output from before the TLS handshake
  const auto now = Connection::Clock::now();
  const bool has_failed = session().pause() == ServerSession::Pause::failed_attempt;
  deadlines_.begin_pause(now + (has_failed ? note_failure(now) : FailedAttempts::kPause));
}

Connection::Clock::duration ClientConnection::note_failure(Connection::Clock::time_point now) {
  log(authentication_failed);
  worker_.history().add({.type = ServerEvent::Type::auth_failed,
                         .client_id = session().id(),
                         .protocol = name_of(protocol_),
                         .peer = session().executor().caller().peer().address});
  return worker_.failed_attempts().add(address_, now);
}

}  // namespace lockd
