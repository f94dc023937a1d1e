#include "client/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <new>
#include <utility>

#include "base/file_text.h"

namespace lockd::client {
namespace {

Status cannot_use(const std::string& path) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return {Outcome::invalid,
          "cannot use " + path + " for TLS: " + (reason == nullptr ? "unknown error" : reason)};
}

bool is_ip_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> parsed;
  return ::inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

// Nobody is there to be asked for a password: a key that needs one is an error, not a prompt.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

bool expect_host(SSL* ssl, const std::string& host) {
  if (is_ip_address(host)) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  }
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

TlsClient::TlsClient(const TlsOptions& options)
    : options_(options), context_(SSL_CTX_new(TLS_client_method())) {
  if (context_ == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context_.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_default_passwd_cb(context_.get(), no_password);
  SSL_CTX_set_verify(context_.get(), options_.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
}

Result<std::shared_ptr<const TlsClient>> TlsClient::load(const TlsOptions& options) {
  const std::shared_ptr<TlsClient> made(new TlsClient(options));
  ERR_clear_error();
  if (Status bad = made->use_files(); !bad) return bad;
  return std::shared_ptr<const TlsClient>(made);
}

Status TlsClient::use_files() {
  SSL_CTX* const context = context_.get();
  // OpenSSL opens the files by itself, and would wait for the writer of a FIFO.
  for (const std::string& path : {options_.ca_file, options_.certificate, options_.key}) {
    const std::string reason = why_not_regular(path);
    if (!reason.empty()) return {Outcome::invalid, "cannot use " + path + " for TLS: " + reason};
  }
  const std::string& ca = options_.ca_file;
  if (options_.verify && ca.empty() && SSL_CTX_set_default_verify_paths(context) != 1) {
    return cannot_use("the system's certificates");
  }
  if (!ca.empty() && SSL_CTX_load_verify_file(context, ca.c_str()) != 1) return cannot_use(ca);
  if (options_.certificate.empty() != options_.key.empty()) {
    return {Outcome::invalid, "a client's certificate needs its key, and the key its certificate"};
  }
  if (options_.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, options_.certificate.c_str()) != 1) {
    return cannot_use(options_.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, options_.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return cannot_use(options_.key);
  }
  return {};
}

std::unique_ptr<TlsChannel> TlsClient::open_channel(const std::string& host) const {
  SslHandle ssl(SSL_new(context_.get()));
  if (ssl == nullptr) throw std::bad_alloc();
  const std::string& name = options_.server_name.empty() ? host : options_.server_name;
  if (!expect_host(ssl.get(), name)) {
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_connect_state(ssl.get());
  return std::make_unique<TlsChannel>(std::move(ssl));
}

}  // namespace lockd::client
