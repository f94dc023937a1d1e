// A blocking client of the line protocol on a real socket, and a server to talk to, for tests.
//
// What is read is a line without its LF, or one of the words in brackets below: a test compares
// strings, and a failure shows what came instead.
//
// With LOCKD_TEST_TLS in the environment every server and every client here speaks TLS, and with
// LOCKD_TEST_WAL every server keeps a journal, so that each test is also one of that.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/temporary_directory.h"
#include "server/options.h"

namespace lockd {

class Server;

inline constexpr std::string_view kEnd = "<end>";          // the peer sends no more
inline constexpr std::string_view kReset = "<reset>";      // the connection was reset
inline constexpr std::string_view kSilence = "<silence>";  // nothing came in time

// Whether the tests are to be run over TLS.
bool tests_use_tls();

class LineClient {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{30};

  // Connects to 127.0.0.1. `receive_buffer`, if not 0, makes it a slow reader.
  explicit LineClient(std::uint16_t port, int receive_buffer = 0, bool tls = tests_use_tls());
  ~LineClient() { close(); }
  LineClient(LineClient&& other) noexcept;
  LineClient& operator=(LineClient&& other) noexcept;

  bool connected() const { return socket_ >= 0; }
  SSL* tls() { return tls_.get(); }

  // False when the peer takes no more, or not within kPatience.
  bool send(std::string_view bytes);
  // A byte at a time.
  bool send_bytewise(std::string_view bytes);
  // In two parts, `at` bytes first, a pause between them.
  bool send_split(std::string_view bytes, std::size_t at, std::chrono::milliseconds pause);

  // Whatever comes next; empty at the end, after a reset, and when nothing comes.
  std::string read_some();
  std::string read_line(std::chrono::milliseconds patience = kPatience);
  std::string ask(std::string_view request);
  std::vector<std::string> read_lines(std::size_t count);
  // All that comes until the end; the last is kEnd, kReset or kSilence.
  std::vector<std::string> read_to_end();

  void half_close();
  void reset();  // RST instead of FIN
  void close();

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  void shake_hands();
  long patiently(const std::function<int()>& operation);
  bool has_pending();
  // How much came; 0 at the end, -1 after a reset.
  long receive(std::span<char> bytes);

  int socket_ = -1;
  std::unique_ptr<SSL, Free> tls_;  // null: plain text
  std::unique_ptr<std::mutex> tls_mutex_;
  std::string unread_;
  std::size_t taken_ = 0;
};

// 127.0.0.1, any free port, two loops; TLS if the tests use it.
Options line_options();

// A server that runs, until the end of its scope at the latest.
class LineServer {
 public:
  explicit LineServer(const Options& options = line_options());
  ~LineServer();

  LineClient connect(int receive_buffer = 0) { return LineClient(port_, receive_buffer, tls_); }
  Server& server() { return *server_; }
  std::uint16_t port() const { return port_; }

 private:
  Options with_journal(Options options);

  std::optional<TemporaryDirectory> journal_;  // when the tests use one
  const std::unique_ptr<Server> server_;
  const bool tls_;
  std::uint16_t port_ = 0;
};

using Lines = std::vector<std::string>;

std::string repeated(std::string_view text, std::size_t times);

// The three lines of a request.
std::string request(std::string_view command, std::string_view key, std::string_view argument);

// The reply with its token, if it has one, replaced by `<token>`.
std::string masked(std::string_view reply);
// The token of a grant; empty if there is none.
std::string token_of(std::string_view reply);

// Asks for the statistics until they contain `part`. The last reply.
std::string await_stats(LineClient& client, std::string_view part);

}  // namespace lockd
