// What a client's certificate lets it do, over real TLS.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/sha256.h"
#include "journal/testing/temporary_directory.h"
#include "server/server.h"
#include "support/line_client.h"
#include "support/test_authority.h"

namespace lockd {
namespace {

// The tests' clients show a certificate whose common name is "client".
class CertificateRights : public testing::Test {
 protected:
  Options options(const std::string& access) const {
    std::ofstream(path_) << access;
    Options options = line_options();
    options.tls_cert = test_authority().certificate("server");
    options.tls_key = test_authority().key("server");
    options.tls_client_ca = test_authority().certificate("ca");
    options.access = path_;
    return options;
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_.path() + "/access.toml";
};

const std::string kToken = "[[token]]\nname = 'billing'\nsha256 = '" +
                           hex_of(sha256("the secret of billing")) + "'\nrights = ['lock']\n";

std::string certificate_table(const std::string& name) {
  return "[[certificate]]\nname = 'deployer'\ncn = '" + name + "'\nrights = ['read']\n";
}

TEST_F(CertificateRights, AListedOneNeedsNoTokenAndATokenReplacesIt) {
  LineServer server(options(certificate_table("client") + kToken));
  LineClient client = server.connect();
  // The first request may come with the end of the handshake.
  EXPECT_EQ(client.ask(request("l", "k", "0")), "error_denied");
  EXPECT_TRUE(client.ask(request("stats", "", "")).starts_with("ok {"));
  EXPECT_EQ(client.ask(request("auth", "", "the secret of billing")), "ok");
  EXPECT_EQ(masked(client.ask(request("l", "k", "0"))), "ok <token> 33");
  EXPECT_EQ(client.ask(request("stats", "", "")), "error_denied");
}

TEST_F(CertificateRights, AnUnlistedOneHasToShowAToken) {
  LineServer server(options(certificate_table("Client") + kToken));
  EXPECT_EQ(server.connect().ask(request("ping", "", "")), "error_auth");
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("auth", "", "the secret of billing")), "ok");
  EXPECT_EQ(masked(client.ask(request("l", "k", "0"))), "ok <token> 33");
}

TEST_F(CertificateRights, WithoutTokensAnUnlistedOneHasNoRights) {
  LineServer server(options(certificate_table("somebody else")));
  LineClient client = server.connect();
  EXPECT_EQ(client.ask(request("l", "k", "0")), "error_denied");
  EXPECT_EQ(client.ask(request("stats", "", "")), "error_denied");
  EXPECT_EQ(client.ask(request("ping", "", "")), "ok");
}

TEST_F(CertificateRights, AReloadTakesThemAway) {
  LineServer server(options(certificate_table("client")));
  LineClient client = server.connect();
  EXPECT_TRUE(client.ask(request("stats", "", "")).starts_with("ok {"));
  std::ofstream(path_) << certificate_table("somebody else");
  EXPECT_EQ(server.server().reload(), "");
  EXPECT_EQ(client.read_to_end(), Lines{std::string(kEnd)});
}

TEST_F(CertificateRights, WithoutAFileEveryCertificateMayDoEverything) {
  Options open = options("");
  open.access.clear();
  LineServer server(open);
  LineClient client = server.connect();
  EXPECT_EQ(masked(client.ask(request("l", "k", "0"))), "ok <token> 33");
  EXPECT_NE(client.ask(request("api", "GET /v1/whoami", "")).find("\"admin\""), std::string::npos);
}

}  // namespace
}  // namespace lockd
