// What the tests of durability have in common: servers on a journal, faults, and lives that end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/line_client.h"
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

using Instant = std::chrono::steady_clock::time_point;

// A client with keys of its own: takes, renews and releases them, and holds the next server to what
// the last one acknowledged. Used by one thread at a time.
class Keeper {
 public:
  explicit Keeper(std::string name) : name_(std::move(name)) {}

  // Each hold renews, and nothing that was released does. False if the server ended meanwhile.
  bool verify(LineClient& client);
  // Until the server ends or refuses.
  void work(LineClient& client);

  std::size_t grants() const { return grants_; }
  // When the last request was sent that the server answered with ok.
  Instant last_success() const { return last_success_; }

 private:
  // False if there is no answer, or the server refuses.
  bool ask(LineClient& client, std::string_view command, const std::string& key,
           const std::string& argument);

  const std::string name_;
  std::map<std::string, std::string> held_;      // tokens, by key
  std::map<std::string, std::string> released_;  // tokens, by key
  std::string reply_;
  std::size_t grants_ = 0;
  std::size_t keys_ = 0;
  Instant last_success_{};
};

// Several clients, and the lives of a server that they see.
class Crowd {
 public:
  Crowd();

  // They verify, and work; then, after `life` of that, the server is killed.
  void live(ServerProcess& server, std::chrono::milliseconds life);
  // They verify, and work, until the server ends by itself. Its exit status.
  int outlive(ServerProcess& server);
  // They verify, and leave.
  void verify(ServerProcess& server);

  Instant last_success() const;
  std::size_t grants() const;

 private:
  std::vector<std::jthread> begin(const ServerProcess& server, std::latch& verified);

  std::vector<Keeper> keepers_;
};

}  // namespace lockd
