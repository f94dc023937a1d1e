#include "lockctl/tls_settings.h"

#include <openssl/x509.h>

#include "client/tls_client.h"
#include "lockctl/output/failure.h"
#include "lockctl/values.h"

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
  if (client::expect_host(handle, name)) return;
  throw Failure(kExitConfig, "no certificate can be for " + in_quotes(name));
}

std::string why_not_trusted(SSL* handle) {
  const long result = SSL_get_verify_result(handle);
  return result == X509_V_OK ? "" : X509_verify_cert_error_string(result);
}

}  // namespace lockd::cli
