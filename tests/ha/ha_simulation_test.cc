// Leader and standbys on the model of etcd, by seeds; and faults that must be found.
//
// LOCKD_HA_SEED=42 runs that seed alone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "base/testing/test_size.h"
#include "crash/violation.h"
#include "ha/cluster_world.h"

namespace lockd::ha_test {
namespace {

constexpr std::uint64_t kSeeds = 160;
constexpr std::uint64_t kOperations = 100'000;

// The violation's text; empty when there was none.
std::string run(const WorldOptions& options, WorldFigures* figures) {
  try {
    *figures += ClusterWorld(options).run();
  } catch (const crash::Violation& violation) {
    return violation.what();
  }
  return {};
}

TEST(HaSimulation, NothingIsViolated) {
  const char* const asked = std::getenv("LOCKD_HA_SEED");
  const std::uint64_t first = asked == nullptr ? 1 : std::stoull(asked);
  const std::uint64_t slowness = test_divisor(20, 10);
  const std::uint64_t last = asked == nullptr ? kSeeds / slowness : first;
  WorldFigures figures;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const std::string violation = run({.seed = seed, .operations = kOperations}, &figures);
    ASSERT_EQ(violation, "") << "seed " << seed;
  }
  std::cout << figures << std::endl;
  if (asked != nullptr) return;
  EXPECT_GE(figures.told, 5'000'000 / slowness);
  for (const std::uint64_t happened :
       {figures.settled, figures.not_leader, figures.kills, figures.stops, figures.hand_overs,
        figures.outages, figures.compared, figures.terms, figures.snapshots, figures.resends,
        figures.resolved, figures.lapses, figures.repeated, figures.compactions}) {
    EXPECT_GT(happened, 0);
  }
}

}  // namespace
}  // namespace lockd::ha_test
