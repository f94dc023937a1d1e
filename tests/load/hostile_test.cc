// Peers that misbehave, many at once, beside one that does not: it must not notice.
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>

#include "load/honest_clients.h"
#include "load/scale.h"
#include "load/swarm.h"
#include "support/server_process.h"

namespace lockd {
namespace {

// The observer and the two honest clients.
const std::string kOthersLeft = "{\"connections\":3,";

void expect_others_left(LineClient& observer) {
  const std::string stats = await_stats(observer, kOthersLeft);
  EXPECT_TRUE(stats.starts_with("ok " + kOthersLeft)) << stats.substr(0, 1000);
}

TEST(Hostile, PortScanners) {
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  const HonestClients honest(server, {.attack = "hostile peers"});
  expect_others_left(observer);
  const std::size_t descriptors = server.descriptors();
  for (std::size_t i = 0; i < scaled(2000); ++i) {
    LineClient knocks = server.connect();
    LineClient kicks = server.connect();
    knocks.close();
    kicks.reset();
  }
  expect_others_left(observer);
  honest.await_rounds(10);
  EXPECT_LE(server.await_descriptors(descriptors), descriptors);
}

TEST(Hostile, Garbage) {
  const ServerProcess server({"--threads", "4"});
  LineClient observer = server.connect();
  const HonestClients honest(server, {.attack = "hostile peers"});
  std::minstd_rand random(20'250'301);
  std::string garbage(64 * 1024, '\0');
  Swarm vandals(server.port());
  ASSERT_TRUE(vandals.connect(scaled(200)));
  for (std::size_t i = 0; i < vandals.size(); ++i) {
    for (char& c : garbage) c = static_cast<char>(random() >> 8);
    vandals.send(i, garbage);  // the server need not take all of it
  }
  for (std::size_t i = 0; i < vandals.size(); ++i) {
    ASSERT_EQ(vandals.read_line(i), "error") << i;
    ASSERT_EQ(vandals.read_line(i), kEnd) << i;
  }
  expect_others_left(observer);
  honest.await_rounds(10);
}

}  // namespace
}  // namespace lockd
