#include "server/access/permit.h"

#include <gtest/gtest.h>

namespace lockd {
namespace {

using namespace std::chrono_literals;

TEST(Rights, AdminIsAllOfThem) {
  for (const Right right : kRights) EXPECT_TRUE(Rights().with(Right::admin).allow(right));
  EXPECT_FALSE(Rights::all().without(Right::admin).allow(Right::admin));
  EXPECT_TRUE(Rights::all().without(Right::admin).allow(Right::read));
}

TEST(Rights, OneIsNotAnother) {
  const Right plain[] = {Right::lock, Right::signal, Right::read};
  for (const Right has : plain) {
    for (const Right needed : kRights) {
      EXPECT_EQ(Rights().with(has).allow(needed), has == needed)
          << word_of(has) << ' ' << word_of(needed);
    }
    EXPECT_TRUE(Rights().with(has).allow(Right::none));
    EXPECT_EQ(Rights().with(has).allow(Right::read_or_lock), has != Right::signal);
  }
  EXPECT_TRUE(Rights().allow(Right::none));
  EXPECT_FALSE(Rights().allow(Right::read_or_lock));
}

TEST(Rights, HaveWords) {
  for (const Right right : kRights) EXPECT_EQ(right_of(word_of(right)), right);
  EXPECT_FALSE(right_of(""));
  EXPECT_FALSE(right_of("Lock"));
  EXPECT_FALSE(right_of("read_or_lock"));
}

TEST(PermitTest, WithoutPrefixesAllKeysAreIts) {
  const Permit permit{.name = "all", .rights = Rights::all()};
  EXPECT_FALSE(permit.is_confined());
  EXPECT_TRUE(permit.may_touch("anything"));
  EXPECT_TRUE(permit.may_listen(">"));
}

TEST(PermitTest, KeysBeginWithAPrefix) {
  const Permit permit{.prefixes = {"billing/", "shared.invoice"}};
  EXPECT_TRUE(permit.is_confined());
  for (const char* const key : {"billing/", "billing/1", "shared.invoice", "shared.invoices"}) {
    EXPECT_TRUE(permit.may_touch(key)) << key;
  }
  for (const char* const key : {"", "billing", "Billing/1", "a/billing/1", "shared.", "x"}) {
    EXPECT_FALSE(permit.may_touch(key)) << key;
  }
}

TEST(PermitTest, APatternBeginsWithAPrefixBeforeItsFirstWildcard) {
  const Permit permit{.prefixes = {"billing.", "shared.invoice"}};
  for (const char* const pattern :
       {"billing.*", "billing.>", "billing.eu.*.paid", "billing.eu", "shared.invoice.*"}) {
    EXPECT_TRUE(permit.may_listen(pattern)) << pattern;
  }
  for (const char* const pattern :
       {"*", ">", "*.billing.", "billing", "shared.*", "shared.>", "shared.*.invoice", "x"}) {
    EXPECT_FALSE(permit.may_listen(pattern)) << pattern;
  }
}

TEST(PermitTest, HearsAllOfWhatHasFewerRightsOrLongerPrefixes) {
  const Permit all{.rights = Rights::all()};
  const Permit listener{.rights = Rights().with(Right::read).with(Right::signal)};
  const Permit reader{.rights = Rights().with(Right::read)};
  const Permit billing{.rights = Rights().with(Right::read), .prefixes = {"billing/"}};
  const Permit paid{.rights = Rights().with(Right::read), .prefixes = {"billing/paid", "billing/"}};
  const Permit both{.rights = Rights().with(Right::read), .prefixes = {"billing/", "shop/"}};
  EXPECT_TRUE(all.hears_all_of(all));
  EXPECT_TRUE(all.hears_all_of(billing));
  EXPECT_TRUE(listener.hears_all_of(all)) << "neither `lock` nor `admin` tells anybody anything";
  EXPECT_FALSE(reader.hears_all_of(all));
  EXPECT_TRUE(reader.hears_all_of(billing));
  EXPECT_FALSE(billing.hears_all_of(reader));
  EXPECT_TRUE(billing.hears_all_of(paid));
  EXPECT_TRUE(both.hears_all_of(billing));
  EXPECT_FALSE(billing.hears_all_of(both));
}

TEST(PermitTest, ExpiresWhenItSays) {
  const Permit::Expiry expiry{std::chrono::sys_days{std::chrono::year(2027) / 1 / 1}};
  const Permit permit{.expires = expiry};
  EXPECT_FALSE(permit.has_expired(expiry - 1ms));
  EXPECT_TRUE(permit.has_expired(expiry));
  EXPECT_FALSE(Permit().has_expired(expiry));
  EXPECT_EQ(expiry_text(expiry), "2027-01-01");
  EXPECT_EQ(expiry_text(expiry + 12h + 30min + 1s), "2027-01-01T12:30:01Z");
}

TEST(PermitTest, SaysWhatIsLacking) {
  const Permit permit{.name = "billing", .prefixes = {"billing/", "shop/"}};
  EXPECT_EQ(permit.lacks(Right::lock), "this needs the right `lock`, which 'billing' lacks");
  EXPECT_EQ(permit.lacks(Right::read_or_lock),
            "this needs the right `read` or `lock`, which 'billing' lacks");
  EXPECT_EQ(permit.is_confined_to(),
            "'billing' has its rights for what begins with 'billing/' or 'shop/'");
  const Permit everybody{.rights = Rights::all().without(Right::admin)};
  EXPECT_EQ(
      everybody.lacks(Right::admin),
      "this needs the right `admin`, which without auth tokens only clients on this machine have");
}

TEST(PermitTest, ManyPrefixesAreNotAllSaid) {
  Permit permit{.name = "n"};
  for (int i = 0; i < 10; ++i) permit.prefixes.push_back("p" + std::to_string(i));
  EXPECT_TRUE(permit.is_confined_to().ends_with("'p7' and 2 more")) << permit.is_confined_to();
}

}  // namespace
}  // namespace lockd
