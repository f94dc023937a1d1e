#include "lockctl/tls_settings.h"

#include <gtest/gtest.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <string>

#include "lockctl/output/failure.h"

namespace lockd::cli {
namespace {

// Whom the certificate must name, after expect_server().
std::string expected(const std::string& name) {
  auto context = make_tls_context({.verify = false});
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.native_handle()), SSL_free);
  expect_server(ssl.get(), name, /*verify=*/true);
  EXPECT_EQ(SSL_get_verify_mode(ssl.get()), SSL_VERIFY_PEER);
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl.get());
  if (const char* const host = X509_VERIFY_PARAM_get0_host(rules, 0)) return host;
  char* const address = X509_VERIFY_PARAM_get1_ip_asc(rules);
  const std::string found = address == nullptr ? "anybody" : address;
  OPENSSL_free(address);
  return found;
}

TEST(TlsSettings, ExpectTheServerThatWasNamed) {
  EXPECT_EQ(expected("locks.example.com"), "locks.example.com");
  EXPECT_EQ(expected("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(expected("::1"), "0:0:0:0:0:0:0:1");
}

TEST(TlsSettings, NoNameMeansAnybody) {
  EXPECT_EQ(expected("fe80::1%eth0"), "fe80::1%eth0") << "a zone is no part of what is certified";
  EXPECT_EQ(expected("1.2.3"), "1.2.3");
  EXPECT_THROW(expected(""), Failure);
  EXPECT_THROW(expected(std::string(300, 'a')), Failure);
}

}  // namespace
}  // namespace lockd::cli
