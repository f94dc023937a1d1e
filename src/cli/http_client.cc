#include "cli/http_client.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "cli/command_table.h"
#include "cli/failure.h"
#include "cli/http_refusal.h"
#include "cli/tls_settings.h"

namespace lockd::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Error = beast::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kReplySizeMax = std::size_t{256} << 20;
// A server that is silent for so long on a stream is gone: it sends comments far more often.
constexpr auto kStreamSilenceMax = std::chrono::seconds(60);
// For who leads: between one look at all servers and the next, and in all.
constexpr Duration kPauseMin = std::chrono::milliseconds(10);
constexpr Duration kPauseMax = std::chrono::milliseconds(200);
constexpr Duration kSearchMax = std::chrono::hours(24 * 365);

}  // namespace

class HttpClient::Impl {
 public:
  Impl(std::vector<HttpAddress> addresses, client::ConnectOptions options)
      : addresses_(std::move(addresses)), options_(std::move(options)) {
    if (std::any_of(addresses_.begin(), addresses_.end(), [](auto& one) { return one.tls; })) {
      tls_ = make_tls_context(options_.tls.value_or(client::TlsOptions{}));
    }
  }

  HttpReply exchange(http::verb verb, const std::string& target, const std::string& body,
                     Duration wait) {
    return at_leader([&] {
      return converse(options_.connect_timeout, [&](auto& stream) {
        send(stream, verb, target, body);
        return receive(stream, wait, options_.reply_timeout);
      });
    });
  }

  HttpReply follow(const std::string& target, const EventStreamParser::Sink& sink) {
    return at_leader([&] {
      return converse(options_.connect_timeout, [&](auto& stream) {
        send(stream, http::verb::get, target, "");
        return receive_events(stream, sink);
      });
    });
  }

  void interrupt() {
    interrupted_ = true;
    context_.stop();
  }

  const HttpAddress& address() const { return addresses_[here_]; }

 private:
  // Calls once it is at the address that leads, and again if that one does not lead after all.
  template <typename Call>
  HttpReply at_leader(Call call) {
    if (addresses_.size() == 1) return call();
    const auto deadline = Clock::now() + std::min<Duration>(options_.connect_timeout, kSearchMax);
    for (;;) {
      find_leader(deadline);
      HttpReply reply = call();
      const bool leads = reply.is_ok() || refusal_of(reply).error != "not_leader";
      if (leads || Clock::now() >= deadline) return reply;
    }
  }

  // Asks one after the other, beginning with who led last, and all of them again after a pause.
  void find_leader(Clock::time_point deadline) {
    const auto parts = static_cast<Duration::rep>(addresses_.size() + 1);
    for (Duration pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
      ExitCode code = kExitUnavailable;
      std::string lines;
      for (std::size_t tries = 0; tries < addresses_.size(); ++tries) {
        const auto left = std::max<Duration>(deadline - Clock::now(), kPauseMin);
        const auto failure = why_not_leader(left / parts);
        if (!failure) return;
        if (failure->code() != kExitUnavailable) code = failure->code();
        lines += (lines.empty() ? "" : "; ") + std::string(failure->what());
        here_ = (here_ + 1) % addresses_.size();
      }
      if (Clock::now() + pause >= deadline) throw Failure(code, "no server leads: " + lines);
      rest(pause);
    }
  }

  // Nothing when it leads.
  std::optional<Failure> why_not_leader(Duration patience) {
    try {
      const HttpReply reply = converse(patience, [&](auto& stream) {
        send(stream, http::verb::get, "/leader", "");
        return receive(stream, patience, {});
      });
      if (reply.is_ok()) return std::nullopt;
      return Failure(kExitTemporary, name() + " does not");
    } catch (const Failure& failure) {
      if (interrupted_) throw;
      return failure;
    }
  }

  void rest(Duration pause) {
    asio::steady_timer timer(context_, pause);
    await("wait for", [&](auto done) { timer.async_wait(done); });
  }

  // Connects, and lets `talk` use the stream, plain or not.
  template <typename Talk>
  HttpReply converse(Duration patience, Talk talk) {
    beast::tcp_stream plain(context_);
    connect(plain, patience);
    if (!address().tls) return talk(plain);
    beast::ssl_stream<beast::tcp_stream> secure(std::move(plain), *tls_);
    shake_hands(secure);
    return talk(secure);
  }

  void connect(beast::tcp_stream& stream, Duration patience) {
    Tcp::resolver resolver(context_);
    Tcp::resolver::results_type found;
    limit(stream, patience);
    await("find", [&](auto done) {
      resolver.async_resolve(address().address.host, std::to_string(address().address.port),
                             [&found, done](Error error, auto results) {
                               found = std::move(results);
                               done(error);
                             });
    });
    await("connect to", [&](auto done) {
      stream.async_connect(found, [done](Error error, auto&&) { done(error); });
    });
    Error ignored;
    stream.socket().set_option(Tcp::no_delay(true), ignored);
    stream.socket().set_option(asio::socket_base::keep_alive(true), ignored);
  }

  void shake_hands(beast::ssl_stream<beast::tcp_stream>& stream) {
    const client::TlsOptions tls = options_.tls.value_or(client::TlsOptions{});
    const std::string& name = tls.server_name.empty() ? address().address.host : tls.server_name;
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
    request.set(http::field::host, address().address.to_string());
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
    while (!result && !interrupted_ && context_.run_one() != 0) {
    }
    if (!result) throw Failure(kExitUnavailable, "interrupted");
    if (!*result) return;
    const std::string why = explain();
    throw Failure(why.empty() ? kExitUnavailable : kExitNoPermission,
                  std::string("cannot ") + doing + ' ' + name() + ": " +
                      (why.empty() ? result->message() : why));
  }

  std::string name() const { return address().to_string(); }

  const std::vector<HttpAddress> addresses_;
  std::size_t here_ = 0;  // of them: who led last
  const client::ConnectOptions options_;
  asio::io_context context_{1};
  std::optional<asio::ssl::context> tls_;
  std::atomic<bool> interrupted_{false};
};

HttpClient::HttpClient(std::vector<HttpAddress> addresses, client::ConnectOptions options)
    : impl_(std::make_unique<Impl>(std::move(addresses), std::move(options))) {}
HttpClient::~HttpClient() = default;

HttpReply HttpClient::get(const std::string& target) {
  return impl_->exchange(http::verb::get, target, "", {});
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
