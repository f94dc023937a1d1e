// A real server, and how this library's clients reach it: over TLS when the tests use it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <utility>

#include "lockd/client/client.h"
#include "support/line_client.h"
#include "support/test_authority.h"

namespace lockd::client {

inline TlsOptions trusting_tls() {
  return {.ca_file = test_authority().certificate("ca"),
          .certificate = test_authority().certificate("client"),
          .key = test_authority().key("client")};
}

// Patient enough for a slow machine.
inline ConnectOptions connect_options(bool tls = tests_use_tls()) {
  ConnectOptions options{.connect_timeout = std::chrono::seconds(60),
                         .reply_timeout = std::chrono::seconds(60)};
  if (tls) options.tls = trusting_tls();
  return options;
}

class TestServer : public LineServer {
 public:
  explicit TestServer(const lockd::Options& options = line_options())
      : LineServer(options), tls_(!options.tls_cert.empty()) {}

  Address address() const { return {"127.0.0.1", port()}; }

  Connection open(ConnectOptions options) const {
    auto opened = Connection::open(address(), options);
    EXPECT_TRUE(opened) << describe(opened);
    return std::move(*opened);
  }
  Connection open() const { return open(connect_options(tls_)); }
  ClientOptions client_options() const {
    return {.servers = {address()},
            .connect = connect_options(tls_),
            .release_timeout = std::chrono::seconds(60)};
  }

 private:
  const bool tls_;
};

}  // namespace lockd::client
