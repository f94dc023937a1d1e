// A socket of a client that never waits, plain or over TLS.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockd::histories {

class Channel {
 public:
  // To 127.0.0.1. Whether that works is seen when it is used.
  Channel(std::uint16_t port, bool tls);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int descriptor() const { return socket_; }
  std::uint16_t local_port() const;

  void send(std::string_view bytes) { unsent_ += bytes; }
  // Sends and receives what can be; appends to `received`. `ending`: the peer may have sent its
  // last. False when the connection is over.
  bool advance(std::string& received, bool ending);
  // Only sends.
  bool flush();
  bool wants_to_write() const { return wants_to_write_; }
  // The end will be a reset.
  void reset_on_close();

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  bool fill(std::string& received, bool ending);
  // How much; 0 for not now, -1 for never.
  long write(std::string_view bytes);
  long read(char* bytes, std::size_t size);
  long outcome(long result);

  int socket_ = -1;
  std::unique_ptr<SSL, Free> tls_;
  std::string unsent_;
  bool wants_to_write_ = true;
};

}  // namespace lockd::histories
