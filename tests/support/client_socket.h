// A blocking socket of a client, plain or over TLS, for tests. What is spoken over it is up to
// those who inherit.
//
// With LOCKD_TEST_TLS in the environment every server and every client of these tests speaks TLS.
// One thread may send while another reads.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace lockd {

using SteadyClock = std::chrono::steady_clock;

// What may come instead of bytes.
inline constexpr std::string_view kEnd = "<end>";          // the peer sends no more
inline constexpr std::string_view kReset = "<reset>";      // the connection was reset
inline constexpr std::string_view kSilence = "<silence>";  // nothing came in time

// Whether the tests are to be run over TLS.
bool tests_use_tls();

class ClientSocket {
 public:
  using Clock = SteadyClock;
  static constexpr std::chrono::seconds kPatience{30};

  // Where to, and how. `host` is numeric, and so is `from`, an IPv4 address of this machine that
  // the server sees; `receive_buffer`, if not 0, makes it a slow reader.
  struct To {
    std::uint16_t port = 0;
    int receive_buffer = 0;
    bool tls = tests_use_tls();
    std::string host = "127.0.0.1";
    std::string from{};  // empty: the system chooses
  };

  explicit ClientSocket(const To& to);
  ~ClientSocket() { close(); }
  ClientSocket(ClientSocket&& other) noexcept;
  ClientSocket& operator=(ClientSocket&& other) noexcept;

  bool connected() const { return socket_ >= 0; }
  SSL* tls() { return tls_.get(); }

  // False when the peer takes no more, or not within kPatience.
  bool send(std::string_view bytes);
  // A byte at a time.
  bool send_bytewise(std::string_view bytes);
  // In two parts, `at` bytes first, a pause between them.
  bool send_split(std::string_view bytes, std::size_t at, std::chrono::milliseconds pause);

  void half_close();
  void reset();  // RST instead of FIN
  void close();

 protected:
  // Appends whatever comes next; or one of the words above, and nothing is appended.
  std::string_view append_some(std::string& bytes, std::chrono::milliseconds patience);

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  bool connect(const To& to);
  void shake_hands();
  long patiently(const std::function<int()>& operation);
  bool has_pending();
  // How much came; 0 at the end, -1 after a reset.
  long receive(std::span<char> bytes);

  int socket_ = -1;
  std::unique_ptr<SSL, Free> tls_;  // null: plain text
  std::unique_ptr<std::mutex> tls_mutex_;
};

}  // namespace lockd
