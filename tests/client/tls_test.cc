// Whom a client believes over TLS.
#include <gtest/gtest.h>

#include <string>

#include "client/test_server.h"
#include "support/lying_server.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

Options tls_server() {
  Options options = line_options();
  options.host.clear();  // 127.0.0.1 and ::1
  options.tls_cert = test_authority().certificate("server");
  options.tls_key = test_authority().key("server");
  return options;
}

ConnectOptions with(TlsOptions tls) {
  ConnectOptions options = connect_options(false);
  options.tls = std::move(tls);
  return options;
}

TEST(ClientTls, BelievesWhomItsAuthorityCertifies) {
  const TestServer server(tls_server());
  EXPECT_TRUE(server.open(with({.ca_file = test_authority().certificate("ca")})).ping());
  auto by_name = Connection::open({"localhost", server.port()},
                                  with({.ca_file = test_authority().certificate("ca")}));
  ASSERT_TRUE(by_name) << describe(by_name);
  EXPECT_TRUE(by_name->ping());
}

TEST(ClientTls, BelievesNobodyElse) {
  const TestServer server(tls_server());
  const TestAuthority stranger("stranger");
  const auto wrong =
      Connection::open(server.address(), with({.ca_file = stranger.certificate("ca")}));
  EXPECT_EQ(wrong.outcome, Outcome::untrusted) << describe(wrong);
  const auto unknown = Connection::open(server.address(), with({}));
  EXPECT_EQ(unknown.outcome, Outcome::untrusted) << "the system's store does not know it";
}

TEST(ClientTls, BelievesNoOtherHost) {
  const TestServer server(tls_server());
  const std::string ca = test_authority().certificate("ca");
  for (const char* name : {"locks.example.com", "127.0.0.2", "localhost.example.com"}) {
    const auto opened =
        Connection::open(server.address(), with({.ca_file = ca, .server_name = name}));
    EXPECT_EQ(opened.outcome, Outcome::untrusted) << name << ": " << describe(opened);
  }
  EXPECT_TRUE(
      Connection::open(server.address(), with({.ca_file = ca, .server_name = "localhost"})));
}

TEST(ClientTls, BelievesAnybodyOnlyWhenToldTo) {
  const TestServer server(tls_server());
  EXPECT_TRUE(server.open(with({.server_name = "locks.example.com", .verify = false})).ping());
}

TEST(ClientTls, ShowsItsCertificateWhereItIsAskedFor) {
  Options options = tls_server();
  options.tls_client_ca = test_authority().certificate("ca");
  const TestServer server(options);
  EXPECT_TRUE(server.open(with(trusting_tls())).ping());
  // Over TLS 1.3 the refusal comes when the client believes to be in.
  auto anonymous =
      Connection::open(server.address(), with({.ca_file = test_authority().certificate("ca")}));
  EXPECT_FALSE(anonymous && anonymous->ping());
}

TEST(ClientTls, ALockIsHeldOverIt) {
  const TestServer server(tls_server());
  Client client(server.client_options());
  auto lock = client.acquire({.keys = "k", .lease = 8s});
  ASSERT_TRUE(lock) << describe(lock);
  const auto first = lock->expires_at();
  EXPECT_TRUE(eventually([&] { return lock->expires_at() > first; }));
  EXPECT_TRUE(lock->release());
}

TEST(ClientTls, BelievesEachServerOfAClusterByItsOwnName) {
  Options options = tls_server();
  options.host = "0.0.0.0";
  const TestServer server(options);
  const ConnectOptions connect = with({.ca_file = test_authority().certificate("ca")});
  // The certificate names localhost and 127.0.0.1, and nobody else.
  Client client({.cluster = {{"127.0.0.2", server.port()}, {"localhost", server.port()}},
                 .connect = connect});
  const auto lock = client.acquire({.keys = "k"});
  EXPECT_TRUE(lock) << describe(lock);
  EXPECT_EQ(client.server_of("k").host, "localhost");
  Client stranger({.cluster = {{"127.0.0.2", server.port()}, {"127.0.0.3", server.port()}},
                   .connect = connect});
  const auto untrusted = stranger.acquire({.keys = "k"});
  EXPECT_EQ(untrusted.outcome, Outcome::untrusted) << describe(untrusted);
}

TEST(ClientTls, FilesThatCannotBeUsedAreNamed) {
  const auto missing = Connection::open({}, with({.ca_file = "/no/such/file.pem"}));
  EXPECT_EQ(missing.outcome, Outcome::invalid);
  EXPECT_NE(missing.detail.find("/no/such/file.pem"), std::string::npos) << missing.detail;
  TlsOptions half = trusting_tls();
  half.key.clear();
  EXPECT_EQ(Connection::open({}, with(half)).outcome, Outcome::invalid);
  half.key = test_authority().key("server");
  EXPECT_EQ(Connection::open({}, with(half)).outcome, Outcome::invalid) << "another's key";
  Client client({.connect = with({.ca_file = "/no/such/file.pem"})});
  EXPECT_EQ(client.acquire({.keys = "k"}).outcome, Outcome::invalid);
}

TEST(ClientTls, PlainTextOnTheOtherSideIsNotTls) {
  const TestServer plain([] {
    Options options = line_options();
    options.tls_cert.clear();
    options.tls_key.clear();
    return options;
  }());
  EXPECT_EQ(Connection::open(plain.address(), with(trusting_tls())).outcome, Outcome::unreachable);
  const TestServer server(tls_server());
  EXPECT_FALSE(Connection::open(server.address(), connect_options(false)));
}

}  // namespace
}  // namespace lockd::client
