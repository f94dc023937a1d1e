// Who is found by what they show, for how long, and what a replacement changes.
#include "server/access/access.h"

#include <gtest/gtest.h>

#include <string>

namespace lockd {
namespace {

using namespace std::chrono_literals;

constexpr Permit::Expiry kNoon{std::chrono::sys_days{std::chrono::year(2027) / 1 / 1} + 12h};

Options with_file() {
  Options options;
  options.access = "f";
  return options;
}

Permit token(const std::string& name, const std::string& secret, Rights rights = {}) {
  return {.name = name,
          .rights = rights,
          .proof = Permit::Proof::token,
          .shown = std::string(bytes_of(sha256(secret)))};
}

Permit certificate(const std::string& name, const std::string& shown, Rights rights = {}) {
  return {.name = name, .rights = rights, .proof = Permit::Proof::certificate, .shown = shown};
}

TEST(AccessTest, ASecretFindsItsToken) {
  Access access(with_file());
  EXPECT_TRUE(access.asks_for_token());
  access.replace({.permits = {token("a", "s1"), token("b", "s2"), token("a", "s3")}}, kNoon);
  EXPECT_EQ(access.find("s1", kNoon)->name, "a");
  EXPECT_EQ(access.find("s2", kNoon)->name, "b");
  EXPECT_EQ(access.find("s3", kNoon)->name, "a");
  for (const char* const wrong : {"", "s", "s1 ", "S1", "s4"}) {
    EXPECT_EQ(access.find(wrong, kNoon), nullptr) << wrong;
  }
  // Nor is the digest itself a secret that opens anything.
  EXPECT_EQ(access.find(hex_of(sha256("s1")), kNoon), nullptr);
  EXPECT_EQ(access.find(bytes_of(sha256("s1")), kNoon), nullptr);
}

TEST(AccessTest, TheSharedTokenIsNamedDefault) {
  Options options;
  options.secret = "first";
  options.second_secret = "second";
  const Access access(options);
  for (const char* const secret : {"first", "second"}) {
    const PermitPtr permit = access.find(secret, kNoon);
    ASSERT_NE(permit, nullptr);
    EXPECT_EQ(permit->name, "default");
    EXPECT_EQ(permit->rights, Rights::all());
  }
}

TEST(AccessTest, DefaultIsAdminUntilSomebodyIsByName) {
  Options options = with_file();
  options.secret = "shared";
  Access access(options);
  const auto default_may_admin = [&](std::vector<Permit> permits) {
    access.replace({.shared = {"shared"}, .permits = std::move(permits)}, kNoon);
    return access.find("shared", kNoon)->may(Right::admin);
  };
  const Rights all = Rights::all();
  Permit expired = token("old", "s", all);
  expired.expires = kNoon - 1h;
  EXPECT_TRUE(default_may_admin({}));
  EXPECT_TRUE(default_may_admin({token("a", "s", all.without(Right::admin))}));
  EXPECT_FALSE(default_may_admin({token("a", "s", all)}));
  EXPECT_FALSE(default_may_admin({certificate("a", by_common_name("x"), all)}));
  EXPECT_FALSE(default_may_admin({expired}));
  EXPECT_TRUE(access.find("shared", kNoon)->may(Right::read));
}

TEST(AccessTest, WhoIsAskedForNothingIsAdminHereOnly) {
  const Access access((Options()));
  EXPECT_FALSE(access.asks_for_token());
  const Peer here{.is_loopback = true};
  const Peer elsewhere{};
  EXPECT_EQ(access.permit_for(here, false)->rights, Rights::all());
  const Rights all_but_admin = Rights::all().without(Right::admin);
  EXPECT_EQ(access.permit_for(here, true)->rights, all_but_admin);
  EXPECT_EQ(access.permit_for(elsewhere, false)->rights, all_but_admin);
  EXPECT_EQ(access.permit_for(elsewhere, true)->rights, all_but_admin);
}

TEST(AccessTest, WithoutAFileACertificateIsProofOfEverything) {
  Options options;
  options.tls_client_ca = "ca";
  const Access access(options);
  EXPECT_FALSE(access.looks_at_certificates());
  EXPECT_EQ(access.permit_for({}, false)->rights, Rights::all());
}

TEST(AccessTest, WithAFileWhoHasShownNothingHasNothing) {
  const Access access(with_file());
  EXPECT_EQ(access.permit_for({.is_loopback = true}, false)->rights, Rights());
}

TEST(AccessTest, AnEmptyFileOpensNothing) {
  Access access(with_file());
  access.replace({}, kNoon);
  EXPECT_TRUE(access.asks_for_token());
  EXPECT_EQ(access.find("", kNoon), nullptr);
}

TEST(AccessTest, ACertificateIsFoundByAnyOfItsNamesExactly) {
  Options options = with_file();
  options.tls_client_ca = "ca";
  Access access(options);
  access.replace({.permits = {certificate("deployer", by_common_name("deployer")),
                              certificate("host", by_alternative_name("a.example"))}},
                 kNoon);
  EXPECT_TRUE(access.looks_at_certificates());
  EXPECT_FALSE(access.asks_for_token());
  EXPECT_EQ(access.find({.common_names = {"x", "deployer"}}, kNoon)->name, "deployer");
  EXPECT_EQ(access.find({.alternative_names = {"b", "a.example"}}, kNoon)->name, "host");
  const CertificateNames strangers[] = {
      {},
      {.common_names = {"a.example"}},
      {.alternative_names = {"deployer"}},
      {.common_names = {"Deployer", "deployer ", std::string("deployer\0x", 10)}},
      {.alternative_names = {"b.a.example", "A.example"}},
  };
  for (const CertificateNames& stranger : strangers) {
    EXPECT_EQ(access.find(stranger, kNoon), nullptr);
  }
  access.replace({.permits = {token("a", "s")}}, kNoon);
  EXPECT_TRUE(access.asks_for_token());
}

TEST(AccessTest, AReplacementIsSeenByThoseWhoAreIn) {
  Access access(with_file());
  const Rights both = Rights().with(Right::lock).with(Right::read);
  access.replace({.permits = {token("a", "s1", both), token("b", "s2", both)}}, kNoon);
  const PermitPtr a = access.find("s1", kNoon);
  const PermitPtr b = access.find("s2", kNoon);
  const std::uint64_t before = access.generation();

  access.replace({.permits = {token("a", "s1", Rights().with(Right::read))}}, kNoon);
  EXPECT_NE(access.generation(), before);
  ASSERT_NE(access.current(a, kNoon), nullptr);
  EXPECT_FALSE(access.current(a, kNoon)->may(Right::lock));
  EXPECT_EQ(access.current(b, kNoon), nullptr);
  EXPECT_TRUE(a->may(Right::lock)) << "what was given does not change by itself";
}

TEST(AccessTest, WhoCameByTheSharedTokenGoesOnWithoutIt) {
  Options options;
  options.secret = "first";
  Access access(options);
  const PermitPtr permit = access.find("first", kNoon);
  access.replace({.shared = {"second"}}, kNoon);
  EXPECT_EQ(access.find("first", kNoon), nullptr);
  ASSERT_NE(access.current(permit, kNoon), nullptr);
  EXPECT_EQ(access.current(permit, kNoon)->name, "default");
}

TEST(AccessTest, WhatHasExpiredIsGone) {
  Access access(with_file());
  Permit first = token("a", "s1");
  first.expires = kNoon;
  Permit second = token("b", "s2");
  second.expires = kNoon + 1h;
  access.replace({.permits = {first, second, token("c", "s3")}}, kNoon - 1h);
  const std::uint64_t before = access.generation();
  const PermitPtr permit = access.find("s1", kNoon - 1ms);
  ASSERT_NE(permit, nullptr);
  access.look_for_expired(kNoon - 1ms);
  EXPECT_EQ(access.generation(), before);

  access.look_for_expired(kNoon);
  EXPECT_EQ(access.generation(), before + 1);
  EXPECT_EQ(access.find("s1", kNoon), nullptr);
  EXPECT_EQ(access.current(permit, kNoon), nullptr);
  EXPECT_NE(access.find("s2", kNoon), nullptr);
  access.look_for_expired(kNoon + 1s);
  EXPECT_EQ(access.generation(), before + 1) << "once for each";

  access.look_for_expired(kNoon + 1h);
  EXPECT_EQ(access.generation(), before + 2);
  EXPECT_EQ(access.find("s2", kNoon + 1h), nullptr);
  EXPECT_NE(access.find("s3", kNoon + 1h), nullptr);
}

TEST(AccessTest, ACertificateExpiresToo) {
  Options options = with_file();
  options.tls_client_ca = "ca";
  Access access(options);
  Permit permit = certificate("a", by_common_name("x"));
  permit.expires = kNoon;
  access.replace({.permits = {permit}}, kNoon - 1h);
  EXPECT_NE(access.find({.common_names = {"x"}}, kNoon - 1s), nullptr);
  EXPECT_EQ(access.find({.common_names = {"x"}}, kNoon), nullptr);
}

TEST(WhoAmI, SaysWhatIsKnown) {
  const Peer peer{.address = "10.0.0.7:5", .is_tls = true};
  EXPECT_EQ(whoami_json(Permit{.rights = Rights::all()}, peer),
            R"({"rights":["lock","signal","read","admin"],"peer":"10.0.0.7:5","tls":true})");
  Permit permit = token("billing", "s", Rights().with(Right::lock));
  permit.prefixes = {"billing/"};
  permit.expires = kNoon;
  EXPECT_EQ(whoami_json(permit, {.address = "[::1]:5"}),
            R"({"name":"billing","rights":["lock"],"keys":["billing/"],)"
            R"("expires":"2027-01-01T12:00:00Z","peer":"[::1]:5","tls":false})");
}

}  // namespace
}  // namespace lockd
