// Locks that are shared and semaphores of which several permits are taken, against the real server.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "client/test_server.h"

namespace lockd::client {
namespace {

using namespace std::chrono_literals;

HeldLock take(Client& client, const LockRequest& request) {
  auto lock = client.acquire(request);
  EXPECT_TRUE(lock) << describe(lock);
  return std::move(*lock);
}

LockRequest reading(Duration wait = {}) {
  return {.keys = shared("file"), .wait = wait, .lease = 600s};
}

LockRequest writing(Duration wait = {}) { return {.keys = "file", .wait = wait, .lease = 600s}; }

LockRequest permits_of_eight(std::uint32_t permits, Duration wait = {}) {
  return {.keys = semaphore("pool", 8, permits), .wait = wait, .lease = 600s};
}

TEST(Sharing, AnyNumberShareALockAndOneHasItAlone) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock first = take(client, reading());
  HeldLock second = take(client, reading());
  EXPECT_GT(second.fence(), first.fence()) << "each grant has its own";
  EXPECT_EQ(client.acquire(writing()).outcome, Outcome::timeout);
  EXPECT_TRUE(first.release());
  EXPECT_EQ(client.acquire(writing()).outcome, Outcome::timeout) << "the second is there";
  EXPECT_TRUE(second.release());
  const HeldLock alone = take(client, writing());
  EXPECT_EQ(client.acquire(reading()).outcome, Outcome::timeout);
}

TEST(Sharing, WhoSharesDoesNotOvertakeWhoWantsItAlone) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock first = take(client, reading());
  auto writer = client.enqueue(writing());
  ASSERT_TRUE(writer) << describe(writer);
  EXPECT_FALSE(writer->is_granted());
  EXPECT_EQ(client.acquire(reading()).outcome, Outcome::timeout) << "behind the writer";
  auto reader = client.enqueue(reading());
  ASSERT_TRUE(reader) << describe(reader);
  EXPECT_TRUE(first.release());
  auto alone = writer->wait(60s);
  ASSERT_TRUE(alone) << describe(alone);
  EXPECT_TRUE(alone->release());
  const auto after = reader->wait(60s);
  ASSERT_TRUE(after) << describe(after);
  EXPECT_TRUE(client.acquire(reading())) << "it is shared again";
}

TEST(Sharing, SeveralPermitsAreTakenAndGivenBackTogether) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock five = take(client, permits_of_eight(5));
  EXPECT_EQ(five.kind(), Kind::semaphore);
  const HeldLock three = take(client, permits_of_eight(3));
  EXPECT_EQ(client.acquire(permits_of_eight(1)).outcome, Outcome::timeout);
  EXPECT_TRUE(five.release());
  EXPECT_EQ(client.acquire(permits_of_eight(6)).outcome, Outcome::timeout);
  EXPECT_TRUE(client.acquire(permits_of_eight(5)));
}

TEST(Sharing, ASmallRequestDoesNotOvertakeALargeOne) {
  const TestServer server;
  Client client(server.client_options());
  HeldLock four = take(client, permits_of_eight(4));
  auto large = client.enqueue(permits_of_eight(8));
  ASSERT_TRUE(large) << describe(large);
  EXPECT_EQ(client.acquire(permits_of_eight(1)).outcome, Outcome::timeout) << "four are free";
  EXPECT_TRUE(four.release());
  const auto all = large->wait(60s);
  EXPECT_TRUE(all) << describe(all);
}

TEST(Sharing, ASharedLockIsRenewedLikeAnyOther) {
  const TestServer server;
  Client client(server.client_options());
  LockRequest request = reading();
  request.lease = 8s;
  const HeldLock lock = take(client, request);
  const auto granted_until = lock.expires_at();
  EXPECT_TRUE(eventually([&] { return lock.expires_at() > granted_until; }));
  EXPECT_TRUE(client.acquire(reading())) << "and still shared";
}

TEST(Sharing, AConnectionHasTheSameWords) {
  const TestServer server;
  Connection connection = server.open();
  const auto first = connection.acquire({.key = "file", .lease = 600s, .mode = Mode::shared});
  ASSERT_TRUE(first) << describe(first);
  const auto second = connection.enqueue({.key = "file", .mode = Mode::shared});
  EXPECT_EQ(second.outcome, Outcome::ok) << "granted at once, as it is shared";
  const auto four = connection.acquire(
      {.key = "pool", .lease = 600s, .kind = Kind::semaphore, .limit = 8, .permits = 4});
  EXPECT_TRUE(four) << describe(four);
}

}  // namespace
}  // namespace lockd::client
