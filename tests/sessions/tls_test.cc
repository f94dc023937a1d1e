// What is TLS's own: certificates, versions, handshakes that fail, stall or are cut.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "server/server.h"
#include "support/line_client.h"
#include "support/test_authority.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;
using For = TestAuthority::For;

Options tls_options(TestAuthority& authority = test_authority()) {
  Options options = line_options();
  options.tls_cert = authority.certificate("server");
  options.tls_key = authority.key("server");
  return options;
}

const std::string kPing = request("ping", "", "");

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

// A client that trusts the tests' authority and shows nothing.
Context plain_context() {
  Context context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_load_verify_file(context.get(), test_authority().certificate("ca").c_str());
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return context;
}

// A client whose bytes to the server end after `bytes_max`, wherever that is.
class CutClient {
 public:
  CutClient(std::uint16_t port, SSL_CTX* context, std::size_t bytes_max)
      : wire_(port, 0, false), left_(bytes_max), ssl_(SSL_new(context)) {
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_);
  }
  ~CutClient() { SSL_free(ssl_); }
  CutClient(const CutClient&) = delete;
  CutClient& operator=(const CutClient&) = delete;

  // Shakes hands, then asks for a ping. Whether it came so far that the answer was read.
  bool converse() {
    while (!SSL_is_init_finished(ssl_)) {
      SSL_do_handshake(ssl_);
      if (!pass_on()) return false;
      if (!SSL_is_init_finished(ssl_) && !take_in()) return false;
    }
    SSL_write(ssl_, kPing.data(), static_cast<int>(kPing.size()));
    if (!pass_on()) return false;
    std::array<char, 16> reply;
    int size = 0;
    while ((size = SSL_read(ssl_, reply.data(), reply.size())) <= 0) {
      if (!take_in()) return false;
    }
    return std::string(reply.data(), static_cast<std::size_t>(size)) == "ok\n";
  }
  void reset() { wire_.reset(); }
  std::size_t sent() const { return sent_; }

 private:
  // False when what may be sent is used up.
  bool pass_on() {
    std::array<char, 4096> bytes;
    int size = 0;
    while ((size = BIO_read(SSL_get_wbio(ssl_), bytes.data(), bytes.size())) > 0) {
      const std::size_t part = std::min(left_, static_cast<std::size_t>(size));
      wire_.send({bytes.data(), part});
      sent_ += part;
      left_ -= part;
      if (part < static_cast<std::size_t>(size)) return false;
    }
    return true;
  }
  bool take_in() {
    const std::string bytes = wire_.read_some();
    if (bytes.empty()) return false;
    BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(bytes.size()));
    return true;
  }

  LineClient wire_;
  std::size_t left_;
  std::size_t sent_ = 0;
  SSL* const ssl_;
};

TEST(Tls, AHandshakeCutAtAnyByteDisturbsNobody) {
  LineServer server(tls_options());
  LineClient healthy = server.connect();
  const Context context = plain_context();
  const std::size_t whole = [&] {
    CutClient client(server.port(), context.get(), SIZE_MAX);
    EXPECT_TRUE(client.converse());
    return client.sent();
  }();
  ASSERT_GT(whole, 200u);  // a hello, an end of the handshake, a request
  for (std::size_t cut = 0; cut < whole; ++cut) {
    CutClient client(server.port(), context.get(), cut);
    EXPECT_FALSE(client.converse()) << "cut after " << cut;
    if (cut % 2 == 0) client.reset();
    ASSERT_EQ(healthy.ask(kPing), "ok") << "cut after " << cut;
  }
  EXPECT_NE(await_stats(healthy, "\"connections\":1,").find("\"connections\":1,"),
            std::string::npos);
}

TEST(Tls, AHandshakeMustBeDoneInTime) {
  Options options = tls_options();
  options.auth_timeout = 300ms;
  LineServer server(options);
  const auto began = LineClient::Clock::now();
  LineClient slow(server.port(), 0, false);
  // A record that begins well and goes on for ever, a byte now and then.
  ASSERT_TRUE(slow.send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7)));
  while (slow.read_line(50ms) == kSilence) {
    ASSERT_LT(LineClient::Clock::now() - began, 30s);
    slow.send("x");
  }
  EXPECT_GE(LineClient::Clock::now() - began, 300ms);
}

TEST(Tls, PlainTextIsNotServed) {
  LineServer server(tls_options());
  LineClient plain(server.port(), 0, false);
  plain.send(kPing);
  const std::string first = plain.read_line();
  EXPECT_EQ(first.find("ok"), std::string::npos) << first;
  EXPECT_EQ(server.connect().ask(kPing), "ok");
}

TEST(Tls, GoodbyeIsSaid) {
  LineServer server(tls_options());
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("bogus", "", "")), "error");
  EXPECT_EQ(client.read_line(), kEnd);
  EXPECT_NE(SSL_get_shutdown(client.tls()) & SSL_RECEIVED_SHUTDOWN, 0);
}

TEST(Tls, VersionsBefore12AreRefused) {
  LineServer server(tls_options());
  for (const auto& [version, served] :
       {std::pair{TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}}) {
    const Context context = plain_context();
    SSL_CTX_set_security_level(context.get(), 0);
    SSL_CTX_set_min_proto_version(context.get(), version);
    SSL_CTX_set_max_proto_version(context.get(), version);
    EXPECT_EQ(CutClient(server.port(), context.get(), SIZE_MAX).converse(), served) << version;
  }
}

TEST(Tls, AWeakCipherIsRefused) {
  LineServer server(tls_options());
  const Context context = plain_context();
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context.get(), "ECDHE-ECDSA-AES128-SHA");  // CBC
  EXPECT_FALSE(CutClient(server.port(), context.get(), SIZE_MAX).converse());
}

TEST(Tls, ClientsMustShowACertificateOfTheRightAuthority) {
  Options options = tls_options();
  options.tls_client_ca = test_authority().certificate("ca");
  LineServer server(options);
  EXPECT_EQ(server.connect().ask(kPing), "ok");  // it shows one

  const Context nothing = plain_context();
  EXPECT_FALSE(CutClient(server.port(), nothing.get(), SIZE_MAX).converse());

  TestAuthority foreign("somebody else");
  foreign.issue("client", For::client);
  const Context stranger = plain_context();
  SSL_CTX_use_certificate_file(stranger.get(), foreign.certificate("client").c_str(),
                               SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(stranger.get(), foreign.key("client").c_str(), SSL_FILETYPE_PEM);
  EXPECT_FALSE(CutClient(server.port(), stranger.get(), SIZE_MAX).converse());
  EXPECT_EQ(server.connect().ask(kPing), "ok");
}

std::string serial_shown(LineClient& client) {
  X509* const shown = SSL_get1_peer_certificate(client.tls());
  if (shown == nullptr) return "none";
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(shown), nullptr);
  char* const text = BN_bn2hex(number);
  std::string serial = text;
  OPENSSL_free(text);
  BN_free(number);
  X509_free(shown);
  return serial;
}

TEST(Tls, ReloadingShowsTheNewCertificateAndDropsNobody) {
  TestAuthority& authority = test_authority();
  authority.issue("renewed", For::server);
  Options options = tls_options();
  options.tls_cert = authority.certificate("renewed");
  options.tls_key = authority.key("renewed");
  LineServer server(options);
  LineClient before = server.connect();
  const std::string token = token_of(before.ask(request("l", "job", "0 60")));
  ASSERT_FALSE(token.empty());

  authority.issue("renewed", For::server);
  ASSERT_EQ(server.server().reload(), "");
  LineClient after = server.connect();
  EXPECT_NE(serial_shown(after), serial_shown(before));
  EXPECT_EQ(after.ask(kPing), "ok");
  EXPECT_EQ(before.ask(request("n", "job", token)), "ok 60");

  // What cannot be used changes nothing.
  std::ofstream(options.tls_key) << "rubbish";
  EXPECT_NE(server.server().reload(), "");
  LineClient still = server.connect();
  EXPECT_EQ(serial_shown(still), serial_shown(after));
  EXPECT_EQ(still.ask(kPing), "ok");
}

TEST(Tls, FilesThatCannotBeUsedAreNamed) {
  TestAuthority& authority = test_authority();
  authority.issue("other", For::server);
  const auto error_of = [](const Options& options) { return Server(options).start(); };

  Options options = tls_options();
  options.tls_cert = authority.path("missing.pem");
  EXPECT_EQ(error_of(options),
            "--tls-cert: cannot use " + options.tls_cert +
                " for TLS: No such file or directory; it takes certificates in PEM, the server's "
                "own first");
  options = tls_options();
  options.tls_key = authority.key("other");
  EXPECT_TRUE(error_of(options).starts_with("--tls-key: cannot use " + options.tls_key))
      << error_of(options);
  options = tls_options();
  options.tls_cert = authority.key("server");
  EXPECT_TRUE(error_of(options).starts_with("--tls-cert: cannot use " + options.tls_cert))
      << error_of(options);
  options = tls_options();
  options.tls_client_ca = authority.path("missing.pem");
  EXPECT_EQ(error_of(options),
            "--tls-client-ca: cannot use " + options.tls_client_ca +
                " for TLS: No such file or directory; it takes certificates of authorities in "
                "PEM");
}

}  // namespace
}  // namespace lockd
