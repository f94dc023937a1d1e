#include "lockctl/http/http_client.h"

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <cstring>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "client/endpoint.h"
#include "client/socket.h"
#include "client/stoppable_wait.h"
#include "lockctl/commands/command_table.h"
#include "lockctl/http/http_refusal.h"
#include "lockctl/output/failure.h"
#include "lockctl/tls_settings.h"

namespace lockd::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Error = beast::error_code;

constexpr std::size_t kReplySizeMax = std::size_t{256} << 20;
// A server that is silent for so long on a stream is gone: it sends comments far more often.
constexpr auto kStreamSilenceMax = std::chrono::seconds(60);

}  // namespace

class HttpClient::Impl {
 public:
  Impl(HttpAddress address, client::ConnectOptions options)
      : address_(std::move(address)), options_(std::move(options)) {
    if (address_.tls) tls_ = make_tls_context(options_.tls.value_or(client::TlsOptions{}));
  }

  HttpReply exchange(http::verb verb, const std::string& target, const std::string& body,
                     Duration wait) {
    return converse(options_.connect_timeout, [&](auto& stream) {
      send(stream, verb, target, body);
      return receive(stream, wait, options_.reply_timeout);
    });
  }

  HttpReply get_within(Duration patience, const std::string& target) {
    return converse(patience, [&](auto& stream) {
      send(stream, http::verb::get, target, "");
      return receive(stream, {}, patience);
    });
  }

  HttpReply follow(const std::string& target, const EventStreamParser::Sink& sink) {
    return converse(options_.connect_timeout, [&](auto& stream) {
      send(stream, http::verb::get, target, "");
      return receive_events(stream, sink);
    });
  }

  void interrupt() {
    interrupted_.request_stop();
    context_.stop();
  }

  const HttpAddress& address() const { return address_; }

 private:
  // Connects, and lets `talk` use the stream, plain or not.
  template <typename Talk>
  HttpReply converse(Duration patience, Talk talk) {
    beast::tcp_stream plain(context_);
    connect(plain, patience);
    if (!address_.tls) return talk(plain);
    beast::ssl_stream<beast::tcp_stream> secure(std::move(plain), *tls_);
    shake_hands(secure);
    return talk(secure);
  }

  void connect(beast::tcp_stream& stream, Duration patience) {
    limit(stream, patience);
    const std::vector<Tcp::endpoint> found = find(patience);
    await("connect to", [&](auto done) {
      stream.async_connect(found, [done](Error error, auto&&) { done(error); });
    });
    client::tune(stream.socket().native_handle());
  }

  std::vector<Tcp::endpoint> find(Duration patience) const {
    const auto until = client::later(client::BootClock::now(), patience);
    const auto addresses = client::resolve(address_.address, until, interrupted_.get_token());
    require(addresses);
    std::vector<Tcp::endpoint> found;
    for (const client::SocketAddress& address : *addresses) {
      Tcp::endpoint& last = found.emplace_back();
      last.resize(address.size);
      std::memcpy(last.data(), address.get(), address.size);
    }
    return found;
  }

  void shake_hands(beast::ssl_stream<beast::tcp_stream>& stream) {
    const client::TlsOptions tls = options_.tls.value_or(client::TlsOptions{});
    const std::string& name = tls.server_name.empty() ? address_.address.host : tls.server_name;
    expect_server(stream.native_handle(), name, tls.verify);
    await(
        "trust",
        [&](auto done) {
          stream.async_handshake(asio::ssl::stream_base::client,
                                 [done](Error error) { done(error); });
        },
        [&] { return why_not_trusted(stream.native_handle()); });
  }

  template <typename Stream>
  void send(Stream& stream, http::verb verb, const std::string& target, const std::string& body) {
    http::request<http::string_body> request(verb, target, 11);
    request.set(http::field::host, address_.address.to_string());
    request.set(http::field::user_agent, "lockctl/" + std::string(program_version()));
    request.set(http::field::connection, "close");
    if (!options_.auth_token.empty()) {
      request.set(http::field::authorization, "Bearer " + options_.auth_token);
    }
    if (verb == http::verb::post) request.set(http::field::content_type, "application/json");
    request.body() = body;
    request.prepare_payload();
    await("send to", [&](auto done) {
      http::async_write(stream, request, [done](Error error, std::size_t) { done(error); });
    });
  }

  template <typename Stream>
  HttpReply receive(Stream& stream, Duration wait, Duration more) {
    beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(kReplySizeMax);
    limit(beast::get_lowest_layer(stream), wait, more);
    await("hear from", [&](auto done) {
      http::async_read(stream, buffer, parser, [done](Error error, std::size_t) { done(error); });
    });
    return {parser.get().result_int(), std::move(parser.get().body())};
  }

  template <typename Stream>
  HttpReply receive_events(Stream& stream, const EventStreamParser::Sink& sink) {
    beast::flat_buffer buffer;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    limit(beast::get_lowest_layer(stream), options_.reply_timeout);
    await("hear from", [&](auto done) {
      http::async_read_header(stream, buffer, parser,
                              [done](Error error, std::size_t) { done(error); });
    });
    HttpReply reply{parser.get().result_int(), {}};
    EventStreamParser events;
    while (!parser.is_done()) {
      const std::string bytes = receive_piece(stream, buffer, parser);
      if (!reply.is_ok()) {
        reply.body += bytes;
      } else if (!events.feed(bytes, sink)) {
        throw Failure(kExitProtocol, name() + " sends an event that is too large");
      }
    }
    if (reply.is_ok()) throw Failure(kExitUnavailable, name() + " has ended the stream");
    return reply;
  }

  template <typename Stream>
  std::string receive_piece(Stream& stream, beast::flat_buffer& buffer,
                            http::response_parser<http::buffer_body>& parser) {
    std::array<char, 16 * 1024> piece;
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    limit(beast::get_lowest_layer(stream), kStreamSilenceMax);
    await("hear from", [&](auto done) {
      http::async_read_some(stream, buffer, parser, [done](Error error, std::size_t) {
        done(error == http::error::need_buffer ? Error{} : error);
      });
    });
    return {piece.data(), piece.size() - parser.get().body().size};
  }

  static void limit(beast::tcp_stream& stream, Duration wait, Duration more = {}) {
    // A wait of 292 years is none.
    constexpr Duration kCounted = std::chrono::hours(24 * 365);
    if (wait > kCounted) return stream.expires_never();
    stream.expires_after(wait + more);
  }

  // Starts an operation, and waits for its end.
  template <typename Start>
  void await(const char* doing, Start start) {
    await(doing, start, [] { return std::string(); });
  }
  template <typename Start, typename Explain>
  void await(const char* doing, Start start, Explain explain) {
    std::optional<Error> result;
    start([&result](Error error) { result = error; });
    context_.restart();
    while (!result && !interrupted_.stop_requested() && context_.run_one() != 0) {
    }
    if (!result) throw Failure(kExitUnavailable, "interrupted");
    if (!*result) return;
    const std::string why = explain();
    throw Failure(why.empty() ? kExitUnavailable : kExitNoPermission,
                  std::string("cannot ") + doing + ' ' + name() + ": " +
                      (why.empty() ? result->message() : why));
  }

  std::string name() const { return address_.to_string(); }

  const HttpAddress address_;
  const client::ConnectOptions options_;
  asio::io_context context_{1};
  std::optional<asio::ssl::context> tls_;
  std::stop_source interrupted_;
};

HttpClient::HttpClient(HttpAddress address, client::ConnectOptions options)
    : impl_(std::make_unique<Impl>(std::move(address), std::move(options))) {}
HttpClient::~HttpClient() = default;

HttpReply HttpClient::get(const std::string& target) {
  return impl_->exchange(http::verb::get, target, "", {});
}

HttpReply HttpClient::get_within(Duration patience, const std::string& target) {
  return impl_->get_within(patience, target);
}

HttpReply HttpClient::post(const std::string& target, const std::string& json, Duration wait) {
  return impl_->exchange(http::verb::post, target, json, wait);
}

HttpReply HttpClient::follow(const std::string& target, const EventStreamParser::Sink& sink) {
  return impl_->follow(target, sink);
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
