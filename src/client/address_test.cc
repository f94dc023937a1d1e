#include "lockd/client/address.h"

#include <gtest/gtest.h>

namespace lockd::client {
namespace {

TEST(Address, IsReadAsPeopleWriteIt) {
  const struct {
    const char* text;
    Address address;
  } cases[] = {
      {"locks.example.com", {"locks.example.com", 6388}},
      {"locks.example.com:7000", {"locks.example.com", 7000}},
      {"10.0.0.1:1", {"10.0.0.1", 1}},
      {"10.0.0.1:65535", {"10.0.0.1", 65535}},
      {"::1", {"::1", 6388}},
      {"[::1]", {"::1", 6388}},
      {"[fe80::1]:7000", {"fe80::1", 7000}},
  };
  for (const auto& [text, address] : cases) {
    EXPECT_EQ(Address::parse(text), address) << text;
    EXPECT_EQ(Address::parse(address.to_string()), address) << address.to_string();
  }
}

TEST(Address, IsNoOtherText) {
  for (const char* text :
       {"", ":", ":7000", "host:", "host:0", "host:65536", "host:-1", "host:7x", "[::1", "[]",
        "[]:7000", "[::1]7000", "[::1]:", "a host", "host:7000 "}) {
    EXPECT_EQ(Address::parse(text), std::nullopt) << text;
  }
}

TEST(Address, IsWrittenWithBracketsWhereTheyAreNeeded) {
  EXPECT_EQ((Address{"::1", 7000}).to_string(), "[::1]:7000");
  EXPECT_EQ((Address{"host", 7000}).to_string(), "host:7000");
}

}  // namespace
}  // namespace lockd::client
