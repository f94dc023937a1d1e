#include "support/test_authority.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>

namespace lockd {
namespace {

constexpr long kDay = 24 * 60 * 60;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "certificates for tests: %s\n", what);
  std::abort();
}

void add_extension(X509* certificate, int which, const char* value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, which, value);
  require(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, "extension");
  X509_EXTENSION_free(extension);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name) : key_(EVP_EC_gen("P-256")) {
  certificate_ = sign(name, key_.get(), nullptr, nullptr);
  write("ca", certificate_.get(), key_.get());
}

void TestAuthority::issue(const std::string& name, For use) {
  const Key key(EVP_EC_gen("P-256"));
  const bool server = use == For::server;
  const Certificate certificate = sign(name, key.get(), server ? "serverAuth" : "clientAuth",
                                       server ? "DNS:localhost,IP:127.0.0.1" : nullptr);
  write(name, certificate.get(), key.get());
}

TestAuthority::Certificate TestAuthority::sign(const std::string& name, EVP_PKEY* key,
                                               const char* purpose, const char* alternative_names) {
  Certificate made(X509_new());
  X509* const x = made.get();
  X509* const issuer = certificate_ == nullptr ? x : certificate_.get();
  X509_set_version(x, X509_VERSION_3);
  std::uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  ASN1_INTEGER_set(X509_get_serialNumber(x), static_cast<long>(serial) + 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(x), kDay);
  X509_set_pubkey(x, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, X509_get_subject_name(issuer));
  add_extension(x, NID_basic_constraints, purpose == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (purpose != nullptr) add_extension(x, NID_ext_key_usage, purpose);
  if (alternative_names != nullptr) add_extension(x, NID_subject_alt_name, alternative_names);
  require(X509_sign(x, key_.get(), EVP_sha256()) > 0, "signature");
  return made;
}

void TestAuthority::write(const std::string& name, X509* certificate, EVP_PKEY* key) const {
  std::FILE* const pem = std::fopen(this->certificate(name).c_str(), "w");
  std::FILE* const secret = std::fopen(this->key(name).c_str(), "w");
  require(pem != nullptr && secret != nullptr, "cannot write");
  require(PEM_write_X509(pem, certificate) == 1, "certificate");
  require(PEM_write_PrivateKey(secret, key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "key");
  std::fclose(pem);
  std::fclose(secret);
}

TestAuthority& test_authority() {
  static TestAuthority authority("lockd tests");
  static const bool issued = [] {
    authority.issue("server", TestAuthority::For::server);
    authority.issue("client", TestAuthority::For::client);
    return true;
  }();
  static_cast<void>(issued);
  return authority;
}

}  // namespace lockd
