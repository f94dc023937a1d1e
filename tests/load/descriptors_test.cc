// A server that has no descriptors left: it refuses, does not spin, and recovers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "journal/testing/temporary_directory.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

using namespace std::chrono_literals;

struct Guests {
  std::vector<std::size_t> served;
  std::size_t refused = 0;
};

// Takes in answers until nothing has come for `quiet`.
void listen_to(Swarm& swarm, Guests& guests, std::chrono::milliseconds quiet) {
  while (const auto arrival = swarm.next(quiet)) {
    if (arrival->line == "ok") {
      guests.served.push_back(arrival->who);
    } else {
      EXPECT_TRUE(arrival->line == kEnd || arrival->line == kReset) << arrival->line;
      ++guests.refused;
    }
  }
}

// Until so many were served and refused, whichever come first, or for kPatience.
void await_guests(Swarm& swarm, Guests& guests, std::size_t served, std::size_t refused) {
  const auto deadline = Swarm::Clock::now() + Swarm::kPatience;
  while ((guests.served.size() < served || guests.refused < refused) &&
         Swarm::Clock::now() < deadline) {
    listen_to(swarm, guests, 50ms);
  }
}

// As soon as the server has noticed that somebody left.
LineClient connect_when_served(const ServerProcess& server) {
  const auto deadline = Swarm::Clock::now() + Swarm::kPatience;
  for (;;) {
    LineClient client = server.connect();
    if (client.ask(kPing) == "ok" || Swarm::Clock::now() > deadline) return client;
  }
}

void expect_no_spinning(const ServerProcess& server) {
  const auto before = server.cpu_time();
  std::this_thread::sleep_for(2s);
  const auto used = server.cpu_time() - before;
  std::printf("%lld ms of processor time in 2 s\n", static_cast<long long>(used.count()));
  EXPECT_LT(used, 1s);
}

// Again and again: what it takes to refuse must not be lost to the rush.
TEST(Descriptors, WithoutOneItRefusesAndRecovers) {
  // To look at an object's type, it opens a pipe; when it cannot, it takes the object for broken.
  if (kSanitized) GTEST_SKIP() << "the sanitizer itself needs descriptors";
  const ServerProcess server({"--threads", "4", "--read-timeout", "600", "--max-connections", "0"},
                             {.soft = 64, .hard = 64});
  for (int round = 0; round < 10; ++round) {
    Swarm crowd(server.port());
    Guests guests;
    ASSERT_TRUE(crowd.connect(150));  // many of them stay in the system's queue
    for (std::size_t i = 0; i < crowd.size(); ++i) crowd.send(i, kPing);
    await_guests(crowd, guests, 20, 5);
    EXPECT_GE(guests.refused, 5U) << "in round " << round;
    ASSERT_GE(guests.served.size(), 20U) << "in round " << round;
    EXPECT_LE(server.descriptors(), 64U);
    if (round == 0) expect_no_spinning(server);

    // Those who were let in are served as ever, and who leaves makes room.
    const std::size_t stays = guests.served.front();
    ASSERT_EQ(crowd.ask(stays, kPing), "ok");
    for (std::size_t i = 0; i < crowd.size(); ++i) {
      if (i != stays) crowd.close(i);
    }
    LineClient next = connect_when_served(server);
    ASSERT_EQ(next.ask(kPing), "ok") << "in round " << round;
    ASSERT_EQ(crowd.ask(stays, kPing), "ok");
    crowd.close(stays);
    await_stats(next, "{\"connections\":1,");
  }
}

TEST(Descriptors, AllThatAreAllowedAreUsed) {
  const ServerProcess server({"--threads", "2"}, {.soft = 64, .hard = 200});
  EXPECT_EQ(server.descriptor_limit(), 200U);
  Swarm crowd(server.port());
  ASSERT_TRUE(crowd.connect(100));
  for (std::size_t i = 0; i < crowd.size(); ++i) ASSERT_EQ(crowd.ask(i, kPing), "ok") << i;
}

// The newest segment of a journal; its names are in the order of its segments.
std::string newest_segment(const std::string& directory) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") newest = std::max(newest, entry.path().string());
  }
  return newest;
}

// Takes and gives back, many at once, until the journal has gone on to another segment.
void fill_a_segment(LineClient& client, const std::string& directory) {
  constexpr int kAtOnce = 500;
  const std::string before = newest_segment(directory);
  const std::string key(256, 'k');
  std::string acquires;
  for (int i = 0; i < kAtOnce; ++i) acquires += "sl\n" + key + "\n0 1000 1000\n";
  const auto deadline = Swarm::Clock::now() + Swarm::kPatience;
  while (newest_segment(directory) == before) {
    ASSERT_LT(Swarm::Clock::now(), deadline);
    client.send(acquires);
    std::string releases;
    for (int i = 0; i < kAtOnce; ++i) {
      const std::string reply = client.read_line();
      ASSERT_EQ(reply.substr(0, 3), "ok ");
      releases += "sr\n" + key + "\n" + reply.substr(3, 32) + "\n";
    }
    client.send(releases);
    for (int i = 0; i < kAtOnce; ++i) ASSERT_EQ(client.read_line(), "ok");
  }
}

// Strangers who connect and say nothing must not stop a journal at its next segment.
TEST(Descriptors, WithoutOneTheJournalGoesOnToItsNextSegment) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer itself needs descriptors";
  const TemporaryDirectory directory;
  const ServerProcess server({"--threads", "2", "--read-timeout", "600", "--max-connections", "0",
                              "--wal", directory.path()},
                             {.soft = 48, .hard = 48});
  LineClient client = server.connect();
  ASSERT_EQ(client.ask(kPing), "ok");
  Swarm strangers(server.port());
  Guests guests;
  ASSERT_TRUE(strangers.connect(100));
  for (std::size_t i = 0; i < strangers.size(); ++i) strangers.send(i, kPing);
  await_guests(strangers, guests, 10, 5);
  ASSERT_GE(guests.refused, 5U);
  for (int i = 0; i < 3; ++i) fill_a_segment(client, directory.path());
  EXPECT_EQ(client.ask(kPing), "ok");
  EXPECT_EQ(server.log().find("no new segment"), std::string::npos) << "there was a spare one";
}

}  // namespace
}  // namespace lockd
