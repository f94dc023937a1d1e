// What a server shows its clients over TLS: its certificate and key, and whom it lets in.
//
// TLS 1.2 and later, ciphers with forward secrecy and authentication only, no renegotiation, no
// compression, no session tickets (nothing to steal, nothing to rotate). Made once from files and
// never changed: to reload is to make another one. A channel that was opened keeps what it needs.
// Any thread may open channels.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "net/tls_channel.h"

namespace lockd {

struct TlsFiles {
  std::string certificate;  // PEM, with the chain behind it
  std::string key;          // PEM
  std::string client_ca;    // PEM; when not empty, clients must show a certificate signed by it
};

class TlsContext {
 public:
  // Null, and a line for people in `error`, when the files cannot be used.
  static std::shared_ptr<const TlsContext> load(const TlsFiles& files, std::string& error);

  // The server's end of a new connection.
  std::unique_ptr<TlsChannel> open_channel() const;
  // The other end, to a server that is known by something else than its certificate: see
  // TlsChannel::binding(). Shows the same certificate if it is asked for one.
  std::unique_ptr<TlsChannel> open_channel_to_peer() const;

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Handle = std::unique_ptr<SSL_CTX, Free>;

  TlsContext();
  static Handle make(const SSL_METHOD* method);
  static std::string show_certificate(SSL_CTX* handle, const TlsFiles& files);
  std::string use(const TlsFiles& files);

  const Handle context_;
  const Handle to_peers_;
};

}  // namespace lockd
