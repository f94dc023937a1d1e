// Whom a client believes over TLS, and what it shows of itself.
//
// TLS 1.2 and later. Unless verification was switched off, a server must show a certificate that
// leads to an authority we believe and that names the host we meant, be it a name or an address.
// Made once from files and never changed; any thread may open channels.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "lockd/client/connection.h"
#include "lockd/client/outcome.h"
#include "net/tls_channel.h"

namespace lockd::client {

// Before the handshake: whom the certificate must name, a name or an IP address, and whom we say
// that we mean. False when that can be no server's name: nobody is to be believed then.
bool expect_host(SSL* ssl, const std::string& host);

class TlsClient {
 public:
  // `invalid`, with a line for people, when the files cannot be used.
  static Result<std::shared_ptr<const TlsClient>> load(const TlsOptions& options);

  // The client's end of a new connection to `host`. Null when that can be no server's name.
  std::unique_ptr<TlsChannel> open_channel(const std::string& host) const;

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  explicit TlsClient(const TlsOptions& options);
  Status use_files();

  const TlsOptions options_;
  const std::unique_ptr<SSL_CTX, Free> context_;
};

}  // namespace lockd::client
