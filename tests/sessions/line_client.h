// A blocking client of the line protocol on a real socket, and a server to talk to, for tests.
//
// What is read is a line without its LF, or one of the words in brackets below: a test compares
// strings, and a failure shows what came instead.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/options.h"
#include "server/server.h"

namespace lockd {

inline constexpr std::string_view kEnd = "<end>";          // the peer sends no more
inline constexpr std::string_view kReset = "<reset>";      // the connection was reset
inline constexpr std::string_view kSilence = "<silence>";  // nothing came in time

class LineClient {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{30};

  // Connects to 127.0.0.1. `receive_buffer`, if not 0, makes it a slow reader.
  explicit LineClient(std::uint16_t port, int receive_buffer = 0);
  ~LineClient() { close(); }
  LineClient(LineClient&& other) noexcept;
  LineClient& operator=(LineClient&& other) noexcept;

  bool connected() const { return socket_ >= 0; }

  // False when the peer takes no more, or not within kPatience.
  bool send(std::string_view bytes);
  // A byte at a time.
  bool send_bytewise(std::string_view bytes);
  // In two parts, `at` bytes first, a pause between them.
  bool send_split(std::string_view bytes, std::size_t at, std::chrono::milliseconds pause);

  std::string read_line(std::chrono::milliseconds patience = kPatience);
  std::string ask(std::string_view request);
  std::vector<std::string> read_lines(std::size_t count);
  // All that comes until the end; the last is kEnd, kReset or kSilence.
  std::vector<std::string> read_to_end();

  void half_close();
  void reset();  // RST instead of FIN
  void close();

 private:
  int socket_ = -1;
  std::string unread_;
  std::size_t taken_ = 0;
};

// 127.0.0.1, any free port, two loops.
Options line_options();

// A server that runs, until the end of its scope at the latest.
class LineServer {
 public:
  explicit LineServer(const Options& options = line_options());

  LineClient connect(int receive_buffer = 0) { return LineClient(port_, receive_buffer); }
  Server& server() { return server_; }
  std::uint16_t port() const { return port_; }

 private:
  Server server_;
  std::uint16_t port_ = 0;
};

// The three lines of a request.
std::string request(std::string_view command, std::string_view key, std::string_view argument);

// The reply with its token, if it has one, replaced by `<token>`.
std::string masked(std::string_view reply);
// The token of a grant; empty if there is none.
std::string token_of(std::string_view reply);

// Asks for the statistics until they contain `part`. The last reply.
std::string await_stats(LineClient& client, std::string_view part);

}  // namespace lockd
