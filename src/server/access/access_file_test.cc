// The file of --access, and every way in which it can be wrong.
#include "server/access/access_file.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/sha256.h"
#include "config/testing/fake_environment.h"

namespace lockd {
namespace {

// A token's table, with `rest` behind the members that it must have.
std::string token_table(const std::string& secret, const std::string& rest = "") {
  return "[[token]]\nname = 'billing'\nsha256 = '" + hex_of(sha256(secret)) +
         "'\nrights = ['lock']\n" + rest;
}

std::string error_of(const std::string& text) { return parse_access_file(text).error; }

TEST(AccessFileTest, IsReadWhole) {
  const std::string text = "# who may\n[[token]]\nname = 'billing'\nsha256 = '" +
                           hex_of(sha256("s1")) +
                           "'\nrights = ['lock', 'signal']\nkeys = ['billing/', 'shared/invoice']\n"
                           "expires = 2027-01-01\n"
                           "[[certificate]]\nname = 'deployer'\ncn = 'deployer'\n"
                           "rights = ['lock', 'read', 'admin']\n"
                           "[[certificate]]\nname = 'host'\nsan = 'a.example'\nrights = []\n";
  const AccessFile file = parse_access_file(text);
  ASSERT_EQ(file.error, "");
  ASSERT_EQ(file.permits.size(), 3U);
  const Permit& deployer = file.permits[0];
  EXPECT_EQ(deployer.name, "deployer");
  EXPECT_EQ(deployer.proof, Permit::Proof::certificate);
  EXPECT_EQ(deployer.shown, by_common_name("deployer"));
  EXPECT_EQ(deployer.rights, Rights::all());
  EXPECT_FALSE(deployer.is_confined());
  EXPECT_EQ(file.permits[1].shown, by_alternative_name("a.example"));
  EXPECT_EQ(file.permits[1].rights, Rights());
  const Permit& billing = file.permits[2];
  EXPECT_EQ(billing.proof, Permit::Proof::token);
  EXPECT_EQ(billing.shown, bytes_of(sha256("s1")));
  EXPECT_EQ(billing.rights, Rights().with(Right::lock).with(Right::signal));
  EXPECT_EQ(billing.prefixes, (std::vector<std::string>{"billing/", "shared/invoice"}));
  ASSERT_TRUE(billing.expires);
  EXPECT_EQ(expiry_text(*billing.expires), "2027-01-01");
}

TEST(AccessFileTest, MayBeEmpty) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_TRUE(parse_access_file("# nobody\n").permits.empty());
}

TEST(AccessFileTest, SeveralTokensMayHaveOneName) {
  const AccessFile file = parse_access_file(token_table("old") + token_table("new"));
  EXPECT_EQ(file.error, "");
  EXPECT_EQ(file.permits.size(), 2U);
}

TEST(AccessFileTest, AMomentHasItsOffset) {
  const AccessFile file =
      parse_access_file(token_table("s", "expires = 2027-01-01T12:30:00+02:00\n"));
  ASSERT_EQ(file.error, "");
  EXPECT_EQ(expiry_text(*file.permits[0].expires), "2027-01-01T10:30:00Z");
}

TEST(AccessFileTest, WhatIsWrongIsNamedWithItsLine) {
  const std::string name = "1 to 256 bytes of text without control characters";
  const std::string keys =
      "keys must be a list of prefixes, each 1 to 256 bytes; leave it out for all keys";
  const std::string expires =
      "expires must be a date, 2027-01-01, or a moment with its offset, 2027-01-01T12:30:00Z, "
      "without quotes";
  const std::string digest = "sha256 must be 64 hex digits: see `lockctl token new`";
  const std::string good = hex_of(sha256("s"));
  const struct {
    std::string text;
    std::string error;
  } cases[] = {
      {"[[token]\n", "line 1: not valid TOML"},
      {"\ntokens = 1\n", "line 2: unknown table (did you mean token?)"},
      {"[token]\nname = 'a'\n", "line 1: write [[token]], with two brackets"},
      {"token = [1]\n", "line 1: a table is needed"},
      {"[[token]]\n", "line 1: token without a name"},
      {"[[certificate]]\n", "line 1: certificate without a name"},
      {"[[token]]\nname = ''\n", "line 2: name must be " + name},
      {"[[token]]\nname = 7\n", "line 2: name must be " + name},
      {"[[token]]\nname = \"a\\nb\"\n", "line 2: name must be " + name},
      {"[[token]]\nname = '" + std::string(257, 'n') + "'\n", "line 2: name must be " + name},
      {"[[token]]\nname = 'default'\n",
       "line 2: the name 'default' is that of --auth-token and --auth-token-file"},
      {"[[token]]\nname = 'a'\nrights = []\n", "line 1: token 'a': sha256 is missing"},
      {"[[token]]\nname = 'a'\nsha256 = '" + good + "'\n", "line 1: token 'a': rights is missing"},
      {"[[token]]\nname = 'a'\nsha256 = '" + good.substr(1) + "'\n",
       "line 3: token 'a': " + digest},
      {"[[token]]\nname = 'a'\nsha256 = 'hunter2'\n", "line 3: token 'a': " + digest},
      {"[[token]]\nname = 'a'\nsha256 = 7\n", "line 3: token 'a': " + digest},
      {"[[token]]\nname = 'a'\nrights = 'lock'\n",
       "line 3: token 'a': rights must be a list of texts"},
      {"[[token]]\nname = 'a'\nrights = [1]\n",
       "line 3: token 'a': rights must be a list of texts"},
      {"[[token]]\nname = 'a'\nrights = ['reed']\n",
       "line 3: token 'a': unknown right (did you mean read?)"},
      {"[[token]]\nkeys = []\n", "line 2: " + keys},
      {"[[token]]\nkeys = ['']\n", "line 2: " + keys},
      {"[[token]]\nkeys = 'a/'\n", "line 2: " + keys},
      {"[[token]]\nkeys = [1]\n", "line 2: " + keys},
      {"[[token]]\nexpires = '2027-01-01'\n", "line 2: " + expires},
      {"[[token]]\nexpires = 2027-01-01T00:00:00\n", "line 2: " + expires},
      {"[[token]]\nexpires = 2027-13-01\n", "line 2: not valid TOML"},
      {"[[token]]\nsecret = 'hunter2'\n", "line 2: unknown member of [[token]]"},
      {"[[token]]\nright = []\n", "line 2: unknown member of [[token]] (did you mean rights?)"},
      {"[[token]]\ncn = 'a'\n", "line 2: unknown member of [[token]]"},
      {"[[certificate]]\nsha256 = 'a'\n", "line 2: unknown member of [[certificate]]"},
      {"[[certificate]]\nname = 'a'\nrights = []\n",
       "line 1: certificate 'a': cn or san is missing"},
      {"[[certificate]]\ncn = ''\n", "line 2: cn must be text without control characters"},
      {"[[certificate]]\ncn = 'a'\nsan = 'b'\n", "line 3: give cn or san, not both"},
      {token_table("s") + token_table("s"), "line 5: the sha256 of line 1 again"},
      {"[[certificate]]\nname = 'a'\ncn = 'x'\nrights = []\n"
       "[[certificate]]\nname = 'b'\ncn = 'x'\nrights = []\n",
       "line 5: the certificate of line 1 again"},
  };
  for (const auto& [text, error] : cases) EXPECT_EQ(error_of(text), error) << text;
}

// A secret may stand in the wrong place: as a value, or, without its quotes, as a name.
TEST(AccessFileTest, AnUnknownMemberIsNotQuoted) {
  for (const std::string where :
       {"hunter2 = 'hunter2'\n", "[hunter2]\n", "[[hunter2]]\n", "[[token]]\nhunter2 = 'a'\n",
        "[[token]]\nname = 'a'\nsecret = 'hunter2'\n",
        "[[token]]\nname = 'a'\nrights = ['hunter2']\n",
        "[[token]]\nname = 'a'\nhunter2.hunter2 = 'hunter2'\n", "[[certificate]]\n'hunter2' = 1\n",
        "[[token.hunter2]]\n", "[[token]]\nname = 'hunter2\n", "[[token]]\nname.hunter2 = 1\n"}) {
    const std::string error = error_of(where);
    EXPECT_TRUE(error.starts_with("line ")) << error;
    EXPECT_EQ(error.find("hunter2"), std::string::npos) << error;
  }
}

class AccessFileBeside : public testing::Test {
 protected:
  std::string error_with(const Options& options, const std::string& text) const {
    config::FakeEnvironment machine;
    machine.files["f"].text = text;
    const std::array shared{options.secret, options.second_secret};
    return read_access_file(options, shared, machine.environment()).error;
  }
};

TEST_F(AccessFileBeside, CertificatesNeedAnAuthorityOfClients) {
  const std::string text = "[[certificate]]\nname = 'a'\ncn = 'x'\nrights = []\n";
  Options options;
  options.access = "f";
  EXPECT_EQ(error_with(options, text),
            "--access is 'f': certificate 'a' needs --tls-client-ca: nobody is asked for "
            "certificates");
  options.tls_client_ca = "ca";
  EXPECT_EQ(error_with(options, text), "");
}

TEST_F(AccessFileBeside, ASecretIsOneTokensOnly) {
  Options options;
  options.access = "f";
  options.secret = "first";
  options.second_secret = "second";
  EXPECT_EQ(error_with(options, token_table("third")), "");
  for (const char* const secret : {"first", "second"}) {
    EXPECT_EQ(error_with(options, token_table(secret)),
              "--access is 'f': token 'billing' has the secret of --auth-token or "
              "--auth-token-file");
  }
}

TEST_F(AccessFileBeside, AFileThatIsNotThereIsAnError) {
  Options options;
  options.access = "g";
  EXPECT_TRUE(error_with(options, "").starts_with("--access is 'g': it cannot be read: "));
  EXPECT_EQ(error_with({}, ""), "");
}

}  // namespace
}  // namespace lockd
