// What the tests of durability have in common: servers on a journal, faults, and lives that end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <latch>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "durability/witness.h"
#include "support/server_process.h"

namespace lockd {

// The flags of a server that keeps a journal there.
std::vector<std::string> durable(const std::string& directory, std::vector<std::string> flags = {});

// A sanitizer wants to be the first library of a process, and so does fault_shim: under a sanitizer
// there are no faults, and tests that need them skip themselves.
bool has_faults();
// The environment of a server with faults: "NAME=value" of LOCKD_FAULT_NAME, see fault_shim.cc.
std::vector<std::string> faults(std::vector<std::string> settings);

// Whether a server has said that.
testing::AssertionResult says(const std::string& log, std::string_view what);

// Fewer under a sanitizer, which makes everything slow, and when tests are to be short.
int scaled(int count);

// Several witnesses, and the lives of a server that they see.
class Crowd {
 public:
  explicit Crowd(std::uint32_t seed);

  // They verify, and work; then, after `life` of that, the server is killed.
  void live(ServerProcess& server, std::chrono::milliseconds life);
  // They verify, and work, until the server ends by itself. Its exit status.
  int outlive(ServerProcess& server);
  // They verify, and leave.
  void verify(ServerProcess& server);

  // Fails the test if anything was not as it must be.
  void expect_no_complaints() const;
  Instant last_success() const;
  std::size_t grants() const;

 private:
  std::vector<std::jthread> begin(const ServerProcess& server, std::latch& verified);

  std::vector<Witness> witnesses_;
  unsigned lives_ = 0;
};

}  // namespace lockd
