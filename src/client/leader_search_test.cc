#include "client/leader_search.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "lockd/client/client.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

using Time = BootClock::time_point;

constexpr Time kSearchStart{1000s};

std::shared_ptr<Cluster> cluster_of(const std::vector<Address>& addresses) {
  auto made = Cluster::make(addresses, {});
  EXPECT_TRUE(made) << describe(made);
  return *made;
}

std::shared_ptr<Cluster> three() { return cluster_of({{"a", 1}, {"b", 2}, {"c", 3}}); }

Status refused_connection() { return {Outcome::unreachable, "refused"}; }
Status not_leader(std::string leader = {}) {
  return {.outcome = Outcome::not_leader, .leader = std::move(leader)};
}

TEST(Cluster, IsOfDifferentServersAndNotTooMany) {
  EXPECT_EQ(Cluster::make({}, {}).outcome, Outcome::invalid);
  const std::vector<Address> twice{{"a", 1}, {"b", 2}, {"a", 1}};
  EXPECT_EQ(Cluster::make(twice, {}).detail, "a:1 is given twice");
  std::vector<Address> many;
  while (many.size() < kClusterSizeMax) many.push_back({"a", std::uint16_t(many.size() + 1)});
  EXPECT_TRUE(Cluster::make(many, {}));
  many.push_back({"b", 1});
  EXPECT_EQ(Cluster::make(many, {}).outcome, Outcome::invalid);
}

TEST(LeaderSearch, BeginsWithWhoLedLast) {
  const auto cluster = three();
  EXPECT_EQ(LeaderSearch(cluster).here(), 0U);
  LeaderSearch search(cluster);
  search.found(2);
  EXPECT_EQ(LeaderSearch(cluster).here(), 2U);
}

TEST(LeaderSearch, GoesToEachOnceARound) {
  LeaderSearch search(three());
  for (const std::size_t expected : {0U, 1U, 2U, 0U, 1U, 2U, 0U}) {
    EXPECT_EQ(search.here(), expected);
    search.move_on(refused_connection(), kSearchStart);
  }
}

TEST(LeaderSearch, FollowsToAnAddressThatWasGiven) {
  LeaderSearch search(three());
  search.move_on(not_leader("c:3"), kSearchStart);
  EXPECT_EQ(search.here(), 2U);
  EXPECT_EQ(search.not_before(), Time{});
}

TEST(LeaderSearch, NeverFollowsToOneThatWasNot) {
  for (const char* stranger : {"d:4", "a:2", "b", "not an address", ":", "\x1b[31m"}) {
    LeaderSearch search(three());
    search.move_on(not_leader(stranger), kSearchStart);
    EXPECT_EQ(search.here(), 1U) << stranger;
    EXPECT_NE(search.verdict().detail.find("was named, and was not given"), std::string::npos)
        << search.verdict().detail;
    EXPECT_EQ(search.verdict().detail.find('\x1b'), std::string::npos);
  }
}

// Until they notice, followers name the leader that is gone.
TEST(LeaderSearch, IsNotKeptFromTheThirdByTwoWhoNameEachOther) {
  LeaderSearch search(three());
  search.move_on(not_leader("b:2"), kSearchStart);
  EXPECT_EQ(search.here(), 1U);
  search.move_on(not_leader("a:1"), kSearchStart);
  EXPECT_EQ(search.here(), 2U);
}

TEST(LeaderSearch, GoesToWhomSomebodyElseHasFound) {
  const auto cluster = three();
  LeaderSearch search(cluster);
  cluster->set_leader(2);
  search.move_on(refused_connection(), kSearchStart);
  EXPECT_EQ(search.here(), 2U);
}

TEST(LeaderSearch, PausesBetweenRoundsEverLonger) {
  LeaderSearch search(three());
  for (const auto pause : {0ms, 10ms, 20ms, 40ms, 80ms, 160ms, 200ms, 200ms}) {
    search.move_on(refused_connection(), kSearchStart);
    search.move_on(not_leader(), kSearchStart);
    search.move_on(refused_connection(), kSearchStart);
    EXPECT_EQ(search.not_before(), kSearchStart + pause);
  }
  search.found(1);
  EXPECT_EQ(search.not_before(), Time{});
}

TEST(LeaderSearch, WaitsForTheOnlyServerLongerAndLonger) {
  LeaderSearch search(cluster_of({{"a", 1}}));
  for (const auto pause : {0ms, 50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    search.move_on(refused_connection(), kSearchStart);
    EXPECT_EQ(search.here(), 0U);
    EXPECT_EQ(search.not_before(), kSearchStart + pause);
  }
}

TEST(LeaderSearch, IsHopelessWhenNoWaitingHelps) {
  LeaderSearch search(three());
  search.move_on({Outcome::untrusted}, kSearchStart);
  search.move_on({Outcome::unauthorized}, kSearchStart);
  EXPECT_FALSE(search.is_hopeless());
  search.move_on({Outcome::untrusted}, kSearchStart);
  EXPECT_TRUE(search.is_hopeless());

  LeaderSearch other(three());
  other.move_on({Outcome::untrusted}, kSearchStart);
  other.move_on(not_leader(), kSearchStart);
  other.move_on({Outcome::untrusted}, kSearchStart);
  EXPECT_FALSE(other.is_hopeless());
}

TEST(LeaderSearch, TellsTheFailureThatSaysMost) {
  LeaderSearch search(three());
  search.move_on(refused_connection(), kSearchStart);
  EXPECT_EQ(search.verdict().outcome, Outcome::unreachable);
  EXPECT_EQ(search.verdict().detail, "no leader was found among a:1, b:2, c:3: refused");
  search.move_on(not_leader(), kSearchStart);
  search.move_on(refused_connection(), kSearchStart);
  EXPECT_EQ(search.verdict().outcome, Outcome::not_leader);
  search.move_on({Outcome::unauthorized, "the auth token is wrong"}, kSearchStart);
  search.move_on(not_leader(), kSearchStart);
  EXPECT_EQ(search.verdict().outcome, Outcome::unauthorized);
}

}  // namespace
}  // namespace lockd::client
