// A blocking client of the line protocol on a real socket, and a server to talk to, for tests.
//
// What is read is a line without its LF, or one of the words in brackets below: a test compares
// strings, and a failure shows what came instead.
//
// With LOCKD_TEST_WAL in the environment every server here keeps a journal, so that each test is
// also one of that; for TLS see client_socket.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/testing/temporary_directory.h"
#include "server/settings/options.h"
#include "support/client_socket.h"

namespace lockd {

class Server;

class LineClient : public ClientSocket {
 public:
  // Connects to 127.0.0.1. `receive_buffer`, if not 0, makes it a slow reader.
  explicit LineClient(std::uint16_t port, int receive_buffer = 0, bool tls = tests_use_tls());

  // Whatever comes next; empty at the end, after a reset, and when nothing comes.
  std::string read_some();
  std::string read_line(std::chrono::milliseconds patience = kPatience);
  std::string ask(std::string_view request);
  std::vector<std::string> read_lines(std::size_t count);
  // All that comes until the end; the last is kEnd, kReset or kSilence.
  std::vector<std::string> read_to_end();

 private:
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
  bool tls() const { return tls_; }

 private:
  Options with_journal(Options options);

  std::optional<TemporaryDirectory> journal_;  // when the tests use one
  const std::unique_ptr<Server> server_;
  const bool tls_;
  std::uint16_t port_ = 0;
};

using Lines = std::vector<std::string>;

// A token that no server has given out.
inline const std::string kUnknownToken = "00000000000000010123456789abcdef";

std::string repeated(std::string_view text, std::size_t times);

// The three lines of a request.
std::string request(std::string_view command, std::string_view key, std::string_view argument);

// The reply with its token, if it has one, replaced by `<token>`.
std::string masked(std::string_view reply);
// The token of a grant; empty if there is none.
std::string token_of(std::string_view reply);

// Takes so many locks with keys of 200 bytes, which make long statistics.
void take_many(LineClient& client, int count);

// Asks for the statistics until they contain `part`. The last reply.
std::string await_stats(LineClient& client, std::string_view part);

}  // namespace lockd
