#include "durability/durable_server.h"

#include <algorithm>

namespace lockd {
namespace {

constexpr unsigned kClients = 6;

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

bool Keeper::ask(LineClient& client, std::string_view command, const std::string& key,
                 const std::string& argument) {
  const Instant asked = std::chrono::steady_clock::now();
  reply_ = client.ask(request(command, key, argument));
  if (reply_.starts_with("ok")) last_success_ = asked;
  return !reply_.starts_with('<') && reply_ != "error_storage" && reply_ != "error_draining";
}

bool Keeper::verify(LineClient& client) {
  for (const auto& [key, token] : held_) {
    if (!ask(client, "n", key, token)) return false;
    EXPECT_EQ(reply_, "ok 1000") << key << " was acknowledged";
  }
  for (const auto& [key, token] : released_) {
    if (!ask(client, "n", key, token)) return false;
    EXPECT_EQ(reply_, "error") << key << " was released";
  }
  return true;
}

void Keeper::work(LineClient& client) {
  for (;;) {
    const std::string key = name_ + "-" + std::to_string(keys_++);
    if (!ask(client, "l", key, "0 1000")) return;
    const std::string token = token_of(reply_);
    ASSERT_NE(token, "") << reply_;
    ++grants_;
    if (keys_ % 2 == 0) {
      held_[key] = token;
      if (!ask(client, "n", key, token)) return;
      EXPECT_EQ(reply_, "ok 1000");
    } else {
      if (!ask(client, "r", key, token)) return;
      EXPECT_EQ(reply_, "ok");
      released_[key] = token;
    }
  }
}

Crowd::Crowd() {
  for (unsigned i = 0; i < kClients; ++i) keepers_.emplace_back("keeper-" + std::to_string(i));
}

void Crowd::live(ServerProcess& server, std::chrono::milliseconds life) {
  std::latch verified(kClients);
  const std::vector<std::jthread> threads = begin(server, verified);
  verified.wait();
  std::this_thread::sleep_for(life);
  server.kill();
}

int Crowd::outlive(ServerProcess& server) {
  std::latch verified(kClients);
  const std::vector<std::jthread> threads = begin(server, verified);
  return server.await_exit();
}

std::vector<std::jthread> Crowd::begin(const ServerProcess& server, std::latch& verified) {
  std::vector<std::jthread> threads;
  for (Keeper& keeper : keepers_) {
    threads.emplace_back([&] {
      LineClient client = server.connect();
      // One that fails may be gone before everybody has come.
      const bool lives = client.connected() && keeper.verify(client);
      verified.count_down();
      if (lives) keeper.work(client);
    });
  }
  return threads;
}

void Crowd::verify(ServerProcess& server) {
  for (Keeper& keeper : keepers_) {
    LineClient client = server.connect();
    EXPECT_TRUE(keeper.verify(client));
  }
}

Instant Crowd::last_success() const {
  Instant last{};
  for (const Keeper& keeper : keepers_) last = std::max(last, keeper.last_success());
  return last;
}

std::size_t Crowd::grants() const {
  std::size_t sum = 0;
  for (const Keeper& keeper : keepers_) sum += keeper.grants();
  return sum;
}

}  // namespace lockd
