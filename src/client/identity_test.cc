#include "client/identity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"

namespace lockd::client {
namespace {

TEST(Identity, IsUserHostAndProcess) {
  const std::string name = default_name();
  EXPECT_TRUE(is_name(name)) << name;
  EXPECT_NE(name.find('@'), std::string::npos);
  EXPECT_TRUE(name.ends_with(':' + std::to_string(::getpid()))) << name;
}

TEST(Identity, TheNoteIsTheProgramWithoutItsPathAndArguments) {
  EXPECT_EQ(default_note(), "client_test");
}

TEST(Identity, WhateverTheSystemSaysIsMadeFit) {
  EXPECT_EQ(fit_for_server("a\nb\x7f\xff\x01ü"), "a?b???ü");
  EXPECT_EQ(fit_for_server(std::string(255, 'x') + "ü"), std::string(255, 'x') + "?");
  EXPECT_EQ(fit_for_server(std::string(1000, 'x')), std::string(256, 'x'));
  EXPECT_EQ(fit_for_server(""), "");
}

}  // namespace
}  // namespace lockd::client
