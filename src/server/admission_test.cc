#include "server/admission.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

namespace lockd {
namespace {

TEST(Admission, TheUnprovenWhoCameFirstMakesRoom) {
  Admission admission({.unproven = 2});
  std::array<Unproven, 4> peers;
  for (std::size_t i = 0; i < peers.size(); ++i) peers[i].session = i;
  EXPECT_FALSE(admission.await_proof(peers[0]));
  EXPECT_FALSE(admission.await_proof(peers[1]));
  const auto first = admission.await_proof(peers[2]);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->session, 0U);
  EXPECT_EQ(admission.unproven(), 2U);

  admission.forget(peers[0]);  // it made room already
  EXPECT_EQ(admission.unproven(), 2U);
  admission.forget(peers[1]);
  EXPECT_EQ(admission.unproven(), 1U);
  EXPECT_FALSE(admission.await_proof(peers[3]));
  EXPECT_EQ(admission.unproven(), 2U);
  for (Unproven& peer : peers) admission.forget(peer);
  EXPECT_EQ(admission.unproven(), 0U);
}

TEST(Admission, WithoutACapNobodyMakesRoom) {
  Admission admission(Admission::Caps{});
  std::vector<Unproven> peers(5000);
  for (Unproven& peer : peers) EXPECT_FALSE(admission.await_proof(peer));
  EXPECT_EQ(admission.unproven(), peers.size());
  for (Unproven& peer : peers) admission.forget(peer);
}

// Whoever makes room does so once, and the others stay: the count is exact.
TEST(Admission, CountsTheUnprovenOfManyThreadsExactly) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kEach = 2000;
  constexpr std::size_t kCap = 100;
  Admission admission({.unproven = kCap});
  std::vector<std::vector<Unproven>> peers(kThreads, std::vector<Unproven>(kEach));
  std::array<std::size_t, kThreads> made_room{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (Unproven& peer : peers[i]) {
        if (admission.await_proof(peer)) ++made_room[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admission.unproven(), kCap);
  EXPECT_EQ(made_room[0] + made_room[1] + made_room[2] + made_room[3], kThreads * kEach - kCap);
  for (auto& of_thread : peers) {
    for (Unproven& peer : of_thread) admission.forget(peer);
  }
  EXPECT_EQ(admission.unproven(), 0U);
}

}  // namespace
}  // namespace lockd
