#include "net/tls_context.h"

#include <openssl/ssl.h>

#include <boost/system/error_code.hpp>
#include <utility>

namespace lockd {
namespace {

using boost::asio::ssl::context;
using boost::system::error_code;

// For TLS 1.2; those of 1.3 are all of this kind.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

std::string cannot_use(const std::string& path, const error_code& error) {
  return "cannot use " + path + " for TLS: " + error.message();
}

}  // namespace

TlsContext::TlsContext() : context_(context::tls_server) {
  SSL_CTX* const handle = context_.native_handle();
  SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION);
  SSL_CTX_set_options(handle, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_num_tickets(handle, 0);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_cipher_list(handle, kCiphers);
  // An idle connection gives its buffers back.
  SSL_CTX_set_mode(handle, SSL_MODE_RELEASE_BUFFERS);
}

std::shared_ptr<const TlsContext> TlsContext::load(const TlsFiles& files, std::string& error) {
  const std::shared_ptr<TlsContext> made(new TlsContext);
  error = made->use(files);
  return error.empty() ? made : nullptr;
}

std::unique_ptr<TlsChannel> TlsContext::open_channel() const {
  SslHandle ssl(SSL_new(context_.native_handle()));
  if (ssl != nullptr) SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsChannel>(std::move(ssl));
}

std::string TlsContext::use(const TlsFiles& files) {
  error_code error;
  // Nobody is there to be asked for a password: a key that needs one is an error, not a prompt.
  context_.set_password_callback([](std::size_t, context::password_purpose) { return ""; }, error);
  if (context_.use_certificate_chain_file(files.certificate, error)) {
    return cannot_use(files.certificate, error);
  }
  if (context_.use_private_key_file(files.key, context::pem, error)) {
    return cannot_use(files.key, error);
  }
  // OpenSSL has compared them by now, unless they are of different kinds.
  if (SSL_CTX_check_private_key(context_.native_handle()) != 1) {
    return "cannot use " + files.key + " for TLS: it is not the key of " + files.certificate;
  }
  if (files.client_ca.empty()) return {};
  if (context_.load_verify_file(files.client_ca, error)) return cannot_use(files.client_ca, error);
  context_.set_verify_mode(
      boost::asio::ssl::verify_peer | boost::asio::ssl::verify_fail_if_no_peer_cert, error);
  // Tells clients which of their certificates to show.
  SSL_CTX_set_client_CA_list(context_.native_handle(),
                             SSL_load_client_CA_file(files.client_ca.c_str()));
  return {};
}

}  // namespace lockd
