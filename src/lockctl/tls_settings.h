// TLS for connections that lockctl opens itself, over HTTP and for bench: the same rules as the
// client library's, TLS 1.2 and later, and the server's name verified unless it was asked not to.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <string>

#include "lockd/client/connection.h"

namespace lockd::cli {

// Throws Failure when a file cannot be used.
boost::asio::ssl::context make_tls_context(const client::TlsOptions& options);

// Before the handshake: whom the certificate must name, an IP address or a host. Throws Failure
// when none can name it.
void expect_server(SSL* ssl, const std::string& name, bool verify);

// After one that failed: what is wrong with the certificate, or empty when that was not it.
std::string why_not_trusted(SSL* ssl);

}  // namespace lockd::cli
