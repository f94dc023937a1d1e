#include "server/forward/leader_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "config/values.h"
#include "server/log.h"

namespace lockd {
namespace {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

constexpr auto kBetweenLooks = Loop::kTick;
constexpr auto kBetweenAttempts = 100ms;
// For one attempt: to connect, to shake hands, to prove.
constexpr auto kAttemptMax = 2s;
// The leader's machine acknowledges, whatever its process does: if it does not, packets vanish.
constexpr auto kSilenceMax = 5s;
// What a peer may say before it has proved itself.
constexpr std::size_t kHandshakeMax = 256;
// Below what a Connection reads no more at: else both ends could wait for each other to read.
constexpr std::size_t kUnsentMax = Connection::kUnsentMax / 2;

// How long a leader is looked for before clients hear that there is none: a failover takes less.
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

LeaderLink::LeaderLink(Loop& loop, ServerContext& server)
    : loop_(loop),
      server_(server),
      forwarder_(*server.forwarder),
      timer_(loop.context()),
      resolver_(loop.context()),
      next_attempt_(Clock::now()),
      down_since_(next_attempt_) {
  forwarder_.attach([this] { loop_.post([this] { send_mail(); }); });
  look_later();
}

LeaderLink::~LeaderLink() { forwarder_.attach({}); }

// Who leads.

void LeaderLink::look_later() {
  timer_.expires_after(kBetweenLooks);
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    look();
    look_later();
  });
}

void LeaderLink::look() {
  std::erase_if(closed_, [](const auto& connection) { return connection->idle(); });
  switch (server_.engine.journal_state()) {
    case Journal::State::following: break;
    case Journal::State::failed: return;  // the server ends, and those who asked are closed
    default: return stay_here();
  }
  send_mail();  // what had no room in a connection that is gone by now
  const auto now = Clock::now();
  const ClusterStatus status = server_.cluster->status();
  follow(status.leader, now);
  const Duration write_timeout = server_.options.write_timeout;
  const bool stalls =
      connection_ != nullptr && write_timeout > 0s && connection_->stalled(now, write_timeout);
  const bool is_late = state_ != State::idle && state_ != State::up && now - since_ > kAttemptMax;
  if (stalls || is_late) fail("it does not answer in time");
  // Once this server is elected it leads in a moment: there is nobody to ask.
  const bool is_elsewhere = target_.epoch != 0 && target_.record.node != forwarder_.node();
  if (state_ == State::idle && is_elsewhere && now >= next_attempt_) resolve();
  if (state_ != State::up && now - down_since_ > patience(status)) give_up();
}

void LeaderLink::follow(const CurrentLeader& leader, Clock::time_point now) {
  if (leader.epoch == target_.epoch) return;
  drop();
  target_ = leader;
  why_down_.clear();
  next_attempt_ = now;
}

void LeaderLink::stay_here() {
  if (state_ == State::here) return;
  drop();
  state_ = State::here;
  tell_all(LeaderNews::What::here);
  channels_.clear();
}

void LeaderLink::give_up() {
  if (std::exchange(is_absent_, true)) return;
  if (!why_down_.empty()) log_refusal(why_down_);
  tell_all(LeaderNews::What::absent);
}

// Connecting.

void LeaderLink::resolve() {
  since_ = Clock::now();
  const auto address = config::parse_address(target_.record.address);
  if (!address) return fail("its address makes no sense");
  boost::system::error_code error;
  const auto numeric = boost::asio::ip::make_address(address->host, error);
  if (!error) return connect({tcp::endpoint(numeric, address->port)});
  state_ = State::resolving;
  // An answer to an earlier question may be of another leader.
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

// Of several addresses another one each time.
void LeaderLink::connect(const std::vector<tcp::endpoint>& found) {
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

void LeaderLink::greet() {
  state_ = State::handshake;
  challenge_ = {.node = forwarder_.node(),
                .asker_nonce = make_nonce(secrets_),
                .answerer_nonce = {},
                .channel = connection_->tls_binding()};
  connection_->output() += "peer\n" + challenge_.node + '\n' + challenge_.asker_nonce + '\n';
  connection_->flush();
}

std::size_t LeaderLink::on_input(std::string_view unread) {
  std::string_view rest = unread;
  while (state_ == State::handshake || state_ == State::proving) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (rest.size() > kHandshakeMax) drop();
      break;
    }
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    take_handshake(line);
  }
  Frame frame;
  FrameStatus status = FrameStatus::incomplete;
  while (state_ == State::up && (status = take_frame(rest, &frame)) == FrameStatus::complete) {
    take(frame);
  }
  if (status == FrameStatus::malformed) drop();
  return unread.size() - rest.size();
}

// `ok <nonce>`, then `ok <proof> <incarnation>`.
void LeaderLink::take_handshake(std::string_view line) {
  const bool is_ok = line.starts_with("ok ");
  std::string_view rest = is_ok ? line.substr(3) : "";
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  if (state_ == State::handshake && is_nonce(word)) {
    state_ = State::proving;
    challenge_.answerer_nonce = word;
    connection_->output() += "peer\n" + challenge_.node + '\n' +
                             prove(forwarder_.secret(), challenge_, LinkEnd::asker) + '\n';
    return connection_->flush();
  }
  const auto leader = parse_whole(rest, 0, UINT64_MAX);
  if (state_ == State::proving && leader &&
      proves(word, forwarder_.secret(), challenge_, LinkEnd::answerer)) {
    return be_up(*leader);
  }
  if (is_ok) log_refusal("it does not know the secret of this cluster");
  if (line == "error_auth") log_refusal("it knows another secret");
  if (line == "error") log_refusal("it knows no secret of the cluster, or is of an older version");
  drop();
}

void LeaderLink::log_refusal(std::string_view why) {
  if (!may_log(next_log_, Clock::now())) return;
  log_event(LogLevel::warn, "cannot forward to the leader",
            {{"leader", target_.record.address}, {"reason", why}});
}

void LeaderLink::on_broken() {
  const std::string tls_error(connection_ == nullptr ? "" : connection_->tls_error());
  fail(tls_error.empty() ? "it is not reached, or broke the connection" : "TLS: " + tls_error);
}

// While another is elected it is not reached, as a rule: that is worth a word when it lasts.
void LeaderLink::fail(std::string why) {
  why_down_ = std::move(why);
  if (is_absent_) log_refusal(why_down_);
  drop();
}

// Sessions of another life of the leader, or of another leader, mean nothing to this one: what they
// held lives by its lease.
void LeaderLink::be_up(std::uint64_t leader) {
  const bool is_same = std::exchange(leader_, leader) == leader;
  std::string& out = connection_->output();
  for (auto next = channels_.begin(); next != channels_.end();) {
    auto& [client, channel] = *next;
    if (!is_same) channel.client.session = 0;
    const bool is_gone = channel.reader == nullptr;
    const bool is_over = is_gone && channel.client.session == 0;
    if (!is_over) write_frame(out, FrameType::open, client, to_bytes(channel.client));
    if (is_gone && !is_over) write_frame(out, FrameType::close, client);
    next = is_over ? channels_.erase(next) : std::next(next);
  }
  state_ = State::up;
  is_absent_ = false;
  why_down_.clear();
  forwarder_.set_generation(++generations_);
  log_event(LogLevel::info, "forwards to the leader",
            {{"leader", target_.record.node}, {"address", target_.record.address}});
  connection_->flush();
  if (state_ == State::up) tell_all(LeaderNews::What::up);
}

void LeaderLink::drop() {
  if (connection_ != nullptr) {
    connection_->close();
    closed_.push_back(std::move(connection_));
  }
  const bool was_up = state_ == State::up;
  state_ = State::idle;
  next_attempt_ = Clock::now() + kBetweenAttempts;
  if (!was_up) return;
  down_since_ = Clock::now();
  forwarder_.set_generation(0);
  tell_all(LeaderNews::What::down);
}

// From sessions.

bool LeaderLink::has_room() const {
  return connection_ == nullptr || connection_->unsent_size() < kUnsentMax;
}

void LeaderLink::send_mail() {
  for (LeaderMail& mail : forwarder_.take_mail()) waiting_.push_back(std::move(mail));
  while (!waiting_.empty() && has_room()) {
    LeaderMail mail = std::move(waiting_.front());
    waiting_.pop_front();
    send(mail);
  }
  if (state_ == State::up) connection_->flush();
}

void LeaderLink::send(LeaderMail& mail) {
  using What = LeaderMail::What;
  if (mail.what == What::introduce) return introduce(mail);
  if (mail.what == What::close || mail.what == What::detach) return close(mail);
  if (state_ != State::up || mail.generation != generations_) {
    if (mail.what == What::ask) tell_state(*mail.reader, mail.client);
    return;
  }
  if (!channels_.contains(mail.client)) return;  // the leader has closed it
  std::string& out = connection_->output();
  switch (mail.what) {
    case What::ask: return write_frame(out, FrameType::bytes, mail.client, mail.text);
    case What::taken: return write_frame(out, FrameType::taken, mail.client, mail.count);
    case What::end: return write_frame(out, FrameType::end, mail.client);
    default: return;
  }
}

void LeaderLink::introduce(LeaderMail& mail) {
  if (state_ != State::here) {
    Channel& channel = channels_[mail.client];
    const SessionId session = channel.client.session;
    channel.reader = mail.reader;
    channel.client = forwarded_client_in(mail.text).value_or(ForwardedClient{});
    channel.client.session = session;
    if (state_ == State::up) {
      write_frame(connection_->output(), FrameType::open, mail.client, to_bytes(channel.client));
    }
  }
  const std::uint64_t generation = state_ == State::up ? generations_ : 0;
  if (mail.generation != generation || generation == 0) tell_state(*mail.reader, mail.client);
}

// Until the leader has said that it knows, the client is told of again whenever the link is back:
// else what it held would live by its lease.
void LeaderLink::close(const LeaderMail& mail) {
  const auto found = channels_.find(mail.client);
  if (found == channels_.end()) return;
  const bool keeps = mail.what == LeaderMail::What::detach;
  const bool is_up = state_ == State::up;
  const bool is_known = is_up || found->second.client.session != 0;
  if (is_up) {
    write_frame(connection_->output(), keeps ? FrameType::detach : FrameType::close, mail.client);
  }
  found->second.reader = nullptr;
  if (keeps || !is_known) channels_.erase(found);
}

void LeaderLink::tell_state(NewsReader& reader, SessionId client) const {
  if (state_ == State::up) {
    reader.leave_news(client, {.what = LeaderNews::What::up, .generation = generations_});
  } else if (state_ == State::here) {
    reader.leave_news(client, {.what = LeaderNews::What::here});
  } else if (is_absent_) {
    reader.leave_news(client, {.what = LeaderNews::What::absent});
  }
}

void LeaderLink::tell_all(LeaderNews::What what) {
  for (const auto& [client, channel] : channels_) {
    if (channel.reader == nullptr) continue;
    channel.reader->leave_news(client, {.what = what, .generation = generations_});
  }
}

// From the leader.

void LeaderLink::take(const Frame& frame) {
  const auto found = channels_.find(frame.client);
  if (found == channels_.end()) return;
  auto& [reader, client] = found->second;
  if (frame.type == FrameType::opened) client.session = number_in(frame.payload).value_or(0);
  if (frame.type == FrameType::bytes && reader != nullptr) {
    reader->leave_news(frame.client, {.text = std::string(frame.payload)});
  }
  if (frame.type != FrameType::close) return;
  if (reader != nullptr) reader->leave_news(frame.client, {.what = LeaderNews::What::closed});
  channels_.erase(found);
}

}  // namespace lockd
