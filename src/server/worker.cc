#include "server/worker.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <ctime>
#include <utility>

#include "server/log.h"
#include "server/reports/report.h"
#include "server/session/http_session.h"
#include "server/session/line_session.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

static_assert(kThreadsMax <= SignalHub::kMailboxesMax);

// As in "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 40> text;
  return {text.data(),
          std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts)};
}

// Whether it came to an address that only this machine reaches.
bool is_at_loopback(int socket) {
  boost::asio::ip::tcp::endpoint local;
  auto size = static_cast<socklen_t>(local.capacity());
  if (::getsockname(socket, local.data(), &size) != 0) return true;  // it has no peer any more
  return unmapped(local.address()).is_loopback();
}

std::unique_ptr<LeaderGate> make_gate(Loop& loop, ServerContext& server) {
  if (server.make_gate == nullptr) return std::make_unique<StandaloneGate>();
  return server.make_gate(loop, server);
}

// "10.0.0.7:51234", "[::1]:51234"
std::string text_of(const boost::asio::ip::tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string host = endpoint.address().is_v6() ? "[" + address + "]" : address;
  return host + ":" + std::to_string(endpoint.port());
}

}  // namespace

Worker::Worker(ServerContext& server)
    : server_(server),
      stats_(server.add_worker_stats()),
      gate_(make_gate(loop_, server)),
      buffers_(server.buffers),
      host_(host_setup()) {
  host_.context().date = http_date();
}

Worker::~Worker() = default;

HostSetup Worker::host_setup() {
  return {.options = server_.options,
          .engine = server_.engine,
          .hub = server_.hub,
          .feed = server_.feed,
          .secrets = secrets_,
          .access = server_.access,
          .clients = server_.clients,
          .stats = stats_,
          .unix_ms = unix_ms_now,
          .reports = server_.reports.queue(),
          .wake = [this] { loop_.post([] {}); },  // the end of the turn does the rest
          .keeps_holds = has_journal(),
          .cluster = server_.cluster.get(),
          .buffers = &server_.buffers,
          .history = &server_.history,
          .last_session = &server_.last_session,
          .gate = *gate_};
}

void Worker::start() {
  const auto end_turn = [this] {
    host_.end_turn();
    gate_->end_turn();
    cut_largest();
  };
  thread_ = std::thread([this, end_turn] { loop_.run(end_turn, [this] { tick(); }); });
}

// Over the budget of buffers those that have most are closed, a few in a turn. What they held is
// released, and they themselves go, in the next.
void Worker::cut_largest() {
  constexpr int kCutsPerTurn = 16;
  BufferLedger::Account* largest = buffers_.largest_over_budget();
  if (largest == nullptr) return;
  for (int cuts = 0; largest != nullptr && cuts < kCutsPerTurn; ++cuts) {
    static_cast<ClientConnection&>(*largest).cut_for_memory();
    largest = buffers_.largest_over_budget();
  }
  loop_.post([] {});
}

void Worker::drain() {
  loop_.post([this] {
    takes_line_ = false;
    takes_http_ = server_.cluster == nullptr;
    host_.drain();
  });
}

void Worker::close_http() {
  loop_.post([this] {
    takes_http_ = false;
    host_.finish_if([](const ServerSession& session) { return !session.is_blocked(); });
  });
}

void Worker::stop() {
  loop_.post([this] {
    host_.cut_all();
    host_.end_turn();
    loop_.stop();
  });
}

void Worker::let_in(Protocol protocol, Descriptor socket,
                    const boost::asio::ip::tcp::endpoint& peer) {
  connections_.fetch_add(1, std::memory_order_relaxed);
  loop_.post([this, protocol, socket = std::move(socket), peer]() mutable {
    admit(protocol, std::move(socket), peer);
  });
}

void Worker::admit(Protocol protocol, Descriptor socket,
                   const boost::asio::ip::tcp::endpoint& peer) {
  const boost::asio::ip::address address = peer.address();
  // When the port was closed it may have been on its way.
  const bool takes = protocol == Protocol::line ? takes_line_ : takes_http_;
  if (!takes || !server_.admission.enter(protocol, address)) {
    connections_.fetch_sub(1, std::memory_order_relaxed);
    if (logs(LogLevel::debug)) {
      log_event(LogLevel::debug, "client refused", {{"peer", text_of(peer)}});
    }
    if (takes) record_refusal(protocol, peer);
    return stats_.connections_refused.add();
  }
  stats_.connections_accepted.add();
  const SessionId id = ++server_.last_session;
  const bool is_line = protocol == Protocol::line;
  const bool is_foreign =
      (is_line ? options().line_is_protected() : options().http_is_protected()) &&
      !address.is_loopback();
  Peer from{.address = text_of(peer),
            .is_loopback = address.is_loopback(),
            .at_loopback = !is_line && is_at_loopback(socket.get()),
            .is_tls = server_.tls.is_used()};
  std::unique_ptr<ServerSession> session;
  if (is_line) {
    session = std::make_unique<LineSession>(host_.context(), id, std::move(from));
  } else {
    session = std::make_unique<HttpSession>(host_.context(), id, std::move(from));
  }
  auto connection = std::make_unique<ClientConnection>(
      *this, std::move(socket), server_.tls.open_channel(), protocol, address);
  ClientConnection& started = *connection;
  round_.push_back(&started);
  HostedSession& hosted = host_.open(std::move(session), std::move(connection));
  if (is_foreign) {
    log_protected(protocol, address);
    host_.on_event(hosted, ClientRejected{});
  }
  started.start();
}

void Worker::record_refusal(Protocol protocol, const boost::asio::ip::tcp::endpoint& peer) {
  const std::uint32_t most = options().max_connections;
  const bool is_full = most != 0 && server_.admission.connections() >= most;
  server_.history.add({.type = ServerEvent::Type::refused,
                       .protocol = name_of(protocol),
                       .peer = text_of(peer),
                       .reason = is_full ? "max_connections" : "max_connections_per_ip"});
}

void Worker::make_room(SessionId unproven) {
  loop_.post([this, unproven] {
    HostedSession* const hosted = host_.find(unproven);
    if (hosted != nullptr) static_cast<ClientConnection&>(*hosted->transport).make_room();
  });
}

void Worker::log_protected(Protocol protocol, const boost::asio::ip::address& peer) {
  if (!may_log(next_protected_log_, loop_.turn_time())) return;
  log_event(
      LogLevel::warn,
      "protected mode: only loopback is served; to serve others set --auth-token-file, or "
      "choose --host, for HTTP a host in --http-addr",
      {{"peer", peer.to_string()}, {"protocol", protocol == Protocol::line ? "line" : "http"}});
}

void Worker::gone(ClientConnection& connection, Protocol protocol,
                  const boost::asio::ip::address& address) {
  if (connection.watched.linked()) watched_.remove(&connection);
  if (connection.round.linked()) round_.remove(&connection);
  server_.admission.leave(protocol, address);
  connections_.fetch_sub(1, std::memory_order_relaxed);
}

// Whose auth token or certificate is good no more is closed, also while it says nothing.
void Worker::look_at_permits() {
  server_.access.look_for_expired(std::chrono::system_clock::now());
  const std::uint64_t generation = server_.access.generation();
  if (std::exchange(permits_, generation) != generation)
    host_.finish_if([](ServerSession& session) { return !session.renew_permit(); });
}

void Worker::tick() {
  turned_.store(true, std::memory_order_relaxed);
  host_.context().date = http_date();
  server_.look_after_disk();
  host_.show_events();
  look_at_permits();
  gate_->tick();
  if (server_.cluster != nullptr && server_.cluster->is_cut_off()) host_.close_waiting();
  const auto now = std::chrono::steady_clock::now();
  ClientConnection* next = watched_.front();
  while (ClientConnection* connection = next) {
    next = watched_.next(connection);
    if (!connection->watch(now)) watched_.remove(connection);
  }
  // A part of all connections, so that each has its turn about once a second.
  constexpr std::size_t kTicksPerRound = 1s / Loop::kTick;
  for (std::size_t left = host_.size() / kTicksPerRound + 1; left > 0; --left) {
    ClientConnection* connection = round_.pop_front();
    if (connection == nullptr) break;
    round_.push_back(connection);
    connection->check_silence(now);
    if (host_.context().draining) host_.touch(connection->hosted());
  }
}

}  // namespace lockd
