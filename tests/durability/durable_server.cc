#include "durability/durable_server.h"

#include <algorithm>

#include "base/testing/test_size.h"

namespace lockd {
namespace {

constexpr unsigned kWitnesses = 6;
// So often they begin with new shared keys: some of the old ones are held by nobody who knows.
constexpr unsigned kLivesPerName = 4;

}  // namespace

std::vector<std::string> durable(const std::string& directory, std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"--wal", directory, "--max-locks", "1000000"});
  return flags;
}

bool has_faults() {
#ifdef LOCKD_FAULT_SHIM
  return true;
#else
  return false;
#endif
}

std::vector<std::string> faults(std::vector<std::string> settings) {
  for (std::string& setting : settings) setting.insert(0, "LOCKD_FAULT_");
#ifdef LOCKD_FAULT_SHIM
  settings.emplace_back("LD_PRELOAD=" LOCKD_FAULT_SHIM);
#endif
  return settings;
}

testing::AssertionResult says(const std::string& log, std::string_view what) {
  if (log.find(what) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << what << "' is not in the log:\n" << log;
}

int scaled(int count) { return std::max(count / static_cast<int>(test_divisor(8, 8)), 1); }

Crowd::Crowd(std::uint32_t seed) {
  for (unsigned i = 0; i < kWitnesses; ++i) witnesses_.emplace_back(i, seed + i);
}

void Crowd::live(ServerProcess& server, std::chrono::milliseconds life) {
  std::latch verified(kWitnesses);
  const std::vector<std::jthread> threads = begin(server, verified);
  verified.wait();
  std::this_thread::sleep_for(life);
  server.kill();
}

int Crowd::outlive(ServerProcess& server) {
  std::latch verified(kWitnesses);
  const std::vector<std::jthread> threads = begin(server, verified);
  return server.await_exit();
}

std::vector<std::jthread> Crowd::begin(const ServerProcess& server, std::latch& verified) {
  const std::string shared = "shared-" + std::to_string(lives_++ / kLivesPerName);
  std::vector<std::jthread> threads;
  for (Witness& witness : witnesses_) {
    threads.emplace_back([&, shared] {
      LineClient client = server.connect();
      // One that fails may be gone before everybody has come.
      const bool lives = client.connected() && witness.verify(client);
      verified.count_down();
      if (lives) witness.work(client, shared);
    });
  }
  return threads;
}

void Crowd::verify(ServerProcess& server) {
  for (Witness& witness : witnesses_) {
    LineClient client = server.connect();
    EXPECT_TRUE(witness.verify(client));
  }
}

void Crowd::expect_no_complaints() const {
  History history;
  for (const Witness& witness : witnesses_) {
    for (const std::string& complaint : witness.complaints()) ADD_FAILURE() << complaint;
    witness.testify(history);
  }
  EXPECT_EQ(history.contradiction(), "");
}

Instant Crowd::last_success() const {
  Instant last{};
  for (const Witness& witness : witnesses_) last = std::max(last, witness.last_success());
  return last;
}

std::size_t Crowd::grants() const {
  History history;
  for (const Witness& witness : witnesses_) witness.testify(history);
  return history.size();
}

}  // namespace lockd
