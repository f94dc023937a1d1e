#include "journal/append_buffer.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "journal/testing/journal_fixture.h"

namespace lockd {
namespace {

std::vector<Record> records_in(const AppendBuffer::Taken& taken) {
  std::vector<Record> records;
  for (const Chunk& chunk : taken.chunks) {
    std::string_view payload = std::string_view(chunk.bytes).substr(kFrameHeaderSize);
    Event event{.type = Event::Type::ended};
    while (take_event(payload, &event)) records.push_back(record_of(event));
    EXPECT_TRUE(payload.empty());
  }
  return records;
}

TEST(AppendBuffer, WhatIsAppendedIsTakenOnceAndPositionsCountItsBytes) {
  AppendBuffer pending({}, 100);
  const Event first = granted("a", 1);
  const Event second = ended("a", 1);
  const Position after_first = pending.append(std::vector{first});
  EXPECT_EQ(after_first, 100 + record_of(first).size());
  const Position after_second = pending.append(std::vector{second, first});
  EXPECT_EQ(pending.size(), after_second - 100);
  AppendBuffer::Taken taken = pending.take(false);
  EXPECT_EQ(taken.end, after_second);
  ASSERT_EQ(taken.chunks.size(), 1U);
  EXPECT_EQ(taken.chunks[0].position, 100U);
  EXPECT_EQ(records_in(taken),
            (std::vector{record_of(first), record_of(second), record_of(first)}));
  EXPECT_EQ(pending.size(), 0U);
  EXPECT_TRUE(pending.take(false).chunks.empty());
  pending.give_back(std::move(taken.chunks));
  EXPECT_EQ(pending.append({}), after_second);
}

TEST(AppendBuffer, NoFrameIsTooLongAndAnAppendStaysTogether) {
  AppendBuffer pending({}, 0);
  const std::string key(kKeySizeMax, 'k');
  const std::vector<Event> some(1000, granted(key, 1, key));
  const std::size_t size = 1000 * record_of(some[0]).size();
  Position end = 0;
  for (int i = 0; i < 10; ++i) end = pending.append(some);
  EXPECT_EQ(end, 10 * size);
  const AppendBuffer::Taken taken = pending.take(false);
  ASSERT_EQ(taken.chunks.size(), 10U) << "two do not fit into one frame";
  Position position = 0;
  for (const Chunk& chunk : taken.chunks) {
    EXPECT_EQ(chunk.payload_size(), size);
    EXPECT_EQ(chunk.position, position);
    position += size;
  }
  EXPECT_EQ(records_in(taken).size(), 10'000U);
}

TEST(AppendBuffer, WhatIsMoreThanAFrameIsSplitBetweenEvents) {
  AppendBuffer pending({}, 0);
  const std::string key(kKeySizeMax, 'k');
  const std::vector<Event> many(5000, granted(key, 1, key));
  const Position end = pending.append(many);
  const AppendBuffer::Taken taken = pending.take(false);
  EXPECT_EQ(end, 5000 * record_of(many[0]).size());
  EXPECT_GT(taken.chunks.size(), 2U);
  for (const Chunk& chunk : taken.chunks) EXPECT_LE(chunk.payload_size(), kPayloadMax);
  EXPECT_EQ(records_in(taken).size(), 5000U);
}

TEST(AppendBuffer, AFloorIsRaisedBeforeAnyFenceReachesIt) {
  AppendBuffer pending({.fence_step = 100}, 0);
  EXPECT_FALSE(pending.take(false).raises_floor) << "nothing to tell";
  pending.append(std::vector{granted("a", 1)});
  AppendBuffer::Taken taken = pending.take(false);
  EXPECT_TRUE(taken.raises_floor);
  EXPECT_EQ(records_in(taken).back(), record_of(fence_floor(101)));
  for (Fence fence = 2; fence <= 51; ++fence) {
    pending.append(std::vector{granted("a", fence)});
    EXPECT_FALSE(pending.take(false).raises_floor) << fence;
  }
  pending.append(std::vector{granted("a", 52)});
  taken = pending.take(false);
  EXPECT_TRUE(taken.raises_floor);
  EXPECT_EQ(records_in(taken).back(), record_of(fence_floor(152)));

  EXPECT_EQ(records_in(pending.take(true)), std::vector{record_of(fence_floor(152))});
  pending.append(std::vector{granted("a", kFenceMax)});
  EXPECT_EQ(records_in(pending.take(false)).back(), record_of(fence_floor(kFenceMax)));
  pending.append(std::vector{granted("a", kFenceMax)});
  EXPECT_FALSE(pending.take(false).raises_floor) << "there is none above";
}

TEST(AppendBuffer, TooMuchIsSaidAndAfterAFailureNothingIsKept) {
  AppendBuffer pending({.size_max = 100}, 0);
  EXPECT_FALSE(pending.is_crowded());
  pending.append(std::vector(10, granted("a", 1)));
  EXPECT_TRUE(pending.is_crowded());
  pending.take(false);
  EXPECT_FALSE(pending.is_crowded());
  const Position before = pending.append(std::vector{granted("a", 1)});
  pending.discard();
  EXPECT_GT(pending.append(std::vector(10, granted("a", 1))), before) << "positions go on";
  EXPECT_EQ(pending.size(), 0U);
  EXPECT_TRUE(pending.take(false).chunks.empty());
}

TEST(AppendBuffer, ManyThreadsAppendAndOneTakes) {
  constexpr int kThreads = 4;
  constexpr Fence kEach = 5000;
  AppendBuffer pending({}, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&pending, t] {
      const std::string key(1, static_cast<char>('a' + t));
      Position last = 0;
      for (Fence fence = 1; fence <= kEach; ++fence) {
        const Position end = pending.append(std::vector{ended(key, fence)});
        ASSERT_GT(end, last);
        last = end;
      }
    });
  }
  // Each thread's events come in its order.
  std::vector<Fence> last(kThreads, 0);
  std::size_t count = 0;
  while (count < kThreads * kEach) {
    AppendBuffer::Taken taken = pending.take(false);
    for (const Record& record : records_in(taken)) {
      std::string_view left = record;
      Event event{.type = Event::Type::ended};
      ASSERT_TRUE(take_event(left, &event));
      Fence& before = last[static_cast<std::size_t>(event.key[0] - 'a')];
      ASSERT_EQ(event.fence, before + 1);
      before = event.fence;
      ++count;
    }
    pending.give_back(std::move(taken.chunks));
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lockd
