#include "net/tls_context.h"

#include <openssl/err.h>

#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/file_text.h"

namespace lockd {
namespace {

// For TLS 1.2; those of 1.3 are all of this kind.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// A file, by the setting that names it, and what is in such a file.
struct Named {
  std::string_view setting;
  std::string_view takes;
};
constexpr Named kCertificate{"tls-cert", "certificates in PEM, the server's own first"};
constexpr Named kKey{"tls-key", "the private key of --tls-cert in PEM, without a password"};
constexpr Named kClientCa{"tls-client-ca", "certificates of authorities in PEM"};

std::string cannot_use(const Named& named, const std::string& path, std::string_view reason) {
  return "--" + std::string(named.setting) + ": cannot use " + path +
         " for TLS: " + std::string(reason) + "; it takes " + std::string(named.takes);
}

std::string cannot_use(const Named& named, const std::string& path) {
  const unsigned long error = ERR_peek_error();  // the first: what came of it is less to the point
  const char* const reason = ERR_SYSTEM_ERROR(error) ? std::strerror(ERR_GET_REASON(error))
                                                     : ERR_reason_error_string(error);
  std::string line = cannot_use(named, path, reason == nullptr ? "unknown error" : reason);
  ERR_clear_error();
  return line;
}

// Nobody is there to be asked for a password: a key that needs one is an error, not a prompt.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

TlsContext::TlsContext()
    : context_(make(TLS_server_method())), to_peers_(make(TLS_client_method())) {}

TlsContext::Handle TlsContext::make(const SSL_METHOD* method) {
  Handle made(SSL_CTX_new(method));
  if (made == nullptr) throw std::bad_alloc();
  SSL_CTX* const handle = made.get();
  SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION);
  SSL_CTX_set_options(handle, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_num_tickets(handle, 0);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_cipher_list(handle, kCiphers);
  // An idle connection gives its buffers back.
  SSL_CTX_set_mode(handle, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(handle, no_password);
  return made;
}

std::shared_ptr<const TlsContext> TlsContext::load(const TlsFiles& files, std::string& error) {
  const std::shared_ptr<TlsContext> made(new TlsContext);
  error = made->use(files);
  return error.empty() ? made : nullptr;
}

std::unique_ptr<TlsChannel> TlsContext::open_channel() const {
  SslHandle ssl(SSL_new(context_.get()));
  if (ssl != nullptr) SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsChannel>(std::move(ssl));
}

std::unique_ptr<TlsChannel> TlsContext::open_channel_to_peer() const {
  SslHandle ssl(SSL_new(to_peers_.get()));
  if (ssl != nullptr) SSL_set_connect_state(ssl.get());
  return std::make_unique<TlsChannel>(std::move(ssl));
}

std::string TlsContext::show_certificate(SSL_CTX* handle, const TlsFiles& files) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(handle, files.certificate.c_str()) != 1) {
    return cannot_use(kCertificate, files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(handle, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return cannot_use(kKey, files.key);
  }
  // OpenSSL has compared them by now, unless they are of different kinds.
  if (SSL_CTX_check_private_key(handle) != 1) {
    return cannot_use(kKey, files.key, "it is not the key of " + files.certificate);
  }
  return {};
}

std::string TlsContext::use(const TlsFiles& files) {
  // OpenSSL opens the files by itself, and would wait for the writer of a FIFO.
  for (const auto& [named, path] : {std::pair(kCertificate, files.certificate),
                                    {kKey, files.key},
                                    {kClientCa, files.client_ca}}) {
    const std::string reason = why_not_regular(path);
    if (!reason.empty()) return cannot_use(named, path, reason);
  }
  SSL_CTX* const handle = context_.get();
  std::string error = show_certificate(handle, files);
  if (error.empty()) error = show_certificate(to_peers_.get(), files);
  if (!error.empty() || files.client_ca.empty()) return error;
  if (SSL_CTX_load_verify_file(handle, files.client_ca.c_str()) != 1) {
    return cannot_use(kClientCa, files.client_ca);
  }
  SSL_CTX_set_verify(handle, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Tells clients which of their certificates to show.
  SSL_CTX_set_client_CA_list(handle, SSL_load_client_CA_file(files.client_ca.c_str()));
  return {};
}

}  // namespace lockd
