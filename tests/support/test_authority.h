// Certificates for tests: an authority, and what it has signed, as files of one temporary folder.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "journal/testing/temporary_directory.h"

namespace lockd {

class TestAuthority {
 public:
  // `name` tells one authority from another.
  explicit TestAuthority(const std::string& name);

  enum class For { server, client };

  // Writes `<name>.pem` and `<name>.key`: for localhost and 127.0.0.1 when it is a server's.
  void issue(const std::string& name, For use);
  std::string certificate(const std::string& name) const { return path(name + ".pem"); }
  std::string key(const std::string& name) const { return path(name + ".key"); }
  std::string path(const std::string& file) const { return folder_.path() + "/" + file; }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  Certificate sign(const std::string& name, EVP_PKEY* key, const char* purpose,
                   const char* alternative_names);
  void write(const std::string& name, X509* certificate, EVP_PKEY* key) const;

  const TemporaryDirectory folder_;
  const Key key_;
  Certificate certificate_;  // null until it has signed itself
};

// The one that the tests' servers are certified by, with `server` and `client` issued.
TestAuthority& test_authority();

}  // namespace lockd
