#include "cluster/leader_dialer.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <utility>

#include "config/values.h"
#include "server/log.h"

namespace lockd {
namespace {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

constexpr auto kBetweenAttempts = 100ms;
// For one attempt: to connect, to shake hands, to prove.
constexpr auto kAttemptMax = 2s;
// The leader's machine acknowledges, whatever its process does: if it does not, packets vanish.
constexpr auto kSilenceMax = 5s;
// What a peer may send before it has proved itself.
constexpr std::size_t kHandshakeMax = 256;

// During a failover the leader is not reached, as a rule: a reason is logged when that lasts.
Duration patience(const ClusterStatus& status) { return 2 * status.detect + 1s; }

// A socket that connects, or cannot.
Descriptor open_to(const tcp::endpoint& endpoint) {
  Descriptor socket(
      ::socket(endpoint.data()->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const int result =
      ::connect(socket.get(), endpoint.data(), static_cast<socklen_t>(endpoint.size()));
  if (result != 0 && errno != EINPROGRESS) socket.reset();
  return socket;
}

}  // namespace

LeaderDialer::LeaderDialer(Loop& loop, ServerContext& server, FollowerLink& link, std::string name)
    : loop_(loop),
      server_(server),
      link_(link),
      name_(std::move(name)),
      resolver_(loop.context()),
      next_attempt_(Clock::now()),
      down_since_(next_attempt_) {}

void LeaderDialer::tick() {
  std::erase_if(closed_, [](const auto& connection) { return connection->idle(); });
  const auto now = Clock::now();
  if (server_.engine.journal_state() != Journal::State::following) {
    drop();
    return link_.end(
        /*gives_up=*/true);  // this server leads, or ends: there is nothing to wait for
  }
  const ClusterStatus status = server_.cluster->status();
  if (status.leader.epoch != target_.epoch) {
    drop();
    target_ = status.leader;
    next_attempt_ = now;
  }
  const Duration write_timeout = server_.options.write_timeout;
  const bool stalls =
      connection_ != nullptr && write_timeout > 0s && connection_->stalled(now, write_timeout);
  const bool is_late = state_ != State::idle && state_ != State::up && now - since_ > kAttemptMax;
  if (stalls || is_late) fail("it does not answer in time");
  // A server that was elected leads in a moment: it needs no link to itself.
  const bool is_elsewhere = target_.epoch != 0 && target_.record.node != server_.options.node_id;
  if (state_ == State::idle && is_elsewhere && now >= next_attempt_) resolve();
  link_.tick(now);
}

void LeaderDialer::flush() {
  if (state_ == State::up) connection_->flush();
}

// Connecting.

void LeaderDialer::resolve() {
  since_ = Clock::now();
  const auto address = config::parse_address(target_.record.address);
  if (!address) return fail("its address is malformed");
  boost::system::error_code error;
  const auto numeric = boost::asio::ip::make_address(address->host, error);
  if (!error) return connect({tcp::endpoint(numeric, address->port)});
  state_ = State::resolving;
  // A late answer may be that of another leader's name.
  resolver_.async_resolve(
      address->host, std::to_string(address->port),
      [this, resolution = ++resolutions_](const boost::system::error_code& failed,
                                          const tcp::resolver::results_type& found) {
        if (state_ != State::resolving || resolution != resolutions_) return;
        if (failed) return fail("its name is not resolved: " + failed.message());
        std::vector<tcp::endpoint> endpoints;
        for (const auto& entry : found) endpoints.push_back(entry.endpoint());
        connect(endpoints);
      });
}

// Tries another one of several addresses each time.
void LeaderDialer::connect(const std::vector<tcp::endpoint>& found) {
  Descriptor socket = found.empty() ? Descriptor() : open_to(found[attempts_++ % found.size()]);
  if (!socket) return fail("no connection can be begun");
  state_ = State::connecting;
  Connection::Handler& handler = *this;
  connection_ = std::make_unique<Connection>(loop_, std::move(socket),
                                             server_.tls.open_channel_to_peer(), handler);
  connection_->give_up_after(kSilenceMax);
  connection_->start_connecting();
  if (connection_ != nullptr && !server_.tls.is_used()) greet();
}

void LeaderDialer::greet() {
  state_ = State::handshake;
  challenge_ = {.node = name_,
                .asker_nonce = make_nonce(secrets_),
                .answerer_nonce = {},
                .channel = connection_->tls_binding()};
  connection_->output() += "peer\n" + challenge_.node + '\n' + challenge_.asker_nonce + '\n';
  connection_->flush();
}

std::size_t LeaderDialer::on_input(std::string_view unread) {
  std::string_view rest = unread;
  while (state_ == State::handshake || state_ == State::proving) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (rest.size() > kHandshakeMax) drop();
      break;
    }
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    on_handshake_line(line);
  }
  if (state_ != State::up) return unread.size() - rest.size();
  const bool was_up = link_.is_up();
  const auto taken = link_.receive(rest, Clock::now());
  if (!taken) {
    drop();
    return unread.size();
  }
  if (!was_up && link_.is_up()) ++server_.forwarding.links;
  return unread.size() - rest.size() + *taken;
}

// `ok <nonce>`, then `ok <proof>`.
void LeaderDialer::on_handshake_line(std::string_view line) {
  const bool is_ok = line.starts_with("ok ");
  const std::string_view word = is_ok ? line.substr(3) : "";
  const HashedSecret& secret = server_.options.cluster_secret;
  if (state_ == State::handshake && is_nonce(word)) {
    state_ = State::proving;
    challenge_.answerer_nonce = word;
    connection_->output() +=
        "peer\n" + challenge_.node + '\n' + prove(secret, challenge_, LinkEnd::asker) + '\n';
    return connection_->flush();
  }
  if (state_ == State::proving && proves(word, secret, challenge_, LinkEnd::answerer)) {
    state_ = State::up;
    log_event(LogLevel::info, "forwards to the leader",
              {{"leader", target_.record.node}, {"address", target_.record.address}});
    return link_.begin(*this);
  }
  if (is_ok) log_refusal("it does not know the secret of this cluster");
  if (line == "error_auth") log_refusal("it knows another secret");
  if (line == "error") log_refusal("it knows no secret of the cluster, or is of an older version");
  drop();
}

void LeaderDialer::log_refusal(std::string_view why) {
  if (!may_log(next_log_, Clock::now())) return;
  log_event(LogLevel::warn, "cannot forward to the leader",
            {{"leader", target_.record.address}, {"reason", why}});
}

void LeaderDialer::on_broken() {
  const std::string tls_error(connection_ == nullptr ? "" : connection_->tls_error());
  fail(tls_error.empty() ? "it is not reached, or broke the connection" : "TLS: " + tls_error);
}

void LeaderDialer::fail(std::string why) {
  if (Clock::now() - down_since_ > patience(server_.cluster->status()) && state_ != State::up) {
    log_refusal(why);
  }
  drop();
}

void LeaderDialer::drop() {
  if (connection_ != nullptr) {
    connection_->close();
    closed_.push_back(std::move(connection_));
  }
  next_attempt_ = Clock::now() + kBetweenAttempts;
  if (std::exchange(state_, State::idle) != State::up) return;
  down_since_ = Clock::now();
  if (link_.is_up()) --server_.forwarding.links;
  link_.end();
}

}  // namespace lockd
