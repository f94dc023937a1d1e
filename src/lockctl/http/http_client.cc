#include "lockctl/http/http_client.h"

#include <algorithm>
#include <optional>
#include <stop_token>
#include <utility>

#include "client/endpoint.h"
#include "client/socket.h"
#include "client/stoppable_wait.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/http/http_refusal.h"
#include "lockctl/http/reply_parser.h"
#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

using Time = client::BootClock::time_point;

constexpr std::uint64_t kReplySizeMax = std::uint64_t{256} << 20;
// A server that is silent for so long on a stream is gone: it sends comments far more often.
constexpr auto kStreamSilenceMax = std::chrono::seconds(60);

Time after(Duration wait, Duration more = {}) {
  return client::later(client::later(client::BootClock::now(), wait), more);
}

// The options are for the line port as well: what they say of TLS and of a secret is said
// differently here.
client::ConnectOptions over_http(const HttpAddress& address, client::ConnectOptions options) {
  if (address.tls && !options.tls) options.tls.emplace();
  if (!address.tls) options.tls.reset();
  options.auth_token.clear();
  return options;
}

void require_open(const client::Status& status) {
  if (status.outcome == client::Outcome::invalid) {
    throw Failure(kExitConfig, client::describe(status));
  }
  require(status);
}

}  // namespace

class HttpClient::Impl {
 public:
  Impl(HttpAddress address, client::ConnectOptions options)
      : address_(std::move(address)), options_(std::move(options)) {
    auto endpoint = client::Endpoint::make(address_.address, over_http(address_, options_));
    require_open(endpoint);
    endpoint_ = std::move(*endpoint);
  }

  // Connects within `patience`, and has the whole reply within `wait` and `more`.
  HttpReply exchange(Duration patience, const std::string& request, Duration wait, Duration more) {
    const std::unique_ptr<client::Socket> socket = open(patience);
    socket->send(request);
    HttpReply reply;
    ReplyParser parser([&](unsigned, std::string_view bytes) { reply.body += bytes; },
                       kReplySizeMax);
    const Time deadline = after(wait, more);
    while (!parser.is_done()) receive(*socket, parser, deadline);
    reply.status = parser.status();
    return reply;
  }

  HttpReply follow(const std::string& request, const EventStreamParser::Sink& sink) {
    const std::unique_ptr<client::Socket> socket = open(options_.connect_timeout);
    socket->send(request);
    EventStreamParser events;
    HttpReply reply;
    const auto take = [&](unsigned status, std::string_view bytes) {
      reply.status = status;
      if (!reply.is_ok()) {
        reply.body += bytes;
      } else if (!events.feed(bytes, sink)) {
        throw Failure(kExitProtocol, name() + " sends an event that is too large");
      }
    };
    ReplyParser parser(take, std::nullopt);
    const Time first = after(options_.reply_timeout);
    while (!parser.has_head()) receive(*socket, parser, first);
    while (!parser.is_done()) receive(*socket, parser, after(kStreamSilenceMax));
    reply.status = parser.status();
    if (reply.is_ok()) throw Failure(kExitUnavailable, name() + " has ended the stream");
    return reply;
  }

  std::string get_request(const std::string& target) const {
    return "GET " + target + head() + "\r\n";
  }
  std::string post_request(const std::string& target, const std::string& json) const {
    return "POST " + target + head() +
           "Content-Type: application/json\r\nContent-Length: " + std::to_string(json.size()) +
           "\r\n\r\n" + json;
  }

  void interrupt() { interrupted_.request_stop(); }

  const HttpAddress& address() const { return address_; }
  const client::ConnectOptions& options() const { return options_; }

 private:
  std::string head() const {
    return " HTTP/1.1\r\nHost: " + address_.address.to_string() + "\r\nUser-Agent: lockctl/" +
           std::string(program_version()) + "\r\nConnection: close\r\n" +
           (options_.auth_token.empty() ? ""
                                        : "Authorization: Bearer " + options_.auth_token + "\r\n");
  }

  std::unique_ptr<client::Socket> open(Duration patience) {
    const Time deadline = after(patience);
    auto addresses = client::resolve(address_.address, deadline, interrupted_.get_token());
    require(addresses);
    auto socket = std::make_unique<client::Socket>(endpoint_, std::move(*addresses),
                                                   client::BootClock::now(), deadline);
    while (!socket->is_open()) {
      advance(*socket, deadline);
      if (socket->is_closed()) require_open(socket->failure());
    }
    return socket;
  }

  // Waits for more of the reply, and parses it.
  void receive(client::Socket& socket, ReplyParser& parser, Time deadline) {
    if (!socket.is_closed()) advance(socket, deadline);
    parser.take_in(socket.input());
    if (parser.is_done()) return;
    if (socket.is_closed()) {
      if (!parser.end()) require(socket.failure());
    } else if (client::BootClock::now() >= deadline) {
      throw Failure(kExitUnavailable, name() + " does not answer in time");
    }
  }

  // One step, when the socket is ready or `deadline` has come.
  void advance(client::Socket& socket, Time deadline) {
    const client::StoppableWait waiting(interrupted_.get_token());
    if (!waiting.stop_requested()) {
      waiting.wait(socket.interest(), std::min(deadline, socket.deadline()));
    }
    if (waiting.stop_requested()) throw Failure(kExitUnavailable, "interrupted");
    socket.advance(client::BootClock::now());
  }

  std::string name() const { return address_.to_string(); }

  const HttpAddress address_;
  const client::ConnectOptions options_;
  std::shared_ptr<const client::Endpoint> endpoint_;  // constant once it is made
  std::stop_source interrupted_;
};

HttpClient::HttpClient(HttpAddress address, client::ConnectOptions options)
    : impl_(std::make_unique<Impl>(std::move(address), std::move(options))) {}
HttpClient::~HttpClient() = default;

HttpReply HttpClient::get(const std::string& target) {
  return impl_->exchange(impl_->options().connect_timeout, impl_->get_request(target), {},
                         impl_->options().reply_timeout);
}

HttpReply HttpClient::get_within(Duration patience, const std::string& target) {
  return impl_->exchange(patience, impl_->get_request(target), {}, patience);
}

HttpReply HttpClient::post(const std::string& target, const std::string& json, Duration wait) {
  return impl_->exchange(impl_->options().connect_timeout, impl_->post_request(target, json), wait,
                         impl_->options().reply_timeout);
}

HttpReply HttpClient::follow(const std::string& target, const EventStreamParser::Sink& sink) {
  return impl_->follow(impl_->get_request(target), sink);
}

void HttpClient::interrupt() { impl_->interrupt(); }

const HttpAddress& HttpClient::address() const { return impl_->address(); }

std::string url_encoded(std::string_view text) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

void require(const HttpReply& reply) {
  if (reply.is_ok()) return;
  const HttpRefusal refusal = refusal_of(reply);
  throw Failure(refusal.code, refusal.line);
}

}  // namespace lockd::cli
