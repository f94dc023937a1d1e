#include "client/tls_client.h"

#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <string>

namespace lockd::client {
namespace {

// Whom the certificate must name, after expect_host().
std::string expected(const std::string& name) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  if (!expect_host(ssl.get(), name)) return "nobody";
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl.get());
  if (const char* const host = X509_VERIFY_PARAM_get0_host(rules, 0)) return host;
  char* const address = X509_VERIFY_PARAM_get1_ip_asc(rules);
  const std::string found = address == nullptr ? "anybody" : address;
  OPENSSL_free(address);
  return found;
}

TEST(TlsClient, ExpectsTheServerThatWasNamed) {
  EXPECT_EQ(expected("locks.example.com"), "locks.example.com");
  EXPECT_EQ(expected("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(expected("::1"), "0:0:0:0:0:0:0:1");
  EXPECT_EQ(expected("fe80::1%eth0"), "fe80::1%eth0") << "a zone is no part of what is certified";
  EXPECT_EQ(expected("1.2.3"), "1.2.3");
}

TEST(TlsClient, ANameThatIsNoneMeansNobody) {
  EXPECT_EQ(expected(""), "nobody");
  EXPECT_EQ(expected(std::string(300, 'a')), "nobody");
}

}  // namespace
}  // namespace lockd::client
