#include "cli/tls_settings.h"

#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>

#include "cli/failure.h"

namespace lockd::cli {
namespace {

namespace ssl = boost::asio::ssl;

void require_file(const boost::system::error_code& error, const std::string& path) {
  if (error) throw Failure(kExitConfig, path + ": " + error.message());
}

}  // namespace

ssl::context make_tls_context(const client::TlsOptions& options) {
  ssl::context context(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  if (options.ca_file.empty()) {
    context.set_default_verify_paths(error);
  } else {
    context.load_verify_file(options.ca_file, error);
  }
  if (options.verify)
    require_file(error, options.ca_file.empty() ? "the system's authorities" : options.ca_file);
  if (!options.certificate.empty()) {
    context.use_certificate_chain_file(options.certificate, error);
    require_file(error, options.certificate);
    context.use_private_key_file(options.key, ssl::context::pem, error);
    require_file(error, options.key);
  }
  return context;
}

void expect_server(SSL* handle, const std::string& name, bool verify) {
  SSL_set_verify(handle, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  boost::system::error_code no_address;
  boost::asio::ip::make_address(name, no_address);
  if (no_address) {
    SSL_set_tlsext_host_name(handle, name.c_str());
    SSL_set1_host(handle, name.c_str());
  } else {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(handle), name.c_str());
  }
}

std::string why_not_trusted(SSL* handle) {
  const long result = SSL_get_verify_result(handle);
  return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
}

}  // namespace lockd::cli
