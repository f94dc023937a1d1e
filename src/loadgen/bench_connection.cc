#include "loadgen/bench_connection.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "lockctl/output/failure.h"
#include "lockctl/tls_settings.h"

namespace lockd::cli {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Error = boost::system::error_code;
using Secure = asio::ssl::stream<Tcp::socket>;

// Starts an operation, and runs the loop until it has ended.
template <typename Start>
void await(asio::io_context& loop, Duration limit, const std::string& doing, Start start) {
  std::optional<Error> result;
  start([&result](Error error) { result = error; });
  const auto deadline = std::chrono::steady_clock::now() + limit;
  loop.restart();
  while (!result && loop.run_one_until(deadline) != 0) {
  }
  if (result && !*result) return;
  throw Failure(kExitUnavailable,
                "cannot " + doing + ": " + (result ? result->message() : "not in time"));
}

template <typename Stream>
class StreamConnection final : public LoadConnection {
 public:
  StreamConnection(asio::io_context& loop, Stream stream, const Terms& terms)
      : loop_(loop),
        stream_(std::move(stream)),
        name_(terms.address.to_string()),
        reply_size_(terms.reply_size) {}

  Stream& stream() { return stream_; }

  void start() { read(); }

  void ask(std::string_view request, OnReply on_reply) override {
    output_ += request;
    waiting_.push_back(std::move(on_reply));
    if (writing_ || flushing_) return;
    // With what else is asked for in this turn.
    flushing_ = true;
    asio::post(loop_, [this] {
      flushing_ = false;
      write();
    });
  }

 private:
  void write() {
    if (output_.empty() || writing_) return;
    writing_ = true;
    std::swap(sending_, output_);
    asio::async_write(stream_, asio::buffer(sending_), [this](Error error, std::size_t) {
      fail_on(error);
      writing_ = false;
      sending_.clear();
      write();
    });
  }

  void read() {
    stream_.async_read_some(asio::buffer(buffer_), [this](Error error, std::size_t size) {
      fail_on(error);
      unread_.append(buffer_.data(), size);
      take_replies();
      read();
    });
  }

  void take_replies() {
    std::size_t taken = 0;
    const std::string_view all = unread_;
    while (const std::size_t size = reply_size_(all.substr(taken))) {
      if (waiting_.empty()) throw Failure(kExitProtocol, name_ + " answers what nobody asked");
      const OnReply on_reply = std::move(waiting_.front());
      waiting_.pop_front();
      on_reply(all.substr(taken, size));
      taken += size;
    }
    unread_.erase(0, taken);
  }

  void fail_on(Error error) const {
    if (!error) return;
    throw Failure(kExitUnavailable, name_ + ": the connection has ended: " + error.message());
  }

  asio::io_context& loop_;
  Stream stream_;
  const std::string name_;
  const ReplySize reply_size_;
  std::deque<OnReply> waiting_;
  std::string output_;   // to be sent
  std::string sending_;  // being sent
  bool writing_ = false;
  bool flushing_ = false;
  std::string unread_;
  std::array<char, 16 * 1024> buffer_;
};

Tcp::socket connect(asio::io_context& loop, const LoadConnection::Terms& terms) {
  const std::string name = terms.address.to_string();
  Tcp::resolver resolver(loop);
  Error error;
  const auto found =
      resolver.resolve(terms.address.host, std::to_string(terms.address.port), error);
  if (error) throw Failure(kExitUnavailable, "cannot find " + name + ": " + error.message());
  Tcp::socket socket(loop);
  await(loop, terms.options.connect_timeout, "connect to " + name, [&](auto done) {
    asio::async_connect(socket, found, [done](Error failed, const auto&) { done(failed); });
  });
  socket.set_option(Tcp::no_delay(true), error);
  return socket;
}

// The secret is the first request, and its answer must be ok.
void authenticate(asio::io_context& loop, LoadConnection& connection,
                  const LoadConnection::Terms& terms) {
  if (!terms.sends_secret || terms.options.auth_token.empty()) return;
  std::optional<std::string> reply;
  connection.ask("auth\n_\n" + terms.options.auth_token + '\n',
                 [&](std::string_view line) { reply = line; });
  const auto deadline = std::chrono::steady_clock::now() + terms.options.reply_timeout;
  loop.restart();
  while (!reply && loop.run_one_until(deadline) != 0) {
  }
  if (!reply) throw Failure(kExitUnavailable, terms.address.to_string() + " does not answer");
  if (*reply != "ok\n")
    throw Failure(kExitNoPermission, "the token is wrong, or one is not asked for");
}

template <typename Stream>
std::unique_ptr<LoadConnection> begin(asio::io_context& loop, Stream stream,
                                      const LoadConnection::Terms& terms) {
  auto connection = std::make_unique<StreamConnection<Stream>>(loop, std::move(stream), terms);
  connection->start();
  authenticate(loop, *connection, terms);
  return connection;
}

}  // namespace

std::unique_ptr<LoadConnection> LoadConnection::open(asio::io_context& loop, const Terms& terms) {
  Tcp::socket socket = connect(loop, terms);
  if (terms.tls == nullptr) return begin(loop, std::move(socket), terms);
  Secure secure(std::move(socket), *terms.tls);
  const client::TlsOptions tls = terms.options.tls.value_or(client::TlsOptions{});
  expect_server(secure.native_handle(),
                tls.server_name.empty() ? terms.address.host : tls.server_name, tls.verify);
  try {
    await(loop, terms.options.connect_timeout, "talk TLS with " + terms.address.to_string(),
          [&](auto done) { secure.async_handshake(Secure::client, done); });
  } catch (const Failure& failure) {
    const std::string why = why_not_trusted(secure.native_handle());
    if (why.empty()) throw;
    throw Failure(kExitNoPermission, "cannot trust " + terms.address.to_string() + ": " + why);
  }
  return begin(loop, std::move(secure), terms);
}

}  // namespace lockd::cli
