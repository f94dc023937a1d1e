#include "lockctl/api/http_client.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/version.h"
#include "client/endpoint.h"
#include "client/socket.h"
#include "client/stoppable_wait.h"
#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

using TimePoint = client::BootClock::time_point;

constexpr std::uint64_t kReplySizeMax = std::uint64_t{256} << 20;
// A server that is silent for so long on a stream is gone: it sends comments far more often.
constexpr auto kStreamSilenceMax = std::chrono::seconds(60);

TimePoint after(Duration wait, Duration more = {}) {
  return client::later(client::later(client::BootClock::now(), wait), more);
}

// The options are for the line port as well: what they say of TLS and of a secret is said
// differently here.
client::ConnectOptions over_http(const HttpAddress& address, client::ConnectOptions options) {
  if (address.tls && !options.tls) options.tls.emplace();
  if (!address.tls) options.tls.reset();
  options.auth_token = options.auth_token_file = "";
  return options;
}

void require_open(const client::Status& status) {
  if (status.outcome == client::Outcome::invalid) {
    throw Failure(kExitConfig, client::describe(status));
  }
  require(status);
}

// Reads the reply to one HTTP request, as it comes.
//
// Beast parses; whatever of the body has come is passed on at once, so that a stream without an end
// can be followed. For one thread and one reply. No I/O.
class ReplyParser final : private boost::beast::http::basic_parser<false> {
 public:
  using OnBody = std::function<void(unsigned status, std::string_view bytes)>;

  // A body may be this large, unless it has no limit.
  ReplyParser(OnBody on_body, std::optional<std::uint64_t> size_max);

  // Takes away from `unread` what it can use. Throws Failure when that is no reply.
  void take_in(std::string& unread);
  // The peer sends no more. Whether that makes it a whole reply.
  bool end();

  bool is_done() const { return basic_parser::is_done(); }
  bool has_head() const { return is_header_done(); }
  // Precondition: has_head().
  unsigned status() const { return status_; }

 private:
  using Code = boost::beast::error_code;
  using View = boost::beast::string_view;

  // Of Beast.
  void on_request_impl(boost::beast::http::verb, View, View, int, Code&) override {}
  void on_response_impl(int status, View, int, Code&) override {
    status_ = static_cast<unsigned>(status);
  }
  void on_field_impl(boost::beast::http::field, View, View, Code&) override {}
  void on_header_impl(Code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code&) override {}
  std::size_t on_body_impl(View body, Code&) override;
  void on_chunk_header_impl(std::uint64_t, View, Code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View body, Code& code) override {
    return on_body_impl(body, code);
  }
  void on_finish_impl(Code&) override {}

  const OnBody on_body_;
  unsigned status_ = 0;
};

ReplyParser::ReplyParser(OnBody on_body, std::optional<std::uint64_t> size_max)
    : on_body_(std::move(on_body)) {
  eager(true);
  body_limit(boost::none);
  if (size_max) body_limit(*size_max);
}

void ReplyParser::take_in(std::string& unread) {
  std::size_t taken = 0;
  while (taken < unread.size() && !is_done()) {
    Code code;
    const std::size_t size =
        put(boost::asio::buffer(unread.data() + taken, unread.size() - taken), code);
    if (code && code != boost::beast::http::error::need_more) {
      throw Failure(kExitProtocol, "what the server answers is no reply: " + code.message());
    }
    if (size == 0) break;
    taken += size;
  }
  unread.erase(0, taken);
}

bool ReplyParser::end() {
  if (!has_head() || is_done()) return is_done();
  Code code;
  put_eof(code);
  return !code;
}

std::size_t ReplyParser::on_body_impl(View body, Code&) {
  on_body_(status_, {body.data(), body.size()});
  return body.size();
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
  ApiReply exchange(Duration patience, const std::string& request, Duration wait, Duration more) {
    const std::unique_ptr<client::Socket> socket = open(patience);
    socket->send(request);
    ApiReply reply;
    ReplyParser parser([&](unsigned, std::string_view bytes) { reply.body += bytes; },
                       kReplySizeMax);
    const TimePoint deadline = after(wait, more);
    while (!parser.is_done()) receive(*socket, parser, deadline);
    reply.status = parser.status();
    return reply;
  }

  ApiReply follow(const std::string& request, const EventStreamParser::Sink& sink) {
    const std::unique_ptr<client::Socket> socket = open(options_.connect_timeout);
    socket->send(request);
    EventStreamParser events;
    ApiReply reply;
    const auto take = [&](unsigned status, std::string_view bytes) {
      reply.status = status;
      if (!reply.is_ok()) {
        reply.body += bytes;
      } else if (!events.feed(bytes, sink)) {
        throw Failure(kExitProtocol, name() + " sends an event that is too large");
      }
    };
    ReplyParser parser(take, std::nullopt);
    const TimePoint first = after(options_.reply_timeout);
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
           std::string(kVersion) + "\r\nConnection: close\r\n" +
           (options_.auth_token.empty() ? ""
                                        : "Authorization: Bearer " + options_.auth_token + "\r\n");
  }

  std::unique_ptr<client::Socket> open(Duration patience) {
    const TimePoint deadline = after(patience);
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
  void receive(client::Socket& socket, ReplyParser& parser, TimePoint deadline) {
    if (!socket.is_closed()) advance(socket, deadline);
    // To the line protocol a request of HTTP is a violation.
    if (!parser.has_head() && socket.input().starts_with("error")) {
      throw Failure(kExitConfig, name() +
                                     " is no HTTP port but a line port: give it as --server, "
                                     "and the HTTP port as --http");
    }
    parser.take_in(socket.input());
    if (parser.is_done()) return;
    if (socket.is_closed()) {
      if (!parser.end()) require(socket.failure());
    } else if (client::BootClock::now() >= deadline) {
      throw Failure(kExitUnavailable, name() + " does not answer in time");
    }
  }

  // One step, when the socket is ready or `deadline` has come.
  void advance(client::Socket& socket, TimePoint deadline) {
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

ApiReply HttpClient::get(const std::string& target) {
  return impl_->exchange(impl_->options().connect_timeout, impl_->get_request(target), {},
                         impl_->options().reply_timeout);
}

ApiReply HttpClient::get_within(Duration patience, const std::string& target) {
  return impl_->exchange(patience, impl_->get_request(target), {}, patience);
}

ApiReply HttpClient::post(const std::string& target, const std::string& json, Duration wait) {
  return impl_->exchange(impl_->options().connect_timeout, impl_->post_request(target, json), wait,
                         impl_->options().reply_timeout);
}

ApiReply HttpClient::follow(const std::string& target, const EventStreamParser::Sink& sink) {
  return impl_->follow(impl_->get_request(target), sink);
}

void HttpClient::interrupt() { impl_->interrupt(); }

const HttpAddress& HttpClient::address() const { return impl_->address(); }

bool EventStreamParser::feed(std::string_view bytes, const Sink& sink) {
  unread_ += bytes;
  std::size_t start = 0;
  for (std::size_t end; (end = unread_.find('\n', start)) != std::string::npos; start = end + 1) {
    std::string_view line = std::string_view(unread_).substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    take_line(line, sink);
  }
  unread_.erase(0, start);
  return unread_.size() + event_.data.size() <= kEventSizeMax;
}

void EventStreamParser::take_line(std::string_view line, const Sink& sink) {
  if (line.empty()) {
    if (has_data_) sink(event_);
    event_ = {};
    has_data_ = false;
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value =
      colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") event_.name = value;
  if (field == "data") {
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  }
  // An empty field is a comment, which keeps the connection alive; others are none of ours.
}

}  // namespace lockd::cli
